//! A verdict in words: what every form of it says.
//!
//! ```text
//! error: window "parse": 76.00 allocs/iter, at most 75.00 allowed (+1.00): limits.toml:4
//! └───┘  └──────────────────────────────────────────────────────────────┘  └───────────┘
//! level  message                                                          where the limit stands
//! ```

use heaptally_profile::call_site::CallSites;
use heaptally_profile::check::{Broken, Finding, Guilty, Note, Outcome, Side, Spread, Verdict, WindowAt};
use heaptally_profile::diff::{Entry, Kind, Pair, WindowDiff};
use heaptally_profile::frame::Frame;
use heaptally_profile::limit::{Amount, Bound, Metric, Origin, Per, Rate, Severity};
use heaptally_profile::view::RowView;

use crate::Options;
use crate::escape::{escape, quote};
use crate::frame::{short_names, source_file};
use crate::number::{counted, group, share};
use crate::path::{is_own, shorten};
use crate::text::diff::words;

mod unmeasured;

pub use unmeasured::reason;
use unmeasured::unmeasured;

/// How grave a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warning,
    Note,
}

/// Something that a verdict says.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) level: Level,
    /// A word for the kind of it, which does not change.
    pub(crate) rule: &'static str,
    /// The window, where it is of one.
    pub(crate) window: Option<String>,
    /// What, without where the limit stands. Escaped.
    pub(crate) message: String,
    /// Where the limit stands.
    pub(crate) origin: Option<Origin>,
    /// The guilty stacks, the most important first.
    pub(crate) sites: Vec<Site>,
    /// Of which count, if it is of one.
    pub(crate) count: Option<(Metric, Per)>,
}

/// A guilty stack by its call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The function of the call site. Escaped.
    pub(crate) function: String,
    /// Its file, from the project's folder where it lies in it.
    pub(crate) file: String,
    /// Its line, 0 when unknown.
    pub(crate) line: u32,
    /// The place in the user's own sources: the call site's, or else the nearest caller's.
    pub(crate) own: Option<(String, u32)>,
    /// By how much, and what happened. Escaped.
    pub(crate) amount: String,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Statement {
    /// Whether it is of a count that tables of stacks have no column for.
    pub(crate) fn has_no_column(&self) -> bool {
        self.count.is_some_and(|(metric, _)| !matches!(metric, Metric::Allocs | Metric::Bytes))
    }

    /// The message with where the limit stands.
    pub(crate) fn text(&self) -> String {
        match &self.origin {
            Some(Origin::File { path, line }) => format!("{}: {}:{line}", self.message, escape(path)),
            Some(origin) => format!("{} ({origin})", self.message),
            None => self.message.clone(),
        }
    }
}

impl Site {
    /// `Parser::name  src/parser.rs:118`.
    pub(crate) fn text(&self) -> String {
        match (self.file.is_empty(), self.line) {
            (true, _) => self.function.clone(),
            (false, 0) => format!("{}  {}", self.function, escape(&self.file)),
            (false, line) => format!("{}  {}:{line}", self.function, escape(&self.file)),
        }
    }
}

/// All that a verdict says, by its kind. Each is in the order of the verdict.
pub(crate) struct Statements {
    pub(crate) unmeasured: Vec<Statement>,
    pub(crate) findings: Vec<Statement>,
    pub(crate) notes: Vec<Statement>,
}

/// All that a verdict says. With `is_strict` notes that fail it are errors.
pub(crate) fn parts(verdict: &Verdict<'_>, options: &Options, is_strict: bool) -> Statements {
    let teller = Teller::new(verdict, options);
    Statements {
        unmeasured: verdict.unmeasured.iter().map(unmeasured).collect(),
        findings: verdict.findings.iter().map(|finding| teller.finding(finding)).collect(),
        notes: verdict.notes.iter().map(|note| teller.note(note, is_strict)).collect(),
    }
}

/// The same in the order of its importance.
pub(crate) fn statements(verdict: &Verdict<'_>, options: &Options, is_strict: bool) -> Vec<Statement> {
    let Statements { unmeasured, findings, notes } = parts(verdict, options, is_strict);
    let mut statements: Vec<Statement> = unmeasured.into_iter().chain(findings).chain(notes).collect();
    statements.sort_by_key(|statement| statement.level);
    statements
}

