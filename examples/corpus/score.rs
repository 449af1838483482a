//! Accuracy, confusion, serious errors and calibration.

use std::fmt::Write as _;

use rehome::facts::Toolchain;
use rehome::judge::Judgement;

/// One judged repository.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) label: Toolchain,
    pub(crate) judgement: Judgement,
    pub(crate) reads: u64,
}

impl Row {
    fn answer(&self) -> Toolchain {
        self.judgement.committed.primary
    }

    fn confidence(&self) -> f64 {
        self.judgement.committed.confidence
    }

    fn is_right(&self) -> bool {
        self.answer() == self.label
    }

    /// Windows taken for Linux or the reverse: the advice would be the opposite of the right one.
    fn is_serious(&self) -> bool {
        let is_bound = |side| matches!(side, Toolchain::Linux | Toolchain::Windows);
        !self.is_right() && is_bound(self.label) && is_bound(self.answer())
    }
}

/// All judged repositories.
#[derive(Default)]
pub(crate) struct Score {
    rows: Vec<Row>,
}

/// Confidence from which a wrong answer must not occur.
const SURE: f64 = 0.9;
const LABELS: [Toolchain; 3] = [Toolchain::Windows, Toolchain::Linux, Toolchain::Either];

impl Score {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn text(&self, is_verbose: bool) -> String {
        let mut out = String::new();
        for row in self.rows.iter().filter(|row| is_verbose || !row.is_right()) {
            let mark = if row.is_right() { "  " } else { "! " };
            let _ = writeln!(
                out,
                "{mark}{}: {} ({:.2}), labelled {}, {} reads",
                row.name,
                name(row.answer()),
                row.confidence(),
                name(row.label),
                row.reads
            );
            for evidence in row.judgement.evidence.iter().filter(|it| is_verbose || it.counted) {
                let mark = if evidence.counted { "+" } else { "-" };
                let _ = writeln!(
                    out,
                    "      {mark} {:8} {:?}/{:?} {}: {}",
                    name(evidence.toolchain),
                    evidence.tier,
                    evidence.strength,
                    evidence.rule,
                    evidence.matched
                );
            }
        }
        self.summary(&mut out);
        out
    }

    fn summary(&self, out: &mut String) {
        let right = self.rows.iter().filter(|row| row.is_right()).count();
        let _ = writeln!(out, "\nright: {right} of {} ({:.1} %)", self.rows.len(), percent(right, self.rows.len()));
        let _ = writeln!(out, "label      right    answered: windows  linux  either");
        for label in LABELS {
            let of_label: Vec<&Row> = self.rows.iter().filter(|row| row.label == label).collect();
            let right = of_label.iter().filter(|row| row.is_right()).count();
            let answered = |side| of_label.iter().filter(|row| row.answer() == side).count();
            let _ = writeln!(
                out,
                "{:8} {right:3}/{:<3}             {:7} {:6} {:7}",
                name(label),
                of_label.len(),
                answered(Toolchain::Windows),
                answered(Toolchain::Linux),
                answered(Toolchain::Either)
            );
        }
        let serious: Vec<&str> = self.rows.iter().filter(|row| row.is_serious()).map(|row| row.name.as_str()).collect();
        let _ = writeln!(out, "serious errors (windows for linux or the reverse): {} {serious:?}", serious.len());
        let sure: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| !row.is_right() && row.confidence() >= SURE)
            .map(|row| row.name.as_str())
            .collect();
        let _ = writeln!(out, "wrong at confidence {SURE} or more: {} {sure:?}", sure.len());
        let _ = writeln!(out, "Brier score of the answer's confidence: {:.4}", self.brier());
        let most = self.rows.iter().map(|row| row.reads).max().unwrap_or(0);
        let total: u64 = self.rows.iter().map(|row| row.reads).sum();
        #[expect(clippy::cast_precision_loss, reason = "a corpus has far fewer than 2^53 files")]
        let mean = total as f64 / self.rows.len().max(1) as f64;
        let _ = writeln!(out, "files read: {mean:.1} on average, {most} at most");
    }

    /// Mean squared distance of the confidence from what happened (1 right, 0 wrong); 0 is perfect.
    fn brier(&self) -> f64 {
        let squares = self.rows.iter().map(|row| {
            let happened = if row.is_right() { 1.0 } else { 0.0 };
            (row.confidence() - happened).powi(2)
        });
        #[expect(clippy::cast_precision_loss, reason = "a corpus has far fewer than 2^53 repositories")]
        let count = self.rows.len().max(1) as f64;
        squares.sum::<f64>() / count
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a corpus has far fewer than 2^53 repositories")]
    let ratio = part as f64 / whole.max(1) as f64;
    ratio * 100.0
}

fn name(side: Toolchain) -> &'static str {
    match side {
        Toolchain::Linux => "linux",
        Toolchain::Windows => "windows",
        Toolchain::Either => "either",
        Toolchain::Mixed => "mixed",
    }
}
