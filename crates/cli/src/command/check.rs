//! `heaptally check`: whether a profile keeps to its limits, and which stacks are to blame if not.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum, ValueHint};
use heaptally_profile::check::{CheckOptions, Outcome, Subject, Verdict, check, default_gates};
use heaptally_profile::diff::DiffOptions;
use heaptally_profile::limit::{Amount, Date, Limits, Origin, Rate, Severity};
use heaptally_profile::merge::merge;
use heaptally_profile::model::Profile;
use heaptally_report::Options;
use heaptally_report::text::check::is_long;

use crate::baseline::{names_file, path_of, read, resolve};
use crate::check::form::{Copy, Form, append, copy, remove_earlier, write};
use crate::check::record::{Checked, RecordArgs};
use crate::check::{limits_file, self_test};
use crate::config::{Settings, settings};
use crate::exit::{Failure, IMPROVEMENT, REGRESSION, UNREADABLE, USAGE};
use crate::file_role::{self, Role, roles};
use crate::message::{self, quote};
use crate::selection::{SelectionArgs, project, unfit_advice};
use crate::terminal::{LEAST_COLUMNS, color, print, width};

/// Where what is too long to print goes, unless it is said.
const REPORT: &str = "heaptally-check.txt";

/// Checks whether a profile keeps to its limits, or does not allocate more than a baseline. The first line is the answer.
///
/// Against a baseline no window may allocate more often, nor any stack by itself; a limits file says otherwise, for the
/// windows that it names. Stacks are paired as `heaptally diff` pairs them. What differs between several runs is judged
/// only if no run keeps to the limit. What was not measured never passes.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all limits are kept, 2 wrong usage, 3 a limit is broken, 4 something could not be read \
                        or measured, no limit was judged, or --strict was not met, 5 better than the limits (with --exit-on-improvement). A \
                        program that fails keeps its own code, and nothing is checked."
)]
pub(crate) struct Check {
    /// The profile to check; several are runs of one program.
    #[arg(value_hint = ValueHint::FilePath)]
    change: Vec<PathBuf>,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten, next_help_heading = "Recording a program")]
    record: RecordArgs,
    /// Add a regression to each window and check that: passes if the check fails, and says which windows nothing guards.
    #[arg(long)]
    self_test: bool,
    /// A program to record and check, and its arguments.
    #[arg(last = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

/// What a profile is held against.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgainstArgs {
    /// What to hold it against: a profile's file (with a slash, or ending in .pb.gz) or the name of a saved baseline; can
    /// be given several times, for several runs.
    #[arg(long, value_name = "BASE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Vec<OsString>,
    /// Limits: a file as `heaptally limits update` writes it, or thresholds of Swift's package-benchmark (one, or their
    /// folder); can be given several times.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) limits: Vec<PathBuf>,
}

/// What passes.
#[derive(Args, Debug)]
#[command(next_help_heading = "What passes")]
pub(crate) struct RuleArgs {
    /// How much more a window, and each stack by itself, may allocate than in the baseline, where no file says it: a number
    /// per iteration, or percent (`10%` of 10 allows 11). A new stack fails all the same.
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    grow: Option<Amount>,
    /// What new stacks and stacks that grow do, where no file says it.
    #[arg(long, value_name = "WHAT", value_enum)]
    per_stack: Option<PerStack>,
    /// Judge what differs between runs too, by its average.
    #[arg(long)]
    unstable: bool,
    /// How many percent of the allocations may be lost [default: as the file says, or 0].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_lost: Option<Rate>,
    /// How many percent of a window's allocations may have a cut stack [default: as the file says, or 1].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_cut: Option<Rate>,
    /// Exit with 4 if the baseline is of another compiler, C library, allocator, architecture, machine or heaptally.
    #[arg(long)]
    same_environment: bool,
    /// Check programs that did not end with 0, too.
    #[arg(long)]
    pub(crate) accept_failed: bool,
    /// Check recordings of which some allocations are known to be missing, too.
    #[arg(long)]
    accept_incomplete: bool,
    /// Exit with 4 at improvements, unused limits, windows without a limit or in one profile only, and missing baselines.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Exit with 5 if all limits are kept and something is better than they ask for.
    #[arg(long)]
    exit_on_improvement: bool,
    /// A recursion is the same however deep it is.
    #[arg(long)]
    fold_recursion: bool,
    /// Instances of a generic function or a template are one.
    #[arg(long)]
    fold_generics: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "What is printed")]