/// What a verdict comes to, in a word.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Improvement => "improvement",
        Outcome::NotStrict => "not_strict",
        Outcome::Regression => "regression",
        Outcome::Unmeasured => "unmeasured",
    }
}

/// The first line: what came out, and of whom.
pub(crate) fn answer(verdict: &Verdict<'_>, statements: &[Statement], is_strict: bool) -> String {
    let limits = counted(verdict.checked.iter().map(|checked| checked.limits).sum(), "limit", "limits");
    let windows = counted(verdict.checked.len() as u64, "window", "windows");
    let first = statements.iter().find(|statement| statement.level == Level::Error);
    let message = first.map_or("", |statement| statement.message.as_str());
    match verdict.outcome(is_strict) {
        Outcome::Passed => format!("passed: {limits} in {windows}"),
        Outcome::Improvement => format!("passed: {limits} in {windows}, and better than they ask for"),
        Outcome::NotStrict => format!("FAILED, since --strict was asked for: {message}"),
        Outcome::Unmeasured => format!("NOT MEASURED: {message}"),
        Outcome::Regression => {
            match first.and_then(|statement| Some((statement, statement.sites.first()?))) {
                Some((statement, site)) => {
                    let window = statement.window.as_deref().map(quote).unwrap_or_default();
                    format!("FAILED: {} in {window}: {}", site.amount, site.text())
                }
                None => format!("FAILED: {message}"),
            }
        }
    }
}

/// Numbers with their unit, as those of one count are written.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    metric: Metric,
    per: Per,
    is_divided: bool,
}

impl Unit {
    pub(crate) fn of(verdict: &Verdict<'_>, at: WindowAt, (metric, per): (Metric, Per)) -> Self {
        let change = verdict.compared.window(at).map_or(0, |view| view.window.iterations);
        let base = verdict.compared.pair(at).map_or(0, |pair| pair.views[0].window.iterations);
        Self {
            metric,
            per,
            is_divided: change > 1 || base > 1 || verdict.compared.change.environment.runs() > 1,
        }
    }

    fn name(self) -> String {
        let name = match self.metric {
            Metric::Allocs => "allocs",
            Metric::Bytes => "B",
            Metric::Live => "live",
            Metric::LiveBytes => "live B",
            Metric::Temporary => "temporary",
            Metric::Reallocs => "reallocs",
        };
        match self.per {
            Per::Iteration if self.is_divided => format!("{name}/iter"),
            Per::Iteration => name.to_owned(),
            Per::Run => format!("{name} in all"),
        }
    }

    /// A number that is written, with its unit: `+1 alloc`, `2 allocs`.
    fn with(self, number: &str) -> String {
        let name = self.name();
        let is_one = number.trim_start_matches(['+', '-']) == "1";
        format!("{number} {}", if is_one && name == "allocs" { "alloc" } else { &name })
    }

    /// A number, with so many decimals that it is not taken for `other`, which differs.
    fn number(self, rate: Rate, other: Option<Rate>) -> String {
        let is_whole = self.metric.is_bytes() || self.per == Per::Run || !self.is_divided;
        let least = if is_whole && rate.has_decimals(0) { 0 } else { 2 };
        let is_clear = |decimals: &usize| {
            let text = rate.rounded(*decimals);
            let is_nothing = !rate.is_zero() && text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            let is_taken = other.is_some_and(|other| other != rate && other.rounded(*decimals) == text);
            !is_nothing && !is_taken
        };
        let text = rate.rounded((least..=12).find(is_clear).unwrap_or(12));
        match text.split_once('.') {
            Some((whole, decimals)) => format!("{}.{decimals}", group(whole)),
            None => group(&text),
        }
    }

    fn spread(self, spread: Spread, other: Option<Rate>) -> String {
        match spread.is_unstable() {
            true => {
                format!("{} to {}", self.number(spread.least, other), self.number(spread.greatest, other))
            }
            false => self.number(spread.average, other),
        }
    }

    /// How far a number is from another, with its sign.
    fn delta(self, from: Rate, to: Rate) -> String {
        match to >= from {
            true => format!("+{}", self.number(to.minus(from), None)),
            false => format!("-{}", self.number(from.minus(to), None)),
        }
    }
}

