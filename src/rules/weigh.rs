//! Turns the evidence that fired into a probability of each toolchain.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{EvidenceRule, TierWeights};
use super::vocabulary::{Strength, Tier};
use crate::facts::Toolchain;

/// Probabilities of the three answers; they add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// Programs of the Linux side.
    pub linux: f64,
    /// Native Windows programs.
    pub windows: f64,
    /// Works as well on one side as on the other.
    pub either: f64,
}

/// The three answers.
pub const SIDES: [Toolchain; 3] = [Toolchain::Linux, Toolchain::Windows, Toolchain::Either];

impl Odds {
    /// Returns the probability of one answer; 0 for `mixed`, which is no answer of its own here.
    #[must_use]
    pub fn of(&self, side: Toolchain) -> f64 {
        match side {
            Toolchain::Linux => self.linux,
            Toolchain::Windows => self.windows,
            Toolchain::Either => self.either,
            Toolchain::Mixed => 0.0,
        }
    }

    /// Returns the most likely answer and its probability; `either` when others are no more likely.
    #[must_use]
    pub fn best(&self) -> (Toolchain, f64) {
        let mut best = (Toolchain::Either, self.either);
        for side in [Toolchain::Linux, Toolchain::Windows] {
            if self.of(side) > best.1 {
                best = (side, self.of(side));
            }
        }
        best
    }
}

/// What became of a rule that fired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighed {
    /// Log-odds that it carries after groups and caps; 0 when it does not count.
    pub weight: f64,
    /// Whether it counts at all.
    pub counted: bool,
}

/// Log-odds that `either` has before any evidence: most repositories are bound to neither side.
const EITHER_BEFORE: f64 = 0.5;

/// Weighs rules that fired; the second result has one entry a rule, in their order.
///
/// Within a tier, weights are log-odds that add up over groups (in a group only the strongest rule a side counts) up to
/// the tier's cap. A later tier's cap is below the earlier tier's medium weight, so that any amount of weak evidence does
/// not outvote one decisive fact.
#[must_use]
pub fn weigh(fired: &[&EvidenceRule], weights: &[TierWeights]) -> (Odds, Vec<Weighed>) {
    let cancelled: BTreeSet<&str> =
        fired.iter().flat_map(|rule| &rule.cancels).map(super::words::RuleId::as_str).collect();
    let mut weighed = vec![Weighed { weight: 0.0, counted: false }; fired.len()];
    let mut sums: BTreeMap<(Tier, usize), f64> = BTreeMap::new();
    let mut strongest: BTreeMap<(Option<&str>, &str, usize), usize> = BTreeMap::new();
    for (index, rule) in fired.iter().enumerate() {
        if rule.strength == Strength::Null || cancelled.contains(rule.id.as_str()) {
            continue;
        }
        let Some(side) = side_index(rule.toolchain) else { continue };
        // A rule without a group is a group of its own.
        let group = (rule.group.as_deref(), if rule.group.is_some() { "" } else { rule.id.as_str() }, side);
        let best = strongest.entry(group).or_insert(index);
        if (fired[*best].tier, std::cmp::Reverse(fired[*best].strength)) > (rule.tier, std::cmp::Reverse(rule.strength))
        {
            *best = index;
        }
    }
    for (key, index) in &strongest {
        let rule = fired[*index];
        let weight =
            weights.iter().find(|weights| weights.tier == rule.tier).map_or(0.0, |weights| match rule.strength {
                Strength::Null => 0.0,
                Strength::Weak => weights.weak,
                Strength::Medium => weights.medium,
                Strength::Strong => weights.strong,
            });
        weighed[*index] = Weighed { weight, counted: true };
        *sums.entry((rule.tier, key.2)).or_default() += weight;
    }
    let mut totals = [0.0, 0.0, EITHER_BEFORE];
    for ((tier, side), sum) in &sums {
        let cap = weights.iter().find(|weights| weights.tier == *tier).map_or(0.0, |weights| weights.cap);
        if *sum > cap {
            scale(fired, &mut weighed, *tier, *side, cap / sum);
        }
        totals[*side] += sum.min(cap);
    }
    (softmax(totals), weighed)
}