struct PrintArgs {
    /// In which form to print.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Text)]
    format: Form,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    files: FileArgs,
    /// Show every frame, on a line of its own; nothing is folded.
    #[arg(long)]
    full: bool,
    /// Cut names so that lines take at most so many columns; 0: never [default: as the terminal has; never in a pipe].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

/// The files that a verdict is written to.
#[derive(Args, Debug)]
pub(crate) struct FileArgs {
    /// Write it to a file in another form, too; can be given several times. What an earlier run wrote there is removed
    /// first, so that nothing stays if there is no verdict.
    #[arg(long, value_name = "FORM=FILE", value_parser = copy)]
    pub(crate) write: Vec<Copy>,
    /// Write the whole text to FILE, of which an earlier one is removed first, too [default: heaptally-check.txt, if it has
    /// more than 40 lines].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PerStack {
    /// They fail.
    Fail,
    /// They are warned of.
    Warn,
    /// They pass, if the totals do.
    Off,
}

/// `10%` or `1`.
fn amount(text: &str) -> Result<Amount, String> {
    Amount::parse(text).ok_or_else(|| "takes a number such as 1, or percent such as 10%: digits alone, at most 15, of which 9 behind the point".to_owned())
}

/// `1` or `1%`.
fn percent(text: &str) -> Result<Rate, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim();
    let percent = Rate::parse(percent).filter(|percent| *percent <= Rate::new(100, 1));
    percent.ok_or_else(|| "takes percent, such as 0.5".to_owned())
}

/// What a profile is held against, read before a program runs whose profile may take its place.
pub(crate) struct Against {
    /// The files of the baselines.
    pub(crate) files: Vec<PathBuf>,
    base: Option<Profile>,
    limits: Limits,
}

impl AgainstArgs {
    /// Reads it. Rules that are given go before those of files.
    pub(crate) fn read(&self, rules: &RuleArgs) -> anyhow::Result<Against> {
        let mut limits = limits_file::read_all(&self.limits)?;
        limits.lost = rules.max_lost.or(limits.lost);
        limits.cut = rules.max_cut.or(limits.cut);
        let files: Vec<PathBuf> =
            self.baseline.iter().map(|name| resolve(name, settings())).collect::<Result<_, _>>()?;
        let profiles = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        let base = if profiles.is_empty() { None } else { Some(together(profiles, "baselines")?) };
        Ok(Against { files, base, limits })
    }

    /// The files that are read with them, whether they are there and good or not.
    pub(crate) fn inputs(&self, selection: &SelectionArgs, settings: &Settings) -> Vec<Role> {
        let baseline = |word: &OsString| match names_file(word) {
            true => Some(PathBuf::from(word)),
            false => path_of(word.to_str()?, settings).ok(),
        };
        let limits = self.limits.iter().flat_map(|path| limits_file::files(path).unwrap_or_default());
        roles(
            "a baseline that is compared with; --save-baseline replaces one",
            self.baseline.iter().filter_map(baseline),
        )
        .chain(roles("a file of limits", limits))
        .chain(roles("a file of rules", selection.rule_files()))
        .chain(file_role::configuration())
        .collect()
    }
}

impl RuleArgs {
    /// Whether anything is asked for that only a check has.
    pub(crate) fn is_stated(&self) -> bool {
        let Self {
            grow,
            per_stack,
            unstable,
            max_lost,
            max_cut,
            same_environment,
            accept_failed,
            accept_incomplete,
            strict: _,
            exit_on_improvement,
            fold_recursion,
            fold_generics,
        } = self;
        let switches = [
            unstable,
            same_environment,
            accept_failed,
            accept_incomplete,
            exit_on_improvement,
            fold_recursion,
            fold_generics,
        ];
        grow.is_some()
            || per_stack.is_some()
            || max_lost.is_some()
            || max_cut.is_some()
            || switches.into_iter().any(|switch| *switch)
    }
}

