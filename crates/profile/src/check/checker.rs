//! One window after the other is held to its limits.

use crate::diff::{Side, What};
use crate::limit::{
    Amount, Bound, CountRule, Gate, Limits, Metric, Origin, Pattern, Per, Rate, Rule, Severity, StackChange,
};
use crate::model::INCOMPLETE;

use super::gate::Judgement;
use super::{
    Broken, CheckOptions, Checked, Compared, Finding, Lack, Note, Spread, Subject, Unmeasured, Verdict, Why,
    WindowAt, gate, guilty, measurement, stack,
};

/// Checks a profile.
pub fn check<'p>(subject: &'p Subject, limits: &Limits, options: &CheckOptions) -> Verdict<'p> {
    let compared = Compared::new(subject, &options.diff);
    let unmeasured = measurement::of_compared(&compared, subject, limits, options);
    let mut verdict =
        Verdict { compared, findings: Vec::new(), unmeasured, notes: Vec::new(), checked: Vec::new() };
    let gates = limits.gates.len();
    let mut checker = Checker { limits, options, uses: vec![false; gates], most: vec![None; gates] };
    for (side, profile) in subject.sides() {
        let is_note = |warning: &&String| options.accepts_incomplete || !warning.starts_with(INCOMPLETE);
        for warning in profile.images.iter().flat_map(|image| &image.warnings).filter(is_note) {
            verdict.notes.push(Note::Coverage { side, warning: warning.clone() });
        }
    }
    for at in verdict.compared.windows() {
        checker.window(&mut verdict, at);
    }
    if let Some(diff) = &verdict.compared.diff {
        for view in diff.unpaired[0].iter().filter(|view| !view.in_background) {
            verdict.notes.push(Note::NotInChange { window: view.window.name.clone() });
        }
        for condition in &diff.conditions {
            let is_environment = !matches!(
                condition.what,
                What::Incomplete
                    | What::Ending
                    | What::Windows
                    | What::Nameless
                    | What::Definitions
                    | What::Estimates
                    | What::LiveOnly
            );
            // A run that failed is told as such already, unless it is accepted.
            if condition.what == What::Ending && !options.accepts_failed {
                continue;
            }
            if options.needs_same_environment && is_environment {
                let why = Why::Environment(condition.clone());
                verdict.unmeasured.push(Unmeasured { side: Side::Change, window: None, why });
            } else {
                verdict.notes.push(Note::Condition(condition.clone()));
            }
        }
    } else if let Some(origin) = checker.first_that_needs_base() {
        verdict.notes.push(Note::NeedsBase { origin });
    }
    checker.unused(&mut verdict);
    checker.loose(&mut verdict);
    let judged: u64 = verdict.checked.iter().map(|checked| checked.limits).sum();
    if judged == 0 && verdict.unmeasured.is_empty() {
        let why = Why::NothingJudged(checker.lack(&verdict));
        verdict.unmeasured.push(Unmeasured { side: Side::Change, window: None, why });
    }
    verdict.notes.extend(subject.notes.iter().cloned());
    let grown = verdict.compared.grown();
    let rank = |at: WindowAt| grown.iter().position(|grown| *grown == at).unwrap_or(grown.len());
    verdict
        .findings
        .sort_by_key(|finding| (finding.severity, !finding.broken.is_count(), rank(finding.window)));
    verdict
}

struct Checker<'a> {
    limits: &'a Limits,
    options: &'a CheckOptions,
    /// By limit: whether a window has it.
    uses: Vec<bool>,
    /// By limit that is a hard `max`: of its windows the one that counts most.
    most: Vec<Option<Most>>,
}

/// What is held against a `max`.
#[derive(Clone)]
struct Most {
    at: WindowAt,
    shown: Spread,
    /// What `limit::update` takes: of several runs the greatest, or the average where the file has that judged.
    count: Rate,
}

