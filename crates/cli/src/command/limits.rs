//! `heaptally limits`: writes files of limits, and shows what they say.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use heaptally_profile::call_site::CallSites;
use heaptally_profile::check::{CheckOptions, Spread, Subject, check, unmeasured};
use heaptally_profile::diff::DiffOptions;
use heaptally_profile::limit::update::{Edit, Measured, Update as How, update};
use heaptally_profile::limit::{
    Amount, Bound, Gate, Limits, Metric, Per, Rule, Severity, StackChange, threshold,
};
use heaptally_profile::merge::merge;
use heaptally_profile::model::Profile;
use heaptally_profile::view::{View, WindowView};
use heaptally_report::escape::escape;
use heaptally_report::text::check::{reason, text};

use crate::baseline::read;
use crate::check::form::write;
use crate::check::limits_file::{self, Kind};
use crate::command::check::today;
use crate::exit::{Failure, UNREADABLE};
use crate::file_role::{self, Role, roles};
use crate::message::quote;
use crate::selection::{SelectionArgs, project, unfit_advice};
use crate::terminal::print;

/// Writes files of limits from profiles, and shows what they say.
#[derive(Args, Debug)]
pub(crate) struct LimitsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Update(Update),
    Show(Show),
}

/// Writes what a profile's windows allocate into a file of limits.
///
/// Only the numbers change: comments, order and everything else stay. A limit that is there gets the number that was
/// measured (a pattern the greatest of its windows, several runs the greatest of them); a window without any limit gets
/// one. What was not measured is not written.
#[derive(Args, Debug)]
struct Update {
    /// The profile; several are runs of one program.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    profile: Vec<PathBuf>,
    /// The file: TOML, made if it is not there; or thresholds of Swift's package-benchmark (TARGET.BENCHMARK.p90.json, or
    /// the folder of them), of which the metrics that are no counts of allocations stay.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    limits: PathBuf,
    /// Only lower limits; add and raise none.
    #[arg(long)]
    ratchet: bool,
    /// What windows without any limit get a limit for; can be given several times [default: allocs].
    #[arg(long, value_name = "COUNT", value_parser = metrics())]
    metric: Vec<Metric>,
    /// Do not write, but say what would be.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Shows the limits of files, and with a profile what its windows have and which limits are theirs.
#[derive(Args, Debug)]
struct Show {
    /// A file of limits, or a folder of thresholds.
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    limits: Vec<PathBuf>,
    /// A profile to hold them against.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    profile: Option<PathBuf>,
}

/// The counts by their names, with `-` as options have it.
fn metrics() -> impl TypedValueParser<Value = Metric> {
    let value = |metric: Metric| {
        let value = match metric {
            Metric::LiveBytes => PossibleValue::new("live-bytes").alias(metric.key()),
            _ => PossibleValue::new(metric.key()),
        };
        value.help(metric.meaning())
    };
    PossibleValuesParser::new(Metric::ALL.map(value))
        .try_map(|word| Metric::of_key(&word.replace('-', "_")).ok_or("no such count"))
}

impl LimitsCommand {
    /// Writes or shows.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self.command {
            Command::Update(update) => update.run(),
            Command::Show(show) => show.run(),
        }
    }
}

impl Update {
    fn run(self) -> anyhow::Result<u8> {
        let profiles = self.profile.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        let profile = merge(profiles).map_err(|error| {
            Failure::new(
                UNREADABLE,
                format!(
                    "the profiles are not runs of one program: {error}\ngive such as were recorded alike"
                ),
            )
        })?;
        let options = self.options(&profile)?;
        self.check_files()?;
        let mut edits = Vec::new();
        // All of them or none: each is known to be right before the first is written.
        let mut changed = Vec::new();
        for file in self.files()? {
            let before = existing(&file)?;
            let limits = before.as_deref().map(|text| limits_file::parse(&file, text)).transpose()?;
            let measured = measured(&profile, &limits.unwrap_or_default(), &options)?;
            let (after, of_file) = self.updated(&file, before.as_deref(), &measured)?;
            if before.as_deref() != Some(after.as_str()) && !of_file.is_empty() {
                changed.push((file, after));
            }
            edits.extend(of_file);
        }
        if !self.dry_run {
            for (file, text) in &changed {
                write(file, text)?;
            }
        }
        let mut told: String = edits.iter().map(line).collect();
        if edits.is_empty() {
            told.push_str("no limit changes\n");
        } else if self.dry_run {
            told.push_str("nothing was written: --dry-run\n");
        }
        print(&told)?;
        Ok(0)
    }

