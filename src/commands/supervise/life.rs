//! Whether another process still gets anywhere.

use std::fs;
use std::time::{Duration, Instant};

use crate::proc_stat::ProcStat;

/// What changes whenever a process runs: how often its threads gave up the processor, and how long they had it.
///
/// A thread that makes calls is put aside and taken up again all the time, even where each call takes seconds; one that
/// waits in a call on a mount whose server is gone is not, and needs no processor either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Life {
    switches: u64,
    ticks: u64,
}

impl Life {
    /// Looks at a process; nothing of it can be seen when it is gone.
    pub(super) fn of(pid: u32) -> Self {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let switches = tasks.map(|task| switches(&fs::read_to_string(task.path().join("status")).unwrap_or_default()));
        let switches = switches.sum();
        Self { switches, ticks: ProcStat::of(pid).map_or(0, |stat| stat.ticks) }
    }
}

/// Adds up both kinds of context switches in the text of a `status` file.
fn switches(status: &str) -> u64 {
    let lines = status.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
    lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

/// How long a process has stood still.
#[derive(Debug)]
pub(super) struct Watch {
    pid: u32,
    life: Life,
    since: Instant,
}

impl Watch {
    /// Begins to watch a process.
    pub(super) fn begin(pid: u32) -> Self {
        Self { pid, life: Life::of(pid), since: Instant::now() }
    }

    /// Looks again.
    pub(super) fn look(&mut self) {
        let now = Life::of(self.pid);
        if now != self.life {
            (self.life, self.since) = (now, Instant::now());
        }
    }

    /// Returns how long ago it moved last.
    pub(super) fn quiet_for(&self) -> Duration {
        self.since.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches(status), 12);
    }

    #[test]
    fn a_process_that_waits_stands_still_and_one_that_runs_does_not() {
        let mut waiting = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let script = "echo x; while :; do :; done";
        let mut running = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        running.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        // Both have begun what they go on with.
        std::thread::sleep(Duration::from_millis(300));
        let lives = [Life::of(waiting.id()), Life::of(running.id())];
        std::thread::sleep(Duration::from_millis(300));
        let later = [Life::of(waiting.id()), Life::of(running.id())];
        running.kill().unwrap();
        waiting.kill().unwrap();
        running.wait().unwrap();
        waiting.wait().unwrap();
        assert_eq!(lives[0], later[0]);
        assert_ne!(lives[1], later[1]);
        assert_ne!(lives[0], Life::default());
    }
}
