//! Limits of stacks: each by itself, whatever the window's total does.

use std::collections::HashSet;

use crate::call_site::CallSites;
use crate::diff::{Kind, Pair, Side, WindowDiff};
use crate::limit::{Gate, Metric, Per, Rate, StackChange, StackRule};
use crate::view::{Selection, stacks_fitting};

use super::guilty::of_stacks;
use super::{Broken, CheckOptions, Compared, Finding, Note, Spread, WindowAt};

/// Holds the stacks of a window to one limit. `has_new`: whether another limit says what becomes of new stacks.
pub(super) fn judge(
    compared: &Compared<'_>,
    at: WindowAt,
    (gate, rule): (&Gate, &StackRule),
    has_new: bool,
    judges_unstable: bool,
    options: &CheckOptions,
) -> (Option<Finding>, Option<Note>) {
    let Some(window) = compared.pair(at) else { return (None, None) };
    let fits = fitting(compared, rule, options);
    let metric = match &rule.what {
        StackChange::New | StackChange::Renamed => Metric::Allocs,
        StackChange::Grow(metric, _) => *metric,
    };
    let entries = window.entries.iter().filter(|entry| entry.kind == Kind::RenamedFrom);
    let renamed: HashSet<usize> = entries.flat_map(|entry| entry.pairs.iter().copied()).collect();
    let mut broken: Vec<Excess> = Vec::new();
    let mut unstable = 0;
    for (index, pair) in window.pairs.iter().enumerate() {
        if !fits.as_ref().is_none_or(|fits| holds(window, pair, fits)) {
            continue;
        }
        let [base, change] = [Side::Base, Side::Change].map(|side| {
            let spread = of_pair(compared, window, pair, side, metric);
            if judges_unstable { spread.averaged() } else { spread }
        });
        let is_new = pair.rows[0].is_empty();
        let (allowed, may_exceed) = match &rule.what {
            StackChange::New if is_new && !renamed.contains(&index) => (Rate::ZERO, Rate::ZERO),
            StackChange::Renamed if renamed.contains(&index) => (Rate::ZERO, Rate::ZERO),
            StackChange::Grow(_, amount) if !(is_new && has_new) => {
                (base.greatest.plus(amount.of(base.greatest)), base.least.plus(amount.of(base.least)))
            }
            _ => continue,
        };
        if change.least > allowed {
            broken.push(Excess { pair: index, over: change.least.minus(allowed), base, change, allowed });
        } else if change.greatest > may_exceed && (change.is_unstable() || base.is_unstable()) {
            unstable += 1;
        }
    }
    broken.sort_by(|a, b| b.over.cmp(&a.over).then(a.pair.cmp(&b.pair)));
    let note = (unstable > 0).then_some(Note::UnstableStacks { window: at, stacks: unstable });
    let Some(first) = broken.first() else { return (None, note) };
    let pairs: Vec<usize> = broken.iter().map(|excess| excess.pair).collect();
    let finding = Finding {
        severity: gate.severity,
        window: at,
        origin: gate.origin.clone(),
        broken: match &rule.what {
            StackChange::New => Broken::NewStack { stacks: pairs.len() as u64 },
            StackChange::Renamed => Broken::RenamedStack { stacks: pairs.len() as u64 },
            StackChange::Grow(_, amount) => Broken::StackGrew { amount: *amount, stacks: pairs.len() as u64 },
        },
        metric,
        per: Per::Iteration,
        measured: first.change,
        base: Some(first.base),
        judged: first.change.least,
        allowed: first.allowed,
        guilty: of_stacks(window, &pairs),
    };
    (Some(finding), note)
}

/// A stack that broke a limit.
struct Excess {
    pair: usize,
    over: Rate,
    base: Spread,
    change: Spread,
    allowed: Rate,
}

fn of_pair(
    compared: &Compared<'_>,
    window: &WindowDiff<'_>,
    pair: &Pair,
    side: Side,
    metric: Metric,
) -> Spread {
    let Some(diff) = &compared.diff else { return Spread::ZERO };
    let at = side.index();
    let rows = pair.rows[at].iter().filter_map(|row| window.views[at].rows.get(*row)).map(|row| &*row.row);
    let runs = diff.profiles[at].environment.runs();
    Spread::of(&pair.counts[at], rows, window.views[at].window, (metric, Per::Iteration), runs)
}

/// By side, which stacks of the profiles a limit is for; `None`: all.
fn fitting(compared: &Compared<'_>, rule: &StackRule, options: &CheckOptions) -> Option<[Vec<bool>; 2]> {
    let diff = compared.diff.as_ref()?;
    if rule.under.is_empty() && rule.root.is_empty() {
        return None;
    }
    let selection = Selection { filter: rule.under.clone(), root: rule.root.clone(), ..Selection::default() };
    Some(
        diff.profiles.map(|profile| {
            stacks_fitting(profile, &selection, &CallSites::new(profile, &options.diff.rules))
        }),
    )
}

/// Whether a limit is for a pair: by the change where it has the stack.
fn holds(window: &WindowDiff<'_>, pair: &Pair, fits: &[Vec<bool>; 2]) -> bool {
    let side = usize::from(!pair.rows[1].is_empty());
    let stacks = pair.rows[side].iter().filter_map(|row| window.views[side].rows.get(*row));
    stacks.map(|row| row.row.stack).any(|stack| fits[side].get(stack).copied().unwrap_or(false))
}