    /// Refuses to write what is read.
    fn check_files(&self) -> Result<(), Failure> {
        let inputs: Vec<Role> = roles("a profile that is read", &self.profile)
            .chain(roles("a file of rules", self.selection.rule_files()))
            .chain(file_role::configuration())
            .collect();
        let outputs: Vec<Role> = roles("--limits", self.files()?).collect();
        file_role::check(&outputs, &inputs)?;
        file_role::check_no_program(&outputs)
    }

    /// The files that are written: of a folder of thresholds those that are there.
    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        limits_file::files(&self.limits)
    }

    fn updated(
        &self,
        file: &Path,
        before: Option<&str>,
        measured: &[Measured],
    ) -> Result<(String, Vec<Edit>), Failure> {
        let updated = match limits_file::kind(file) {
            Kind::Toml => {
                let mut metrics = self.metric.clone();
                if metrics.is_empty() {
                    metrics.push(Metric::Allocs);
                }
                update(before.unwrap_or_default(), measured, &How { ratchet: self.ratchet, metrics })
            }
            Kind::Threshold(benchmark) => threshold::update(before, &benchmark, measured, self.ratchet),
        };
        updated.map_err(|error| {
            Failure::new(UNREADABLE, format!("cannot update the limits {}: {error}", quote(file)))
        })
    }

    /// How `check` would look at the profile.
    fn options(&self, profile: &Profile) -> Result<CheckOptions, Failure> {
        let file = self.profile.first().map_or(Path::new("the profile"), PathBuf::as_path);
        let diff = DiffOptions {
            selection: self.selection.selection(profile, file)?,
            rules: self.selection.rules()?,
            ..DiffOptions::default()
        };
        Ok(CheckOptions { diff, today: today(), ..CheckOptions::default() })
    }
}

/// What a file's limits are for, as `check` looks at it: nothing else is written than was measured.
fn measured(profile: &Profile, limits: &Limits, options: &CheckOptions) -> Result<Vec<Measured>, Failure> {
    let subject = Subject::new(profile.clone(), None, limits, options);
    let found = unmeasured(&subject, limits, options);
    if let Some(first) = found.first() {
        let next = unfit_advice(&found, &[profile]).unwrap_or_else(|| "record again".to_owned());
        let why = format!("NOT MEASURED: {}\nno limit was written; {next}", reason(first));
        return Err(Failure::new(UNREADABLE, why));
    }
    let profile = &subject.change;
    let sites = CallSites::new(profile, &options.diff.rules);
    let view = View::new(profile, &options.diff.selection, &sites, options.diff.sort);
    let is_named = |window: &WindowView<'_>| {
        limits.gates.iter().any(|gate| gate.window.is_name() && gate.window.fits(&window.window.name))
    };
    let windows = view.windows.iter().filter(|window| !window.in_background || is_named(window));
    Ok(windows.map(|window| of_window(window, profile, limits)).collect())
}

/// The counts of a window: of several runs the greatest, so that all of them keep to it, or the average where that is judged.
/// Of one in the background, those that a limit by its name is for.
fn of_window(window: &WindowView<'_>, profile: &Profile, limits: &Limits) -> Measured {
    let name = &window.window.name;
    let is_averaged = limits.judges_unstable(name).unwrap_or(false);
    let known = Metric::ALL.into_iter();
    let known = known.filter(|metric| !metric.needs_lifetimes() || profile.environment.lifetimes);
    let counts = known.flat_map(|metric| {
        [Per::Iteration, Per::Run].map(|per| {
            let spread = Spread::of_view(window, (metric, per), profile);
            (metric, per, if is_averaged { spread.average } else { spread.greatest.max(spread.average) })
        })
    });
    let is_named = |what: (Metric, Per)| {
        limits
            .gates
            .iter()
            .any(|gate| gate.window.is_name() && gate.window.fits(name) && gate.rule.group() == Some(what))
    };
    let counts = counts.filter(|(metric, per, _)| !window.in_background || is_named((*metric, *per)));
    Measured { window: window.window.name.clone(), counts: counts.collect() }
}