fn scale(fired: &[&EvidenceRule], weighed: &mut [Weighed], tier: Tier, side: usize, factor: f64) {
    for (rule, weighed) in fired.iter().zip(weighed) {
        if rule.tier == tier && side_index(rule.toolchain) == Some(side) {
            weighed.weight *= factor;
        }
    }
}

fn side_index(side: Toolchain) -> Option<usize> {
    SIDES.iter().position(|known| *known == side)
}

fn softmax([linux, windows, either]: [f64; 3]) -> Odds {
    let (a, b, c) = (linux.exp(), windows.exp(), either.exp());
    let sum = a + b + c;
    Odds { linux: a / sum, windows: b / sum, either: c / sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: [TierWeights; 2] = [
        TierWeights { tier: Tier::HostOnly, weak: 2.0, medium: 4.0, strong: 6.0, cap: 9.0 },
        TierWeights { tier: Tier::Hint, weak: 0.3, medium: 0.5, strong: 0.8, cap: 1.0 },
    ];

    fn rule(id: &str, side: Toolchain, tier: Tier, strength: Strength, group: Option<&str>) -> EvidenceRule {
        let text = format!(
            "id: {id}\ntoolchain: linux\ntier: hint\nstrength: weak\nwhen: {{}}\nbecause: b\nsource: s\n\
                            examples: {{ fires: [], ignores: [] }}\n"
        );
        let mut rule: EvidenceRule = serde_yaml::from_str(&text).unwrap();
        rule.toolchain = side;
        rule.tier = tier;
        rule.strength = strength;
        rule.group = group.map(str::to_owned);
        rule
    }

    #[test]
    fn many_hints_do_not_outvote_one_decisive_fact() {
        let decisive = rule("a", Toolchain::Windows, Tier::HostOnly, Strength::Strong, None);
        let hints: Vec<_> =
            (0..50).map(|n| rule(&format!("h{n}"), Toolchain::Linux, Tier::Hint, Strength::Strong, None)).collect();
        let fired: Vec<&EvidenceRule> = std::iter::once(&decisive).chain(&hints).collect();
        let (odds, weighed) = weigh(&fired, &WEIGHTS);
        assert_eq!(odds.best().0, Toolchain::Windows);
        assert!(odds.windows > 0.95, "{odds:?}");
        assert!((weighed[1..].iter().map(|it| it.weight).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn of_a_group_only_the_strongest_counts() {
        let weak = rule("a", Toolchain::Linux, Tier::HostOnly, Strength::Weak, Some("g"));
        let strong = rule("b", Toolchain::Linux, Tier::HostOnly, Strength::Medium, Some("g"));
        let (_, weighed) = weigh(&[&weak, &strong], &WEIGHTS);
        assert!(!weighed[0].counted && weighed[1].counted);
    }

    #[test]
    fn a_cancelled_rule_and_a_null_rule_do_not_count() {
        let mut cancels = rule("a", Toolchain::Linux, Tier::Hint, Strength::Weak, None);
        cancels.cancels.push(serde_yaml::from_str("b").unwrap());
        let other = rule("b", Toolchain::Windows, Tier::HostOnly, Strength::Strong, None);
        let null = rule("c", Toolchain::Windows, Tier::HostOnly, Strength::Null, None);
        let (odds, weighed) = weigh(&[&cancels, &other, &null], &WEIGHTS);
        assert!(!weighed[1].counted && !weighed[2].counted);
        assert!(odds.linux > odds.windows);
    }

    #[test]
    fn without_evidence_the_answer_is_either_and_unsure() {
        let (odds, _) = weigh(&[], &WEIGHTS);
        let (side, probability) = odds.best();
        assert_eq!(side, Toolchain::Either);
        assert!(probability < 0.6);
    }
}