impl FileArgs {
    /// Whether any is named.
    pub(crate) fn is_stated(&self) -> bool {
        !self.write.is_empty() || self.report.is_some()
    }

    /// They, with their options.
    fn each(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let copies = self.write.iter().map(|copy| ("--write", &copy.file));
        copies.chain(self.report.iter().map(|file| ("--report", file)))
    }

    fn roles(&self) -> impl Iterator<Item = Role> {
        self.each().flat_map(|(option, file)| roles(option, [file]))
    }

    /// Refuses to write what is read, and twice to one file; then removes what an earlier run wrote. `profile` is written,
    /// too, and `saved`, which alone may be the baseline that is compared with.
    pub(crate) fn prepare(&self, profile: &[Role], saved: &[Role], inputs: &[Role]) -> Result<(), Failure> {
        let reports: Vec<Role> = self.roles().collect();
        let written = [profile, &reports].concat();
        file_role::check(&written, inputs)?;
        file_role::check(&[saved, &written].concat(), &[])?;
        file_role::check_no_program(&reports)?;
        self.each().for_each(|(_, file)| remove_earlier(file));
        Ok(())
    }
}

impl Check {
    /// The check of a profile that was recorded into a file. `shape`: whether every frame is shown, and how wide a line is.
    pub(crate) fn of_file(
        file: PathBuf,
        against: AgainstArgs,
        rules: RuleArgs,
        selection: SelectionArgs,
        files: FileArgs,
        (full, width): (bool, Option<usize>),
    ) -> Self {
        let print = PrintArgs { format: Form::Text, json: false, files, full, width };
        let record = RecordArgs::default();
        Self {
            change: vec![file],
            against,
            rules,
            selection,
            print,
            record,
            self_test: false,
            program: Vec::new(),
        }
    }