/// The text of a file, if it is there.
fn existing(file: &Path) -> Result<Option<String>, Failure> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Ok(found) if !found.is_file() => Err(Failure::new(
            UNREADABLE,
            format!("cannot update the limits {}: it is no regular file\nname a file", quote(file)),
        )),
        _ => limits_file::text(file).map(Some),
    }
}

/// `parse: allocs 76 → 75`.
fn line(edit: &Edit) -> String {
    let before = match edit.before {
        Some(before) => {
            let decimals = (0..=9).find(|decimals| before.has_decimals(*decimals)).unwrap_or(9);
            format!("{} → ", before.rounded(decimals))
        }
        None => "new, ".to_owned(),
    };
    let total = if edit.per == Per::Run { "total." } else { "" };
    let soft = if edit.is_soft { "soft_max " } else { "" };
    format!("{}: {total}{} {soft}{before}{}\n", quote(&edit.window), edit.metric.key(), edit.after)
}

impl Show {
    fn run(self) -> anyhow::Result<u8> {
        let limits = limits_file::read_all(&self.limits)?;
        let profile = self.profile.as_deref().map(read).transpose()?;
        let mut told: String = limits.gates.iter().map(of_gate).collect();
        for ignore in &limits.ignores {
            let stack: Vec<&str> = ignore.stack.iter().map(|pattern| pattern.as_str()).collect();
            told.push_str(&format!(
                "{}: {}: ignored until {}: {} ({})\n",
                escape(&ignore.origin.to_string()),
                quote(ignore.window.text()),
                ignore.until,
                escape(&stack.join(", ")),
                escape(&ignore.reason)
            ));
        }
        if told.is_empty() {
            told.push_str("no limits\n");
        }
        print(&told)?;
        if let Some(profile) = profile {
            let options = CheckOptions { accepts_failed: true, ..CheckOptions::default() };
            let subject = Subject::new(profile, None, &limits, &options);
            let verdict = check(&subject, &limits, &options);
            let options =
                heaptally_report::Options { project: project(), ..heaptally_report::Options::default() };
            print(&format!("\n{}", text(&verdict, &options, false, None)))?;
        }
        Ok(0)
    }
}

/// `limits.toml:4: parse: allocs at most 75`.
fn of_gate(gate: &Gate) -> String {
    let amount = |amount: Amount| {
        let (number, unit) = match amount {
            Amount::Exact(number) => (number, ""),
            Amount::Percent(number) => (number, " %"),
        };
        let decimals = (0..=9).find(|decimals| number.has_decimals(*decimals)).unwrap_or(9);
        format!("{}{unit}", number.rounded(decimals))
    };
    let what = match &gate.rule {
        Rule::Count(rule) => {
            let total = if rule.per == Per::Run { "total." } else { "" };
            let bound = match rule.bound {
                Bound::Max => "at most",
                Bound::Min => "at least",
                Bound::Grow => "may grow by",
                Bound::Shrink => "may shrink by",
            };
            format!("{total}{} {bound} {}", rule.metric.key(), amount(rule.amount))
        }
        Rule::Stack(rule) => {
            let what = match &rule.what {
                StackChange::New => "no new stacks".to_owned(),
                StackChange::Renamed => "no stacks that are taken for renamed ones".to_owned(),
                StackChange::Grow(metric, by) => {
                    format!("{} of a stack may grow by {}", metric.key(), amount(*by))
                }
            };
            let patterns: Vec<&str> =
                rule.under.iter().chain(&rule.root).map(|pattern| pattern.as_str()).collect();
            match patterns.is_empty() {
                true => what,
                false => format!("{what}, below {}", escape(&patterns.join(", "))),
            }
        }
    };
    let severity = match gate.severity {
        Severity::Hard => "",
        Severity::Soft => " (a warning)",
        Severity::Off => " (off)",
    };
    format!("{}: {}: {what}{severity}\n", escape(&gate.origin.to_string()), quote(gate.window.text()))
}