fn amount(amount: Amount, unit: Unit) -> String {
    match amount {
        Amount::Exact(rate) => unit.number(rate, None),
        Amount::Percent(percent) => {
            let decimals = (0..=9).find(|decimals| percent.has_decimals(*decimals)).unwrap_or(9);
            format!("{} %", percent.rounded(decimals))
        }
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Base => "the base",
        Side::Change => "the change",
    }
}

struct Teller<'a, 'p> {
    verdict: &'a Verdict<'p>,
    options: &'a Options,
    /// By side; the base's may be missing.
    sites: [Option<CallSites<'p>>; 2],
}

impl<'a, 'p> Teller<'a, 'p> {
    fn new(verdict: &'a Verdict<'p>, options: &'a Options) -> Self {
        let base = verdict.compared.diff.as_ref().map(|diff| diff.profiles[0]);
        let sites =
            [base, Some(verdict.compared.change)].map(|of| of.map(|of| CallSites::new(of, &options.rules)));
        Self { verdict, options, sites }
    }

    fn finding(&self, finding: &Finding) -> Statement {
        let unit = Unit::of(self.verdict, finding.window, (finding.metric, finding.per));
        let (measured, allowed) = (finding.judged, finding.allowed);
        let from_base = finding.base.map(|base| format!("{} → ", unit.spread(base, Some(measured))));
        let over = unit.delta(allowed, measured);
        let shown = unit.with(&unit.spread(finding.measured, Some(allowed)));
        let limit = unit.number(allowed, Some(measured));
        let (rule, message) = match finding.broken {
            Broken::Count(Bound::Max, _) => {
                ("too-many", format!("{shown}, at most {limit} allowed ({over})"))
            }
            Broken::Count(Bound::Min, _) => {
                ("too-few", format!("{shown}, at least {limit} expected ({over})"))
            }
            Broken::Count(bound, by) => {
                let is_up = bound == Bound::Grow;
                let base =
                    finding.base.map_or(Rate::ZERO, |base| if is_up { base.greatest } else { base.least });
                let delta = unit.delta(base, measured);
                let is_none = matches!(by, Amount::Exact(rate) | Amount::Percent(rate) if rate.is_zero());
                let (rule, verb, word) =
                    if is_up { ("grew", "grow", "more") } else { ("shrank", "shrink", "fewer") };
                let may = match is_none {
                    true => format!("may not {verb}"),
                    false => format!(
                        "{} {word} than {} allowed: {limit}",
                        amount(by, unit),
                        unit.number(base, None)
                    ),
                };
                (rule, format!("{}{shown} ({delta}), {may}", from_base.unwrap_or_default()))
            }
            Broken::NewStack { stacks } => {
                let most = if stacks > 1 { ", the most with" } else { " with" };
                ("new-stack", format!("{}{most} {shown}", counted(stacks, "new stack", "new stacks")))
            }
            Broken::RenamedStack { stacks } => {
                let most = if stacks > 1 { ", the most with" } else { ", with" };
                let stacks =
                    counted(stacks, "stack is taken for a renamed one", "stacks are taken for renamed ones");
                ("renamed-stack", format!("{stacks}{most} {shown}"))
            }
            Broken::StackGrew { amount: by, stacks } => {
                let most = if stacks > 1 { ", the most" } else { "" };
                let is_none = matches!(by, Amount::Exact(rate) | Amount::Percent(rate) if rate.is_zero());
                let may = match is_none {
                    true => "may not grow".to_owned(),
                    false => format!("{} more allowed", amount(by, unit)),
                };
                let base = from_base.unwrap_or_default();
                (
                    "stack-grew",
                    format!("{} grew{most} {base}{shown}, {may}", counted(stacks, "stack", "stacks")),
                )
            }
        };
        Statement {
            level: if finding.severity == Severity::Hard { Level::Error } else { Level::Warning },
            rule,
            window: Some(self.verdict.compared.name(finding.window).to_owned()),
            message: format!("window {}: {message}", self.window(finding.window)),
            origin: Some(finding.origin.clone()),
            sites: finding.guilty.iter().filter_map(|guilty| self.site(finding, *guilty)).collect(),
            count: Some((finding.metric, finding.per)),
        }
    }

