//! A stopwatch that stands still while results are checked.

use std::time::{Duration, Instant};

/// Adds up the time between `resume` and `pause`.
#[derive(Debug)]
pub(super) struct Stopwatch {
    elapsed: Duration,
    since: Option<Instant>,
}

impl Stopwatch {
    /// Starts to run.
    pub(super) fn start() -> Self {
        Self { elapsed: Duration::ZERO, since: Some(Instant::now()) }
    }

    /// Stands still until [`Self::resume`].
    pub(super) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.elapsed += since.elapsed();
        }
    }

    /// Runs on.
    pub(super) fn resume(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Stops for good and returns the seconds.
    pub(super) fn stop(mut self) -> f64 {
        self.pause();
        self.elapsed.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_pass_while_it_stands_still() {
        let mut watch = Stopwatch::start();
        watch.pause();
        let before = watch.elapsed;
        std::thread::sleep(Duration::from_millis(5));
        watch.pause();
        assert_eq!(watch.elapsed, before);
        watch.resume();
        std::thread::sleep(Duration::from_millis(5));
        assert!(watch.stop() >= before.as_secs_f64() + 0.005);
    }
}
