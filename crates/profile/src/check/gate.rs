//! Which limits are a window's, and whether a count keeps to one.

use crate::limit::{Amount, Bound, CountRule, Gate, Limits, Rate};
use crate::view::WindowView;

use super::Spread;

/// The limits of a window, by index: of each count those of the nearest pattern. The others that fit come second.
pub(super) fn of_window(gates: &[Gate], name: &str, in_background: bool) -> (Vec<usize>, Vec<usize>) {
    let fits = |gate: &Gate| {
        // What was recorded before the first window is not meant by a pattern.
        gate.window.fits(name) && (!in_background || gate.window.is_name())
    };
    let fitting: Vec<usize> = (0..gates.len()).filter(|at| fits(&gates[*at])).collect();
    fitting.iter().copied().partition(|at| {
        let gate = &gates[*at];
        let same = fitting
            .iter()
            .map(|other| &gates[*other])
            .filter(|other| other.rule.group() == gate.rule.group());
        // Of equally near ones the first.
        let nearest = same.rev().max_by_key(|other| other.window.nearness());
        let is_as_near = |nearest: &Gate| {
            nearest.window == gate.window || (nearest.window.is_name() && gate.window.is_name())
        };
        nearest.is_some_and(is_as_near)
    })
}

/// Whether a window is held to anything: one in the background only if a limit names it.
pub(super) fn is_looked_at(limits: &Limits, view: &WindowView<'_>) -> bool {
    !view.in_background || !of_window(&limits.gates, &view.window.name, true).0.is_empty()
}

/// Whether a count keeps to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It does.
    Kept {
        /// And is less than the baseline's, in every run.
        is_better: bool,
        /// Not in every run.
        is_unstable: bool,
    },
    /// It does not, in any run.
    Broken {
        /// What was held against it.
        judged: Rate,
        /// What it should have been.
        allowed: Rate,
    },
    /// There is no baseline.
    NoBase,
}