    /// The name of a window, in quotes, and its program where there are several.
    fn window(&self, at: WindowAt) -> String {
        let name = quote(self.verdict.compared.name(at));
        let of_many = self.verdict.compared.change.images.len() > 1;
        match self.verdict.compared.window(at).and_then(|view| view.image).filter(|_| of_many) {
            Some(image) => format!("{name} of {}", escape(&image.label)),
            None => name,
        }
    }

    fn site(&self, finding: &Finding, guilty: Guilty) -> Option<Site> {
        let at = finding.window;
        let pair = self.verdict.compared.pair(at);
        let unit = Unit { per: Per::Iteration, ..Unit::of(self.verdict, at, (finding.metric, finding.per)) };
        match guilty {
            Guilty::Entry(entry) => {
                let entry = pair?.entries.get(entry)?;
                self.of_entry(pair?, entry, unit)
            }
            Guilty::Pair(index) => self.of_entry(pair?, &of_pair(pair?.pairs.get(index)?, index)?, unit),
            Guilty::Row(row) => {
                let view = self.verdict.compared.window(at)?;
                let row = view.rows.get(row)?;
                let rate = Rate::new(finding.metric.of(&row.row.counts), view.window.iterations);
                let whole = finding.metric.of(&view.counts);
                let of = share(finding.metric.of(&row.row.counts), whole);
                let amount = format!("{} ({of} of all)", unit.with(&unit.number(rate, None)));
                self.of_row(Side::Change, row, amount)
            }
        }
    }

    fn of_entry(&self, window: &WindowDiff<'p>, entry: &Entry, unit: Unit) -> Option<Site> {
        let rate = |side: usize| {
            Rate::new(unit.metric.of(&entry.counts[side]), window.views[side].window.iterations)
        };
        // What changed is not always what the limit is of.
        let kind = crate::text::diff::kind(entry.kind);
        let amount = format!("{} ({kind})", unit.with(&unit.delta(rate(0), rate(1))));
        let (side, row) = entry.row;
        let site = self.of_row(side, window.views[side.index()].rows.get(row)?, amount)?;
        Some(if entry.is_line_open { Site { line: 0, ..site } } else { site })
    }