    /// Checks.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let (profile, saved) = self.record.outputs();
        self.print.files.prepare(&profile, &saved, &self.inputs())?;
        self.check_usage()?;
        let against = self.against.read(&self.rules)?;
        let (checked, waiting) = match self.program.is_empty() {
            true => (Checked::Profile(Box::new(self.profiles()?)), None),
            false => self.record.record(&self.program, &against.files, self.rules.accept_failed)?,
        };
        let change = match checked {
            Checked::Profile(profile) => *profile,
            Checked::Failed(code) => return Ok(code),
        };
        let code = self.judge(change, against);
        if let Some(waiting) = waiting {
            waiting.end(&code)?;
        }
        code
    }

    /// Checks a profile, and prints and writes the verdict.
    pub(crate) fn judge(&self, change: Profile, against: Against) -> anyhow::Result<u8> {
        let Against { base, limits, .. } = against;
        let limits = &limits;
        let options = self.check_options(&change, base.as_ref())?;
        if self.self_test {
            return self.test_itself(&change, base, limits, &options);
        }
        let subject = Subject::new(change, base, limits, &options);
        let verdict = check(&subject, limits, &options);
        self.tell(&verdict, &options)?;
        let profiles: Vec<&Profile> = subject.base.iter().chain([&subject.change]).collect();
        if let Some(advice) = unfit_advice(&verdict.unmeasured, &profiles) {
            message::print(&advice);
        }
        let code = self.code(verdict.outcome(self.rules.strict));
        // PERF: as for a report: the process ends anyway.
        std::mem::forget(verdict);
        std::mem::forget(subject);
        Ok(code)
    }

    /// The files that are read, whether they are there and good or not.
    fn inputs(&self) -> Vec<Role> {
        roles("a profile that is checked", &self.change)
            .chain(self.against.inputs(&self.selection, settings()))
            .collect()
    }

    fn check_usage(&self) -> Result<(), Failure> {
        let refuse = |why: &str| Err(Failure::new(USAGE, why));
        if self.change.is_empty() == self.program.is_empty() {
            return refuse("name a profile to check, or a program behind --\nsee heaptally check --help");
        }
        if self.against.baseline.is_empty() && self.against.limits.is_empty() {
            return refuse(
                "there is nothing to hold it to\n\
                 give a profile with --baseline, or a file with --limits, which `heaptally limits update` writes",
            );
        }
        if self.program.is_empty() && self.record.is_stated() {
            return refuse(
                "--repeat, --follow-children, --no-lifetimes, --segment-dir, --save-baseline and -o are for a program behind \
                 --\nleave them out",
            );
        }
        Ok(())
    }

    fn profiles(&self) -> Result<Profile, Failure> {
        let profiles = self.change.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        together(profiles, "profiles")
    }

    fn check_options(&self, change: &Profile, base: Option<&Profile>) -> Result<CheckOptions, Failure> {
        let file = self.change.first().map_or(Path::new("the recording"), PathBuf::as_path);
        let selection = match base {
            Some(base) => {
                let of_base = self.against.baseline.first().map_or(Path::new("the baseline"), Path::new);
                self.selection.selection_of([(base, of_base), (change, file)])?
            }
            None => self.selection.selection(change, file)?,
        };
        let origin =
            |is_stated: bool, option| if is_stated { Origin::Option(option) } else { Origin::Default };
        let grow = self.rules.grow.unwrap_or(Amount::Exact(Rate::ZERO));
        let severity = match self.rules.per_stack {
            None | Some(PerStack::Fail) => Severity::Hard,
            Some(PerStack::Warn) => Severity::Soft,
            Some(PerStack::Off) => Severity::Off,
        };
        Ok(CheckOptions {
            diff: DiffOptions {
                selection,
                rules: self.selection.rules()?,
                fold_recursion: self.rules.fold_recursion,
                fold_generics: self.rules.fold_generics,
                ..DiffOptions::default()
            },
            defaults: default_gates(
                (grow, origin(self.rules.grow.is_some(), "--grow")),
                (severity, origin(self.rules.per_stack.is_some(), "--per-stack")),
            ),
            today: today(),
            judges_unstable: self.rules.unstable,
            accepts_failed: self.rules.accept_failed,
            accepts_incomplete: self.rules.accept_incomplete,
            needs_same_environment: self.rules.same_environment,
            has_files: !self.against.limits.is_empty(),
        })
    }

    /// Prints a verdict, and writes what was asked for.
    fn tell(&self, verdict: &Verdict<'_>, checked: &CheckOptions) -> anyhow::Result<()> {
        let options = Options {
            selection: checked.diff.selection.clone(),
            rules: checked.diff.rules.clone(),
            full: self.print.full,
            project: project(),
            ..Options::default()
        };
        let is_strict = self.rules.strict;
        let report = match &self.print.files.report {
            Some(file) => Some(file.clone()),
            None => self.own_report().filter(|_| is_long(verdict, &options, is_strict)),
        };
        let form = if self.print.json { Form::Json } else { self.print.format };
        let has_brief = matches!(form, Form::Text | Form::Github) || self.print.files.report.is_some();
        let mut brief = None;
        // A file that cannot be written keeps neither the others nor the answer back.
        let mut failed: Vec<String> = Vec::new();
        if let Some(file) = report.filter(|_| has_brief) {
            match write(&file, &Form::Text.of(verdict, &options, is_strict, None)) {
                Ok(()) => brief = Some(message::shown(&file)),
                Err(failure) => {
                    brief = Some("could not be written; --report names a file".to_owned());
                    // Of a file that nobody asked for the failure is no failure of the check.
                    match self.print.files.report {
                        Some(_) => failed.push(failure.message),
                        None => message::print(&failure.message),
                    }
                }
            }
        }
        for copy in &self.print.files.write {
            if let Err(failure) = write(&copy.file, &copy.form.of(verdict, &options, is_strict, None)) {
                failed.push(failure.message);
            }
        }
        // A regression that was made up is nothing to tell.
        let summary = env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty() && !self.self_test);
        if let Some(file) = summary {
            let file = PathBuf::from(file);
            if let Err(error) = append(&file, &Form::Markdown.of(verdict, &options, is_strict, None)) {
                message::print(&format!(
                    "cannot add to {}: {error}\nGITHUB_STEP_SUMMARY names it",
                    quote(&file)
                ));
            }
        }
        let printed = Options {
            color: io::stdout().is_terminal() && color(),
            width: match self.print.width {
                Some(0) => None,
                Some(columns) => Some(columns.max(LEAST_COLUMNS)),
                None => width(io::stdout()),
            },
            ..options
        };
        print(&form.of(verdict, &printed, is_strict, brief.as_deref()))?;
        match failed.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(UNREADABLE, failed.join("\n")).into()),
        }
    }

    /// Where the whole text goes without being asked for, if nothing else is or goes there.
    fn own_report(&self) -> Option<PathBuf> {
        let (profile, _) = self.record.outputs();
        let written = self.print.files.roles();
        let others: Vec<Role> = self.inputs().into_iter().chain(profile).chain(written).collect();
        let own: Vec<Role> = roles("--report", [REPORT]).collect();
        let is_free =
            file_role::check(&own, &others).and_then(|()| file_role::check_no_program(&own)).is_ok();
        is_free.then(|| PathBuf::from(REPORT))
    }

    fn code(&self, outcome: Outcome) -> u8 {
        match outcome {
            Outcome::Passed => 0,
            Outcome::Improvement => {
                if self.rules.exit_on_improvement {
                    IMPROVEMENT
                } else {
                    0
                }
            }
            Outcome::Regression => REGRESSION,
            Outcome::NotStrict | Outcome::Unmeasured => UNREADABLE,
        }
    }

    /// Checks a profile to which a regression was added.
    fn test_itself(
        &self,
        change: &Profile,
        base: Option<Profile>,
        limits: &Limits,
        options: &CheckOptions,
    ) -> anyhow::Result<u8> {
        let subject = Subject::new(self_test::with_regression(change), base, limits, options);
        let verdict = check(&subject, limits, options);
        self.tell(&verdict, options)?;
        let is_guarded = |at| {
            verdict.findings.iter().any(|finding| finding.window == at && finding.severity == Severity::Hard)
        };
        let windows = verdict.compared.windows().into_iter();
        let windows: Vec<_> = windows
            .filter(|at| verdict.compared.window(*at).is_some_and(|view| !view.in_background))
            .collect();
        let (guarded, bare): (Vec<_>, Vec<_>) = windows.into_iter().partition(|at| is_guarded(*at));
        let bare: Vec<String> = bare.into_iter().map(|at| quote(verdict.compared.name(at))).collect();
        if verdict.outcome(false) == Outcome::Unmeasured {
            return Err(Failure::new(
                UNREADABLE,
                "self-test: nothing can be said, since something was not measured, see above\nrecord again",
            )
            .into());
        }
        if guarded.is_empty() || (self.rules.strict && !bare.is_empty()) {
            let names = if bare.is_empty() {
                "there is no window".to_owned()
            } else {
                format!("nothing guards {}", bare.join(", "))
            };
            return Err(Failure::new(
                UNREADABLE,
                format!("self-test failed: {names}: a regression there passes\ngive it a limit, or a baseline that has it"),
            )
            .into());
        }
        let mut told = format!("self-test passed: the regression in {} was found", counted(guarded.len()));
        if !bare.is_empty() {
            told.push_str(&format!("\nnothing guards {}", bare.join(", ")));
        }
        message::print(&told);
        Ok(0)
    }
}

fn counted(windows: usize) -> String {
    if windows == 1 { "1 window".to_owned() } else { format!("{windows} windows") }
}

/// Several runs as one profile.
fn together(profiles: Vec<Profile>, what: &str) -> Result<Profile, Failure> {
    merge(profiles).map_err(|error| {
        Failure::new(
            UNREADABLE,
            format!("the {what} are not runs of one program: {error}\ngive such as were recorded alike"),
        )
    })
}

/// The day in UTC.
pub(crate) fn today() -> Date {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Date::of_unix_seconds(now.map_or(0, |now| now.as_secs()))
}