/// Holds a count to a limit.
pub(super) fn judge(rule: &CountRule, measured: Spread, base: Option<Spread>) -> Judgement {
    let is_up = matches!(rule.bound, Bound::Max | Bound::Grow);
    // What is allowed at most whatever run of the baseline one takes, and at least.
    let (allowed, narrowest) = match (rule.bound, base) {
        (Bound::Max | Bound::Min, _) => {
            let Amount::Exact(allowed) = rule.amount else { return Judgement::NoBase };
            (allowed, allowed)
        }
        (_, None) => return Judgement::NoBase,
        (Bound::Grow, Some(base)) => {
            let of = |value: Rate| value.plus(rule.amount.of(value));
            (of(base.greatest), of(base.least))
        }
        (Bound::Shrink, Some(base)) => {
            let of = |value: Rate| value.minus(rule.amount.of(value));
            (of(base.least), of(base.greatest))
        }
    };
    let (judged, worst) =
        if is_up { (measured.least, measured.greatest) } else { (measured.greatest, measured.least) };
    let exceeds = |value: Rate, limit: Rate| if is_up { value > limit } else { value < limit };
    if exceeds(judged, allowed) {
        return Judgement::Broken { judged, allowed };
    }
    let is_better = match (rule.bound, base) {
        (Bound::Grow, Some(base)) => measured.greatest < base.least,
        _ => false,
    };
    Judgement::Kept { is_better, is_unstable: exceeds(worst, narrowest) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limit::{Metric, Origin, Pattern, Per, Rule, Severity};

    fn rule(bound: Bound, amount: &str) -> CountRule {
        let amount = Amount::parse(amount).unwrap();
        CountRule { metric: Metric::Allocs, per: Per::Iteration, bound, amount }
    }

    fn one(value: u64) -> Spread {
        range(value, value)
    }

    fn range(least: u64, greatest: u64) -> Spread {
        let average = Rate::new(least + greatest, 2);
        Spread { least: Rate::new(least, 1), greatest: Rate::new(greatest, 1), average }
    }

    fn is_broken(judgement: Judgement) -> bool {
        matches!(judgement, Judgement::Broken { .. })
    }

    #[test]
    fn equal_passes() {
        for (bound, amount, value, expected) in [
            (Bound::Max, "10", 10, false),
            (Bound::Max, "10", 11, true),
            (Bound::Max, "10.5", 11, true),
            (Bound::Min, "10", 10, false),
            (Bound::Min, "10", 9, true),
            (Bound::Grow, "10 %", 11, false),
            (Bound::Grow, "10 %", 12, true),
            (Bound::Grow, "0", 10, false),
            (Bound::Grow, "0", 11, true),
            (Bound::Shrink, "10 %", 9, false),
            (Bound::Shrink, "10 %", 8, true),
            (Bound::Shrink, "200 %", 0, false),
        ] {
            assert_eq!(
                is_broken(judge(&rule(bound, amount), one(value), Some(one(10)))),
                expected,
                "{bound:?} {amount} {value}"
            );
        }
    }

    #[test]
    fn percent_of_nothing_allow_nothing() {
        let grow = rule(Bound::Grow, "50 %");
        assert!(is_broken(judge(&grow, one(1), Some(one(0)))));
        assert_eq!(
            judge(&grow, one(0), Some(one(0))),
            Judgement::Kept { is_better: false, is_unstable: false }
        );
        assert_eq!(judge(&grow, one(0), None), Judgement::NoBase);
    }

    #[test]
    fn runs_have_to_agree() {
        let max = rule(Bound::Max, "10");
        assert_eq!(judge(&max, range(9, 12), None), Judgement::Kept { is_better: false, is_unstable: true });
        assert!(is_broken(judge(&max, range(11, 12), None)));
        let grow = rule(Bound::Grow, "0");
        assert!(!is_broken(judge(&grow, range(11, 12), Some(range(9, 11)))));
        assert!(is_broken(judge(&grow, range(12, 13), Some(range(9, 11)))));
        let better = Judgement::Kept { is_better: true, is_unstable: false };
        assert_eq!(judge(&grow, range(7, 8), Some(range(9, 11))), better);
    }

    #[test]
    fn the_nearest_pattern_holds() {
        let gate = |pattern: &str, rule: CountRule| Gate {
            window: Pattern::Glob(pattern.into()),
            origin: Origin::Default,
            rule: Rule::Count(rule),
            severity: Severity::Hard,
            stated: None,
        };
        let bytes = CountRule { metric: Metric::Bytes, ..rule(Bound::Max, "3") };
        let gates = [
            gate("*", rule(Bound::Max, "1")),
            gate("*", bytes.clone()),
            gate("pars*", rule(Bound::Max, "2")),
            gate("pars*", rule(Bound::Min, "1")),
            gate("parse", bytes),
        ];
        assert_eq!(of_window(&gates, "parse", false), (vec![2, 3, 4], vec![0, 1]));
        assert_eq!(of_window(&gates, "other", false), (vec![0, 1], vec![]));
        assert_eq!(of_window(&gates, "parse", true), (vec![4], vec![]));
    }

    proptest! {
        #[test]
        fn what_is_in_between_breaks_no_limit(base in any::<u32>(), change in any::<u32>(), percent in 0_u64..1000) {
            let (base, change) = (u64::from(base), u64::from(change));
            let text = format!("{percent} %");
            let grows = is_broken(judge(&rule(Bound::Grow, &text), one(change), Some(one(base))));
            prop_assert_eq!(grows, u128::from(change) * 100 > u128::from(base) * u128::from(100 + percent));
            let shrinks = is_broken(judge(&rule(Bound::Shrink, &text), one(change), Some(one(base))));
            let least = u128::from(base) * u128::from(100_u64.saturating_sub(percent));
            prop_assert_eq!(shrinks, u128::from(change) * 100 < least);
            prop_assert!(!(grows && shrinks));
        }
    }
}
