//! `rehome check` on a place that holds nothing yet: where to clone to.
//!
//! The answer comes from the mount and its class. Only with `--writes` is anything measured: there is no work of the
//! repository's own to time, and small files in a scratch directory are the nearest thing to a checkout.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::Event;
use super::extra::{WRITES_GRACE, small_files, survive};
use super::worker::{Check, incomplete, nearest_existing, toolchain_of};
use crate::advise::advise_before_clone;
use crate::commands::supervise::{Told, emit};
use crate::error::{Error, printable};
use crate::facts::ToolchainFacts;
use crate::report::Report;
use crate::rules::RuleSet;
use crate::scan::filesystem::System;

/// Returns whether nothing is at a path, or an empty directory, so that something could be cloned to it.
///
/// A link that leads nowhere is something, and so is a path on a Windows drive that is not mounted: what is wrong
/// there is not that a clone is missing.
pub(super) fn is_vacant(system: &System, path: &Path) -> bool {
    let is_empty = match std::fs::symlink_metadata(path) {
        Ok(_) => std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    is_empty && system.unmounted_drive(path).is_none()
}

impl Check<'_> {
    /// Advises where a clone should go that was meant to go to `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when there is no place to advise, or a command was to be run in what does not exist;
    /// otherwise those of finding the mount.
    pub(super) fn before_clone(
        &self,
        system: &System,
        path: &Path,
        rules: &RuleSet,
        out: &mut dyn Write,
    ) -> Result<Report, Error> {
        if !self.args.run.is_empty() {
            return Err(Error::refused(
                format!("there is no repository at `{}` yet, so there is nothing to run `--run` in", printable(path)),
                "leave `--run` out for advice before a clone, or name an existing repository",
            ));
        }
        let location = system.locate_nearest(path)?;
        let mut report = self.first_report(system, None, &location);
        report.facts.toolchain = self.args.primary.map(|side| ToolchainFacts {
            primary: toolchain_of(side),
            confidence: 1.0,
            overridden_by: Some("--primary".to_owned()),
            committed: None,
        });
        let target = self.target(system, &location, &mut report)?;
        report.complete = true;
        self.advise(&mut report, rules);
        // The answer should the mount hang while it is tried.
        emit(out, &incomplete(&report))?;
        if self.args.writes {
            emit(out, &Event::OnTheMount { limit_s: (self.args.budget + WRITES_GRACE).as_secs_f64() })?;
            self.try_place(path, target, &mut report)?;
            self.advise(&mut report, rules);
        }
        Ok(report)
    }

    fn advise(&self, report: &mut Report, rules: &RuleSet) {
        let advice = advise_before_clone(&report.facts, rules);
        report.recommendation = Some(advice.recommendation);
        report.tune = advice.tune;
        report.cost.wall_s = self.elapsed_s();
    }

    /// Tries the place with small files in a scratch directory, in the nearest directory that exists.
    fn try_place(&self, path: &Path, target: Option<PathBuf>, report: &mut Report) -> Result<(), Error> {
        let Some(target) = target else {
            report.notes.push("small files were not tried: there is no other place to compare with".to_owned());
            return Ok(());
        };
        let beside = nearest_existing(path);
        let bars = Told::new();
        let result = small_files(&beside, Some(&target), self.args.budget, &bars, &self.interrupt, report);
        survive(result, "small files were not tried", report).map(drop)
    }
}
