//! What the kernel tells of a process in `/proc/PID/stat` and `/proc/PID/status` (`proc_pid_stat(5)`).

use std::fs;

/// Bit of SIGKILL (9) in the masks of `/proc/PID/status`.
const KILL_BIT: u64 = 1 << 8;
/// `PF_EXITING` of the kernel's `include/linux/sched.h`: the process is ending and may hang while it closes its files.
const EXITING: u64 = 4;

/// A process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat {
    /// One letter; `Z` and `X` for a process whose first thread has ended.
    pub state: char,
    /// The kernel's flags.
    pub flags: u64,
    /// Processor time that its threads used so far, in clock ticks.
    pub ticks: u64,
    /// Processor time of its children that ended and were waited for, in clock ticks.
    pub child_ticks: u64,
    /// When it started, in clock ticks since boot: pids are used again.
    pub started: u64,
}

impl ProcStat {
    /// Looks at a process; `None` when there is none with that pid.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Returns whether it has ended and only waits for somebody to ask how, or whether its first thread has ended and
    /// others cannot.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    fn parse(text: &str) -> Option<Self> {
        // The second field, the program's name in parentheses, may itself hold spaces and parentheses.
        let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
        // Counted from 1 in the manual; the third is the first one here.
        let mut at = 3;
        let mut field = |number: usize| {
            let value = fields.nth(number - at);
            at = number + 1;
            value
        };
        let state = field(3)?.chars().next()?;
        let flags = field(9)?.parse().ok()?;
        let in_program: u64 = field(14)?.parse().ok()?;
        let in_kernel: u64 = field(15)?.parse().ok()?;
        let child_in_program: u64 = field(16)?.parse().ok()?;
        let child_in_kernel: u64 = field(17)?.parse().ok()?;
        let started = field(22)?.parse().ok()?;
        let (ticks, child_ticks) = (in_program + in_kernel, child_in_program + child_in_kernel);
        Some(Self { state, flags, ticks, child_ticks, started })
    }
}

/// Returns whether a process was killed and only hangs in a call that the kernel cannot end; it does nothing of its own
/// any more.
#[must_use]
pub fn is_dying(pid: u32) -> bool {
    let Some(stat) = ProcStat::of(pid) else { return false };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    stat.has_ended() || stat.flags & EXITING != 0 || has_pending_kill(&status)
}

fn has_pending_kill(status: &str) -> bool {
    let masks = status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
    masks.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok()).any(|mask| mask & KILL_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_the_manual_whatever_the_program_is_called() {
        let text = "7 (a b) c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24\n";
        assert_eq!(
            ProcStat::parse(text),
            Some(ProcStat { state: 'S', flags: 9, ticks: 29, child_ticks: 33, started: 22 })
        );
        assert_eq!(ProcStat::parse("7 (a) S 4"), None);
        assert_eq!(ProcStat::parse("nonsense"), None);
    }

    #[test]
    fn this_process_lives_and_a_zombie_does_not() {
        assert!(ProcStat::of(std::process::id()).is_some() && !is_dying(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while ProcStat::of(child.id()).is_some_and(|stat| stat.state != 'Z') {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(is_dying(child.id()) && ProcStat::of(child.id()).is_some_and(ProcStat::has_ended));
        let pid = child.id();
        child.wait().unwrap();
        assert!(!is_dying(pid), "a process that is gone holds nothing");
    }

    #[test]
    fn a_kill_that_waits_is_seen_for_one_thread_and_for_all() {
        assert!(has_pending_kill("SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n"));
        assert!(has_pending_kill("SigPnd:\t0000000000000000\nShdPnd:\t0000000000004100\n"));
        assert!(!has_pending_kill("SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\nSigIgn:\t0000000000000100\n"));
    }
}
