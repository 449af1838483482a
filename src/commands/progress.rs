//! Bars on standard error, for somebody who waits.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::log::Log;
use crate::error::printable_text;
use crate::progress::{Progress, Silent};

/// A spinner turns ten times a second: enough to look alive, cheap enough not to disturb what is measured.
const TICK: Duration = Duration::from_millis(100);
/// Drawing more often than this would be seen by nobody and cost processor time during a measurement.
const DRAWS_PER_SECOND: u8 = 10;

/// One line on standard error that shows the current phase, and is cleared when the phase ends.
#[derive(Debug)]
pub struct Bars {
    current: Mutex<Option<ProgressBar>>,
    ticking: bool,
}

/// Returns what shows the phases of a run: lines when `verbose`, else what [`for_terminal`] returns.
#[must_use]
pub fn chosen(quiet: bool, verbose: bool) -> Box<dyn Progress> {
    if verbose { Box::new(Log::new(std::io::stderr())) } else { for_terminal(quiet) }
}

/// Returns bars where somebody can see them, and silence elsewhere.
///
/// Silence when `quiet`, and when standard error is no terminal: a log file would fill with drawing commands.
#[must_use]
pub fn for_terminal(quiet: bool) -> Box<dyn Progress> {
    if quiet || !std::io::stderr().is_terminal() { Box::new(Silent) } else { Box::new(Bars::new()) }
}

impl Bars {
    fn new() -> Self {
        Self { current: Mutex::new(None), ticking: true }
    }

    fn with_current(&self, change: impl FnOnce(&mut Option<ProgressBar>)) {
        // A panic elsewhere must not take the bars, and with them the cleaning up, along.
        change(&mut self.current.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Progress for Bars {
    fn begin(&self, phase: &str, total: Option<u64>) {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
        let bar = ProgressBar::with_draw_target(total, target).with_message(printable_text(phase));
        bar.set_style(style(total.is_some()));
        if self.ticking {
            bar.enable_steady_tick(TICK);
        }
        self.with_current(|current| {
            if let Some(old) = current.replace(bar) {
                old.finish_and_clear();
            }
        });
    }

    fn begin_transfer(&self, phase: &str, files: u64, bytes: u64) {
        self.begin(phase, Some(bytes));
        self.with_current(|current| {
            if let Some(bar) = current {
                bar.set_style(transfer_style());
                bar.set_prefix(format!("of {files} files"));
                bar.set_message(format!("{} 0", printable_text(phase)));
            }
        });
    }

    fn transferred(&self, files: u64, bytes: u64) {
        self.with_current(|current| {
            if let Some(bar) = current {
                let phase = bar.message();
                let phase = phase.split(' ').next().unwrap_or_default().to_owned();
                bar.set_message(format!("{phase} {files}"));
                bar.set_position(bytes);
            }
        });
    }

    fn advance(&self, done: u64) {
        self.with_current(|current| {
            if let Some(bar) = current {
                bar.set_position(done);
            }
        });
    }

    fn end(&self) {
        self.with_current(|current| {
            if let Some(bar) = current.take() {
                bar.finish_and_clear();
            }
        });
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.end();
    }
}

fn transfer_style() -> ProgressStyle {
    let template = "{spinner} {msg} {prefix} {bar:20} {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn style(has_total: bool) -> ProgressStyle {
    let template =
        if has_total { "{spinner} {msg} {bar:30} {human_pos}/{human_len}" } else { "{spinner} {msg} {elapsed}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_began_is_gone_after_its_end() {
        let bars = Bars { current: Mutex::new(None), ticking: false };
        bars.begin("reading\u{1b}[2J", Some(10));
        bars.advance(4);
        bars.with_current(|current| {
            let bar = current.as_ref().unwrap();
            assert_eq!((bar.position(), bar.length()), (4, Some(10)));
            assert_eq!(bar.message(), "reading\\u{1b}[2J");
        });
        bars.end();
        bars.with_current(|current| assert!(current.is_none()));
    }

    #[test]
    fn both_templates_are_valid() {
        for has_total in [false, true] {
            let bar = ProgressBar::hidden();
            bar.set_style(style(has_total));
            assert!(
                ProgressStyle::with_template("{spinner} {msg} {bar:30} {human_pos}/{human_len}").is_ok()
                    && ProgressStyle::with_template("{spinner} {msg} {elapsed}").is_ok()
            );
        }
    }
}
