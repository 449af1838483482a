//! Puts rule files together to one set, and checks what they say of each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::problem::{Problem, line_of, lines_of, parse};
use super::{KINDS, RuleFile};
use crate::rules::RuleSet;
use crate::rules::condition::Condition;
use crate::rules::kinds::{
    AlternativeRule, EvidenceFile, EvidenceRule, HazardFile, HazardRule, JudgingFile, RebuildableFile, RebuildableRule,
    SettingRule, Threshold, VerdictFile, VerdictRule,
};
use crate::rules::names::nearest;
use crate::rules::paths::Globs;

/// Builds a rule set of files.
///
/// # Errors
///
/// Every mistake that was found; of one file's text only the first.
pub fn assemble(files: &[RuleFile]) -> Result<RuleSet, Vec<Problem>> {
    let mut builder = Builder::default();
    for file in files {
        if let Err(problem) = builder.add(file) {
            builder.problems.push(problem);
        }
    }
    builder.finish(files)
}

#[derive(Default)]
struct Builder {
    evidence: Vec<EvidenceRule>,
    hazards: Vec<HazardRule>,
    rebuildable: Vec<RebuildableRule>,
    verdicts: Vec<VerdictRule>,
    added_verdicts: Vec<VerdictRule>,
    alternatives: Vec<AlternativeRule>,
    settings: Vec<SettingRule>,
    thresholds: Vec<Threshold>,
    judging: Option<JudgingFile>,
    filesystem: Vec<RuleFile>,
    origins: BTreeMap<(&'static str, String), String>,
    layers: BTreeMap<(&'static str, String), usize>,
    problems: Vec<Problem>,
}

/// The part of a rule file that tells how to read the rest.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

impl Builder {
    fn add(&mut self, file: &RuleFile) -> Result<(), Problem> {
        let kind = parse::<KindOnly>(file)?.kind;
        match kind.as_str() {
            "evidence" => {
                for rule in parse::<EvidenceFile>(file)?.rules {
                    self.claim("evidence", rule.id.as_str(), file);
                    put(&mut self.evidence, rule, |rule| &rule.id);
                }
            }
            "hazard" => {
                for rule in parse::<HazardFile>(file)?.rules {
                    self.claim("hazard", rule.id.as_str(), file);
                    put(&mut self.hazards, rule, |rule| &rule.id);
                }
            }
            "rebuildable" => {
                for rule in parse::<RebuildableFile>(file)?.rules {
                    self.claim("rebuildable", rule.id.as_str(), file);
                    put(&mut self.rebuildable, rule, |rule| &rule.id);
                }
            }
            "verdict" => self.add_verdicts(file, parse(file)?),
            "judging" => self.add_judging(parse(file)?),
            // The scan has built-in ones of its own.
            "filesystem" if file.layer > 0 => self.filesystem.push(file.clone()),
            "filesystem" => {}
            other => {
                let line = line_of(&file.text, &format!("kind: {other}"));
                return Err(Problem {
                    file: file.name.clone(),
                    place: line.map(|line| (line, 1)),
                    what: format!("unknown kind `{other}`{}", nearest(other, KINDS)),
                });
            }
        }
        Ok(())
    }

    fn add_verdicts(&mut self, file: &RuleFile, verdicts: VerdictFile) {
        for threshold in verdicts.thresholds {
            self.claim("threshold", threshold.id.as_str(), file);
            put(&mut self.thresholds, threshold, |rule| &rule.id);
        }
        for alternative in verdicts.alternatives {
            self.claim("alternative", alternative.id.as_str(), file);
            put(&mut self.alternatives, alternative, |rule| &rule.id);
        }
        for setting in verdicts.settings {
            self.claim("setting", setting.id.as_str(), file);
            put(&mut self.settings, setting, |rule| &rule.id);
        }
        for rule in verdicts.rules {
            self.claim("verdict", rule.id.as_str(), file);
            // The built-in list ends with a rule that always matches, so that added ones have to come before it.
            let is_known = self.verdicts.iter().any(|known| known.id == rule.id);
            let list = if file.layer == 0 || is_known { &mut self.verdicts } else { &mut self.added_verdicts };
            put(list, rule, |rule| &rule.id);
        }
    }

    fn add_judging(&mut self, mut file: JudgingFile) {
        let Some(known) = &mut self.judging else {
            self.judging = Some(file);
            return;
        };
        known.vendor_folders.append(&mut file.vendor_folders);
        known.side_folders.append(&mut file.side_folders);
        known.code.append(&mut file.code);
        known.chores.append(&mut file.chores);
        known.traces = file.traces.or(known.traces);
        for weights in file.weights {
            known.weights.retain(|known| known.tier != weights.tier);
            known.weights.push(weights);
        }
        for plan in file.extractors {
            known.extractors.retain(|known| known.extractor != plan.extractor);
            known.extractors.push(plan);
        }
    }

    /// Notes where a rule is written; two of one id in one layer are a mistake.
    fn claim(&mut self, kind: &'static str, id: &str, file: &RuleFile) {
        let key = (kind, id.to_owned());
        if self.layers.insert(key.clone(), file.layer) == Some(file.layer) {
            let other = self.origins.get(&key).cloned().unwrap_or_default();
            let lines = lines_of(&file.text, &format!("id: {id}"));
            self.problems.push(Problem {
                file: file.name.clone(),
                place: lines.last().map(|line| (*line, 1)),
                what: format!("the {kind} `{id}` is defined twice, also in {other}"),
            });
        }
        self.origins.insert(key, file.name.clone());
    }

    fn finish(mut self, files: &[RuleFile]) -> Result<RuleSet, Vec<Problem>> {
        self.added_verdicts.append(&mut self.verdicts);
        self.verdicts = std::mem::take(&mut self.added_verdicts);
        self.check_references(files);
        self.resolve_thresholds(files);
        let mut tests = 0;
        self.conditions_mut().1.for_each(|condition| condition.number_tests(&mut tests));
        let judging = self.judging.take().unwrap_or_else(|| JudgingFile {
            kind: "judging".to_owned(),
            vendor_folders: Vec::new(),
            side_folders: Vec::new(),
            code: Vec::new(),
            chores: Vec::new(),
            weights: Vec::new(),
            traces: None,
            extractors: Vec::new(),
        });
        let mut globs = Vec::new();
        self.conditions().for_each(|condition| condition.globs(&mut globs));
        for plan in &judging.extractors {
            globs.extend(plan.files.iter().chain(&plan.skip).chain(&plan.first));
        }
        let globs = Globs::new(globs);
        match globs {
            Ok(globs) if self.problems.is_empty() => Ok(RuleSet {
                evidence: self.evidence,
                hazards: self.hazards,
                rebuildable: self.rebuildable,
                verdicts: self.verdicts,
                alternatives: self.alternatives,
                settings: self.settings,
                thresholds: self.thresholds,
                judging,
                filesystem: self.filesystem,
                origins: self.origins,
                globs: globs.with_tests(tests),
            }),
            Ok(_) => Err(self.problems),
            Err(error) => {
                let what = format!("all globs together: {error}");
                self.problems.push(Problem { file: "rules".to_owned(), place: None, what });
                Err(self.problems)
            }
        }
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let evidence = self.evidence.iter().map(|rule| &rule.when);
        let hazards = self.hazards.iter().map(|rule| &rule.when);
        let verdicts = self.verdicts.iter().map(|rule| &rule.when);
        let alternatives = self.alternatives.iter().map(|rule| &rule.when);
        let settings = self.settings.iter().map(|rule| &rule.when);
        evidence.chain(hazards).chain(verdicts).chain(alternatives).chain(settings)
    }

    /// Checks that every id that a rule names is that of a rule.
    fn check_references(&mut self, files: &[RuleFile]) {
        let evidence: BTreeSet<&str> = self.evidence.iter().map(|rule| rule.id.as_str()).collect();
        let alternatives: BTreeSet<&str> = self.alternatives.iter().map(|rule| rule.id.as_str()).collect();
        let hazards: BTreeSet<&str> = self.hazards.iter().map(|rule| rule.id.as_str()).collect();
        let mut problems = Vec::new();
        let mut check = |owner: &str, kind: &'static str, named: &str, what: &str, known: &BTreeSet<&str>| {
            if !known.contains(named) {
                let file = self.origins.get(&(kind, owner.to_owned())).cloned().unwrap_or_default();
                let text = files.iter().find(|it| it.name == file).map(|it| it.text.as_str()).unwrap_or_default();
                let own = line_of(text, &format!("id: {owner}")).unwrap_or(1);
                let below = text.lines().skip(own).position(|line| line.contains(named));
                let line = below.map_or(own, |offset| own + offset + 1);
                problems.push(Problem {
                    file,
                    place: Some((line, 1)),
                    what: format!(
                        "`{owner}` names the unknown {what} `{named}`{}",
                        nearest(named, known.iter().copied())
                    ),
                });
            }
        };
        for rule in &self.evidence {
            rule.cancels.iter().for_each(|id| check(rule.id.as_str(), "evidence", id.as_str(), "rule", &evidence));
        }
        for rule in &self.verdicts {
            let owner = rule.id.as_str();
            rule.alternatives.iter().for_each(|id| check(owner, "verdict", id.as_str(), "alternative", &alternatives));
            rule.when.visit(&mut |condition| {
                condition.hazard.iter().for_each(|id| check(owner, "verdict", id.as_str(), "hazard", &hazards));
            });
        }
        self.problems.append(&mut problems);
    }

    /// Returns every condition for changing, and the list of problems beside it.
    fn conditions_mut(&mut self) -> (&mut Vec<Problem>, impl Iterator<Item = &mut Condition>) {
        let conditions = (self.evidence.iter_mut().map(|rule| &mut rule.when))
            .chain(self.hazards.iter_mut().map(|rule| &mut rule.when))
            .chain(self.verdicts.iter_mut().map(|rule| &mut rule.when))
            .chain(self.alternatives.iter_mut().map(|rule| &mut rule.when))
            .chain(self.settings.iter_mut().map(|rule| &mut rule.when));
        (&mut self.problems, conditions)
    }

    fn resolve_thresholds(&mut self, files: &[RuleFile]) {
        let numbers: BTreeMap<String, f64> =
            self.thresholds.iter().map(|it| (it.id.as_str().to_owned(), it.value)).collect();
        let (problems, conditions) = self.conditions_mut();
        for condition in conditions {
            if let Err(name) = condition.resolve_limits(&numbers) {
                let found = files.iter().find_map(|file| {
                    let line = file.text.lines().position(|line| line.contains(&format!(": {name}")))?;
                    Some((file.name.clone(), line + 1))
                });
                let (file, line) = found.unwrap_or_else(|| ("rules".to_owned(), 1));
                problems.push(Problem {
                    file,
                    place: Some((line, 1)),
                    what: format!("unknown threshold `{name}`{}", nearest(&name, numbers.keys().map(String::as_str))),
                });
            }
        }
    }
}

/// Puts a rule in the place of one with the same id, or behind all others.
fn put<T, I: PartialEq>(list: &mut Vec<T>, rule: T, id: impl Fn(&T) -> &I) {
    match list.iter().position(|known| id(known) == id(&rule)) {
        Some(index) => list[index] = rule,
        None => list.push(rule),
    }
}