    fn of_row(&self, side: Side, row: &RowView<'p>, amount: String) -> Option<Site> {
        let profile = match side {
            Side::Base => self.verdict.compared.diff.as_ref()?.profiles[0],
            Side::Change => self.verdict.compared.change,
        };
        let sites = self.sites[side.index()].as_ref()?;
        let frames: Vec<Frame<'p>> = row.frames(profile).collect();
        let (at, frame) = match row.call_site(profile, sites) {
            Some(found) => found,
            None => (frames.len().checked_sub(1)?, *frames.last()?),
        };
        let project = self.options.project.as_deref();
        let short = |file: &str| shorten(file, project).into_owned();
        // The C library's sources have paths from its own folder: what is passed over is not the user's.
        let is_listed = |frame: &Frame<'p>| {
            let location = profile.locations.get(frame.location);
            location.is_some_and(|location| sites.lists(location, frame.line_index))
        };
        let is_ours = |frame: &&Frame<'p>| {
            frame.line > 0 && frame.file().is_some_and(|file| is_own(file, project)) && !is_listed(frame)
        };
        let own = frames.iter().skip(at).find(is_ours);
        Some(Site {
            function: {
                let [_, short] = short_names(&frame);
                short
            },
            file: source_file(&frame).map(short).unwrap_or_default(),
            line: frame.line,
            own: own.map(|frame| (short(frame.file().unwrap_or_default()), frame.line)),
            amount,
        })
    }

    fn note(&self, note: &Note, is_strict: bool) -> Statement {
        let mut of_window = None;
        let mut stands_at = None;
        let mut level = Level::Note;
        let mut take = |at: WindowAt| {
            of_window = Some(self.verdict.compared.name(at).to_owned());
            self.window(at)
        };
        let (rule, message) = match note {
            Note::Improvement { window, metric, per, measured, than, is_base, origin } => {
                let unit = Unit::of(self.verdict, *window, (*metric, *per));
                let window = take(*window);
                let shown = unit.with(&unit.spread(*measured, Some(*than)));
                let by = unit.delta(*than, measured.greatest);
                stands_at = Some(origin.clone());
                let message = match is_base {
                    true => format!(
                        "window {window}: improved: {} → {shown} ({by})",
                        unit.number(*than, Some(measured.greatest))
                    ),
                    false => format!(
                        "window {window}: {shown}, below its limit of {} ({by}): `heaptally limits update --ratchet` lowers it",
                        unit.number(*than, Some(measured.greatest))
                    ),
                };
                ("improvement", message)
            }
            Note::UnusedLimit { origin, pattern, has_nearer } => {
                level = Level::Warning;
                stands_at = Some(origin.clone());
                let why = match has_nearer {
                    true => "each window that fits has a nearer one",
                    false => "no window fits",
                };
                ("unused-limit", format!("unused limit for {}: {why}", quote(pattern)))
            }
            Note::NoLimit { window, has_defaults } => {
                let window = take(*window);
                let rest = match has_defaults {
                    true => ": it may not grow",
                    false => ", and is not checked: `heaptally limits update` adds one",
                };
                ("no-limit", format!("window {window} has no limit{rest}"))
            }
            Note::NotInBase { window } => {
                let window = take(*window);
                ("not-in-base", format!("window {window} is new: the base does not have it"))
            }
            Note::NotInChange { window } => {
                of_window = Some(window.clone());
                level = Level::Warning;
                ("not-in-change", format!("window {} is in the base only: it was not checked", quote(window)))
            }
            Note::NeedsBase { origin } => {
                level = Level::Warning;
                stands_at = Some(origin.clone());
                (
                    "needs-base",
                    "limits that compare with a base were not checked: give one with --baseline".to_owned(),
                )
            }
            Note::Unstable { window, metric, per, measured, origin } => {
                level = Level::Warning;
                let unit = Unit::of(self.verdict, *window, (*metric, *per));
                let window = take(*window);
                stands_at = Some(origin.clone());
                let shown = unit.with(&unit.spread(*measured, None));
                ("unstable", format!("window {window}: {shown}: not all runs keep to the limit"))
            }
            Note::UnstableStacks { window, stacks } => {
                let window = take(*window);
                let stacks = counted(*stacks, "stack was", "stacks were");
                (
                    "unstable-stacks",
                    format!("window {window}: {stacks} not judged, since the runs differ: --unstable does"),
                )
            }
            Note::Ignored { origin, reason, until, stacks, allocations } => {
                stands_at = Some(origin.clone());
                let stacks = counted(*stacks, "stack", "stacks");
                let allocations = counted(*allocations, "allocation", "allocations");
                let message =
                    format!("ignored until {until}: {stacks} with {allocations} ({})", escape(reason));
                ("ignored", message)
            }
            Note::UnusedIgnore { origin } => {
                level = Level::Warning;
                stands_at = Some(origin.clone());
                ("unused-ignore", "no stack is there that is to be ignored".to_owned())
            }
            Note::ExpiredIgnore { origin, until, reason } => {
                level = Level::Warning;
                stands_at = Some(origin.clone());
                (
                    "expired-ignore",
                    format!("stacks are not ignored any more, since {until} is over ({})", escape(reason)),
                )
            }
            Note::Condition(condition) => {
                level = Level::Warning;
                ("other-conditions", words(condition))
            }
            Note::Coverage { side: of, warning } => {
                level = Level::Warning;
                ("coverage", format!("{}: {}", side(*of), escape(warning)))
            }
        };
        if is_strict && note.fails_strict() {
            level = Level::Error;
        }
        Statement {
            level,
            rule,
            window: of_window,
            message,
            origin: stands_at,
            sites: Vec::new(),
            count: None,
        }
    }
}

/// A stack as the entry of its own.
pub(crate) fn of_pair(pair: &Pair, index: usize) -> Option<Entry> {
    let (side, row) = match (pair.rows[1].first(), pair.rows[0].first()) {
        (Some(row), _) => (Side::Change, *row),
        (None, row) => (Side::Base, *row?),
    };
    let [base, change] = pair.counts.map(|counts| counts.allocations);
    Some(Entry {
        kind: match (pair.rows[0].is_empty(), pair.rows[1].is_empty()) {
            (true, _) => Kind::New,
            (_, true) => Kind::Gone,
            _ if change >= base => Kind::More,
            _ => Kind::Fewer,
        },
        pairs: vec![index],
        counts: pair.counts,
        row: (side, row),
        site: 0,
        is_line_open: false,
        lines: Vec::new(),
        parting: None,
        counterpart: None,
    })
}
