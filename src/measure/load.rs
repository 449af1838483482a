//! Whether other programs kept the machine busy while it was measured.

use crate::proc_stat::ProcStat;

/// Shortest time of measuring, in ticks of all processors together, that says anything: the kernel counts in ticks.
const FEWEST_TICKS: u64 = 40;
/// Share of the processors that others may use before a reader has to know.
const MOST_OTHERS: f64 = 0.20;

/// Processor time at one moment, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Of all processors, idle or not.
    pub all: u64,
    /// Of all processors, while they worked.
    pub busy: u64,
    /// Of this process and of its children that ended.
    pub own: u64,
}

impl Reading {
    /// Reads the kernel's counters; `None` where there are none.
    #[must_use]
    pub fn now() -> Option<Self> {
        let system = std::fs::read_to_string("/proc/stat").ok()?;
        let own = ProcStat::of(std::process::id())?;
        Self::parse(&system, own)
    }

    /// Reads the text of `/proc/stat`; its fields are in proc(5).
    fn parse(system: &str, own: ProcStat) -> Option<Self> {
        let numbers =
            |text: &str| -> Vec<u64> { text.split_ascii_whitespace().map_while(|w| w.parse().ok()).collect() };
        // user, nice, system, idle, iowait, irq, softirq, steal; what guests used is in user already.
        let all = numbers(system.lines().next()?.strip_prefix("cpu ")?);
        let idle = all.get(3)? + all.get(4)?;
        let all: u64 = all.iter().take(8).sum();
        Some(Self { all, busy: all - idle, own: own.ticks + own.child_ticks })
    }
}

/// Processor time over the pieces of a run that were watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load(Reading);

impl Load {
    /// Adds a piece of the run.
    pub fn add(&mut self, before: Reading, after: Reading) {
        self.0.all += after.all.saturating_sub(before.all);
        self.0.busy += after.busy.saturating_sub(before.busy);
        self.0.own += after.own.saturating_sub(before.own);
    }

    /// Returns the share of the processors that others used; `None` when too little was watched to tell.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ticks are far below 2^52")]
    pub fn others(&self) -> Option<f64> {
        (self.0.all >= FEWEST_TICKS).then(|| self.0.busy.saturating_sub(self.0.own) as f64 / self.0.all as f64)
    }

    /// Returns what a reader must know about the machine; `None` when it was quiet.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let others = self.others().filter(|others| *others > MOST_OTHERS)?;
        Some(format!(
            "other programs used {:.0} % of the processors while the copy was measured; run again on a quiet machine \
             for steadier figures",
            others * 100.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(all: u64, busy: u64, own: u64) -> Load {
        let mut load = Load::default();
        load.add(
            Reading { all: 1000, busy: 500, own: 100 },
            Reading { all: 1000 + all, busy: 500 + busy, own: 100 + own },
        );
        load
    }

    #[test]
    fn our_own_work_is_no_interference_and_that_of_others_is() {
        assert_eq!(load(100, 60, 55).remark(), None);
        assert!(load(100, 60, 20).remark().unwrap().contains("40 %"));
    }

    #[test]
    fn a_run_of_a_few_ticks_says_nothing() {
        assert_eq!(load(10, 10, 0).others(), None);
        assert_eq!(Load::default().remark(), None);
    }

    #[test]
    fn the_counters_of_the_system_and_of_this_process_are_read() {
        let system = "cpu  10 20 30 400 50 6 7 8 9 1\ncpu0 1 2 3 4 5 6 7 8 9 1\n";
        let own = ProcStat { state: 'R', flags: 0, ticks: 300, child_ticks: 7, started: 0 };
        assert_eq!(Reading::parse(system, own), Some(Reading { all: 531, busy: 81, own: 307 }));
        assert_eq!(Reading::parse("", own), None);
    }

    #[test]
    fn the_kernel_has_counters() {
        let reading = Reading::now().unwrap();
        assert!(reading.all >= reading.busy);
    }
}
