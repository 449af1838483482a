//! Phases as lines on standard error, for `--verbose`: what a log of a script or a bug report wants.

use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;

use crate::error::printable_text;
use crate::progress::Progress;

/// Writes one line when a phase begins and one with its duration when it ends.
pub struct Log<W: Write + Send> {
    out: Mutex<W>,
    started: Instant,
    phase: Mutex<Option<(String, Instant)>>,
}

impl<W: Write + Send> std::fmt::Debug for Log<W> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Log").field("started", &self.started).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Log<W> {
    /// Makes a log; its times count from now.
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { out: Mutex::new(out), started: Instant::now(), phase: Mutex::new(None) }
    }

    fn line(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A log that cannot be written must not end the run that it tells of.
        let _ = writeln!(out, "rehome: {:7.3} s  {text}", self.started.elapsed().as_secs_f64());
    }

    fn replace(&self, next: Option<(String, Instant)>) -> Option<(String, Instant)> {
        std::mem::replace(&mut *self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner), next)
    }
}

impl<W: Write + Send> Progress for Log<W> {
    fn begin(&self, phase: &str, total: Option<u64>) {
        self.end();
        let phase = printable_text(phase);
        match total {
            Some(total) => self.line(&format!("{phase} ({total})")),
            None => self.line(&phase),
        }
        self.replace(Some((phase, Instant::now())));
    }

    fn advance(&self, _done: u64) {}

    fn end(&self) {
        if let Some((phase, began)) = self.replace(None) {
            self.line(&format!("{phase}: done in {:.3} s", began.elapsed().as_secs_f64()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_a_line_at_its_beginning_and_at_its_end() {
        let log = Log::new(Vec::new());
        log.begin("making the copy", None);
        log.begin("reading\u{1b}[2J", Some(12));
        log.end();
        log.end();
        let text = String::from_utf8(log.out.into_inner().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| line.split_once(" s  ").unwrap().1).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[0], lines[2]), ("making the copy", "reading\\u{1b}[2J (12)"));
        assert!(lines[1].starts_with("making the copy: done in ") && lines[3].starts_with("reading"));
    }
}
