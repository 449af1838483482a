//! Walks over the parts of a condition.

use std::collections::BTreeMap;

use super::{Condition, Tracked, TrackedFields, ValueTest};
use crate::rules::words::{Limit, PathGlob};

impl TrackedFields {
    /// Returns the number of matches that is needed: 1 unless another bound was given.
    #[must_use]
    pub fn needed(&self) -> u64 {
        let has_other_bound = self.at_most.is_some() || self.share_at_least.is_some() || self.share_at_most.is_some();
        self.at_least.unwrap_or(u64::from(!has_other_bound))
    }
}

impl ValueTest {
    /// Returns the number of matches that is needed: 1 unless another bound was given.
    #[must_use]
    pub fn needed(&self) -> u64 {
        let has_other_bound = self.at_most.is_some() || self.share_at_least.is_some() || self.share_at_most.is_some();
        self.at_least.unwrap_or(u64::from(!has_other_bound))
    }
}

impl Condition {
    /// Calls a function on this condition and on every one inside it.
    pub fn visit<'a>(&'a self, visitor: &mut impl FnMut(&'a Condition)) {
        visitor(self);
        for inner in self.all.iter().chain(&self.any) {
            inner.visit(visitor);
        }
        if let Some(inner) = &self.not {
            inner.visit(visitor);
        }
    }

    /// Returns whether it has no key at all; such a condition always holds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
            && self.any.is_empty()
            && self.hazard.is_empty()
            && self.not.is_none()
            && self.tracked.is_none()
            && self.value.is_none()
            && self.contains.is_none()
            && self.exists.is_none()
            && self.file_kind.is_none()
            && self.git_config.is_none()
            && self.index.is_none()
            && self.fact.is_none()
            && self.trace.is_none()
    }

    /// Collects every glob over tracked paths.
    pub(in crate::rules) fn globs<'a>(&'a self, out: &mut Vec<&'a PathGlob>) {
        self.visit(&mut |condition| {
            if let Some(Tracked(fields)) = &condition.tracked {
                out.extend(fields.paths.iter().chain(&fields.except).chain(&fields.share_of_paths));
            }
            if let Some(contains) = &condition.contains {
                out.extend(contains.files.iter().chain(&contains.beside));
            }
            if let Some(exists) = &condition.exists {
                out.extend(&exists.beside);
            }
            if let Some(kind) = &condition.file_kind {
                out.extend(&kind.files);
            }
        });
    }

    /// Numbers the tests of tracked paths.
    pub(in crate::rules) fn number_tests(&mut self, next: &mut usize) {
        for inner in self.all.iter_mut().chain(&mut self.any) {
            inner.number_tests(next);
        }
        if let Some(inner) = &mut self.not {
            inner.number_tests(next);
        }
        if let Some(Tracked(fields)) = &mut self.tracked {
            fields.number = Some(*next);
            *next += 1;
        }
    }

    /// Replaces the names of thresholds by their numbers; returns the first name that is unknown.
    pub(in crate::rules) fn resolve_limits(&mut self, thresholds: &BTreeMap<String, f64>) -> Result<(), String> {
        for inner in self.all.iter_mut().chain(&mut self.any) {
            inner.resolve_limits(thresholds)?;
        }
        if let Some(inner) = &mut self.not {
            inner.resolve_limits(thresholds)?;
        }
        let Some(fact) = &mut self.fact else { return Ok(()) };
        for limit in [&mut fact.at_least, &mut fact.at_most, &mut fact.below].into_iter().flatten() {
            if let Limit::Named(name) = limit {
                let number = thresholds.get(name).ok_or_else(|| name.clone())?;
                *limit = Limit::Number(*number);
            }
        }
        Ok(())
    }
}