impl Checker<'_> {
    fn window(&mut self, verdict: &mut Verdict<'_>, at: WindowAt) {
        let Some(view) = verdict.compared.window(at) else { return };
        if !gate::is_looked_at(self.limits, view) {
            return;
        }
        let (name, in_background) = (view.window.name.clone(), view.in_background);
        let (own, _) = gate::of_window(&self.limits.gates, &name, in_background);
        own.iter().for_each(|gate| self.uses[*gate] = true);
        let mut gates: Vec<(Option<usize>, &Gate)> =
            own.iter().filter_map(|at| Some((Some(*at), self.limits.gates.get(*at)?))).collect();
        let has_base = verdict.compared.pair(at).is_some();
        if gates.is_empty() {
            let has_defaults = has_base && !self.options.defaults.is_empty();
            if has_defaults {
                gates = self.options.defaults.iter().map(|gate| (None, gate)).collect();
            }
            if self.options.has_files {
                verdict.notes.push(Note::NoLimit { window: at, has_defaults });
            }
        }
        if verdict.compared.diff.is_some() && !has_base {
            verdict.notes.push(Note::NotInBase { window: at });
        }
        gates.retain(|(_, gate)| gate.severity != Severity::Off);
        let judges_unstable =
            self.limits.judges_unstable(&name).unwrap_or(false) || self.options.judges_unstable;
        let mut checked = Checked { window: at, limits: 0, most: Vec::new() };
        let mut better: Vec<(Metric, Per)> = Vec::new();
        for (index, gate) in &gates {
            match &gate.rule {
                Rule::Count(rule) => {
                    if let (Some(index), Bound::Max, Severity::Hard) = (index, rule.bound, gate.severity) {
                        self.note_most(verdict, at, *index, (rule.metric, rule.per));
                    }
                    self.count(verdict, at, (gate, rule), judges_unstable, &mut checked, &mut better);
                }
                Rule::Stack(rule) if has_base => {
                    let off = self.off(&name, in_background);
                    let has_new = gates.iter().map(|(_, gate)| gate).chain(&off).any(
                        |other| matches!(&other.rule, Rule::Stack(rule) if rule.what == StackChange::New),
                    );
                    let (finding, note) = stack::judge(
                        &verdict.compared,
                        at,
                        (gate, rule),
                        has_new,
                        judges_unstable,
                        self.options,
                    );
                    checked.limits += 1;
                    verdict.findings.extend(finding);
                    if let Some(note) = note.filter(|note| !verdict.notes.contains(note)) {
                        verdict.notes.push(note);
                    }
                }
                Rule::Stack(_) => {}
            }
        }
        verdict.checked.push(checked);
    }

    /// Limits of a window that only say that something is none.
    fn off(&self, name: &str, in_background: bool) -> Vec<&Gate> {
        let (own, _) = gate::of_window(&self.limits.gates, name, in_background);
        let gates = own.into_iter().filter_map(|at| self.limits.gates.get(at));
        let off = gates.chain(&self.options.defaults).filter(|gate| gate.severity == Severity::Off);
        off.collect()
    }

    fn count(
        &self,
        verdict: &mut Verdict<'_>,
        at: WindowAt,
        (gate, rule): (&Gate, &CountRule),
        judges_unstable: bool,
        checked: &mut Checked,
        better: &mut Vec<(Metric, Per)>,
    ) {
        let what = (rule.metric, rule.per);
        let is_relative = matches!(rule.bound, Bound::Grow | Bound::Shrink);
        if rule.metric.needs_lifetimes()
            && let Some(side) = self.without_lifetimes(&verdict.compared, at, is_relative)
        {
            let why = Why::NoLifetimes { metric: rule.metric, origin: gate.origin.clone() };
            let window = Some(verdict.compared.name(at).to_owned());
            verdict.unmeasured.push(Unmeasured { side, window, why });
            return;
        }
        let averaged = |spread: Spread| if judges_unstable { spread.averaged() } else { spread };
        let measured = averaged(verdict.compared.measured(at, what));
        let base = verdict.compared.of_base(at, what).map(averaged);
        let origin = gate.origin.clone();
        match gate::judge(rule, measured, base) {
            Judgement::NoBase => return,
            Judgement::Kept { is_better, is_unstable } => {
                if is_better && gate.severity == Severity::Hard && !better.contains(&what) {
                    better.push(what);
                    let than = base.map_or(Rate::ZERO, |base| base.least);
                    let (metric, per) = what;
                    verdict.notes.push(Note::Improvement {
                        window: at,
                        metric,
                        per,
                        measured,
                        than,
                        is_base: true,
                        origin,
                    });
                }
                if is_unstable {
                    let (metric, per) = what;
                    let origin = gate.origin.clone();
                    let note = Note::Unstable { window: at, metric, per, measured, origin };
                    // A line may hold two limits of one count.
                    if !verdict.notes.contains(&note) {
                        verdict.notes.push(note);
                    }
                }
            }
            Judgement::Broken { judged, allowed } => {
                let guilty = guilty::of_count(&verdict.compared, at, rule.metric, rule.bound);
                verdict.findings.push(Finding {
                    severity: gate.severity,
                    window: at,
                    origin,
                    broken: Broken::Count(rule.bound, rule.amount),
                    metric: rule.metric,
                    per: rule.per,
                    measured,
                    base,
                    judged,
                    allowed,
                    guilty,
                });
            }
        }
        checked.limits += 1;
        if gate.severity == Severity::Hard && matches!(rule.bound, Bound::Max | Bound::Grow) {
            let most = match (rule.bound, rule.amount, base) {
                (Bound::Max, Amount::Exact(limit), _) => Some(limit),
                (_, amount, Some(base)) => Some(base.greatest.plus(amount.of(base.greatest))),
                _ => None,
            };
            if let Some(most) = most {
                match checked.most.iter_mut().find(|(metric, per, _)| (*metric, *per) == what) {
                    Some((.., known)) => *known = (*known).min(most),
                    None => checked.most.push((what.0, what.1, most)),
                }
            }
        }
    }

    /// The side that a limit needs and that did not follow blocks.
    fn without_lifetimes(&self, compared: &Compared<'_>, at: WindowAt, is_relative: bool) -> Option<Side> {
        if !compared.change.environment.lifetimes {
            return Some(Side::Change);
        }
        let base = compared.diff.as_ref().map(|diff| diff.profiles[0])?;
        let is_needed = is_relative && compared.pair(at).is_some();
        (is_needed && !base.environment.lifetimes).then_some(Side::Base)
    }

    /// Why no limit was judged.
    fn lack(&self, verdict: &Verdict<'_>) -> Lack {
        let has_base = verdict.compared.diff.is_some();
        match (self.limits.gates.is_empty(), self.uses.contains(&true)) {
            (true, _) if !has_base => Lack::Limit,
            (false, true) if !has_base && self.first_that_needs_base().is_some() => Lack::Base,
            _ => Lack::Window,
        }
    }

    fn first_that_needs_base(&self) -> Option<Origin> {
        let needs = |gate: &&Gate| match &gate.rule {
            Rule::Count(rule) => matches!(rule.bound, Bound::Grow | Bound::Shrink),
            Rule::Stack(_) => gate.severity != Severity::Off,
        };
        self.limits.gates.iter().find(needs).map(|gate| gate.origin.clone())
    }

    fn note_most(&mut self, verdict: &Verdict<'_>, at: WindowAt, index: usize, what: (Metric, Per)) {
        let shown = verdict.compared.measured(at, what);
        let is_averaged = self.limits.judges_unstable(verdict.compared.name(at)).unwrap_or(false);
        let count = if is_averaged { shown.average } else { shown.greatest.max(shown.average) };
        if let Some(most) = self.most.get_mut(index)
            && most.as_ref().is_none_or(|most| most.count < count)
        {
            *most = Some(Most { at, shown, count });
        }
    }

    /// Limits that could be lower: what `limit::update` with its ratchet makes lower, and nothing else.
    fn loose(&self, verdict: &mut Verdict<'_>) {
        for (gate, most) in self.limits.gates.iter().zip(&self.most) {
            let (Some(most), Rule::Count(rule)) = (most, &gate.rule) else { continue };
            let Amount::Exact(limit) = rule.amount else { continue };
            if !gate.would_be_lower(most.count) {
                continue;
            }
            let (at, what) = (most.at, (rule.metric, rule.per));
            // That it is less than the baseline's, too, is said in the same words or not at all.
            verdict.notes.retain(|note| {
                !matches!(note, Note::Improvement { window, metric, per, .. } if (*window, (*metric, *per)) == (at, what))
            });
            verdict.notes.push(Note::Improvement {
                window: at,
                metric: rule.metric,
                per: rule.per,
                measured: most.shown,
                than: gate.stated.unwrap_or(limit),
                is_base: false,
                origin: gate.origin.clone(),
            });
        }
    }

    /// Limits that no window has, once for each pattern.
    fn unused(&self, verdict: &mut Verdict<'_>) {
        let mut said: Vec<&Pattern> = Vec::new();
        for (gate, is_used) in self.limits.gates.iter().zip(&self.uses) {
            if *is_used || said.contains(&&gate.window) {
                continue;
            }
            let windows = &verdict.compared.change.windows;
            let fits = windows.iter().any(|window| gate.window.fits(&window.name));
            let is_selected = |name: &String| {
                let selected = &self.options.diff.selection.windows;
                selected.is_empty() || selected.contains(name)
            };
            let fits_selected =
                windows.iter().any(|window| gate.window.fits(&window.name) && is_selected(&window.name));
            // A window that was not asked for now has its limit all the same.
            if fits && !fits_selected {
                continue;
            }
            said.push(&gate.window);
            verdict.notes.push(Note::UnusedLimit {
                origin: gate.origin.clone(),
                pattern: gate.window.text().to_owned(),
                has_nearer: fits,
            });
        }
    }
}
