//! `heaptally cargo`, which `cargo heaptally` calls: builds benchmarks, tests or a program with Cargo, records each, and
//! reports or checks what they allocate.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use heaptally_profile::model::Profile;
use heaptally_profile::path_text::escape_path;
use heaptally_profile::pprof;
use heaptally_report::child::sentences;
use heaptally_report::summary::summary;

use crate::baseline::{Saving, clear, mark_failed, path_of, resolve};
use crate::cargo::argument::CargoArgs;
use crate::cargo::build::{Built, Task, build, metadata, target_folder};
use crate::cargo::exec;
use crate::cargo::record::{Sum, Wanted, record};
use crate::check::record::{Waiting, begin_saving, unmeasured};
use crate::command::check::{Against, AgainstArgs, Check, FileArgs, RuleArgs};
use crate::command::report::{ShowArgs, show};
use crate::config::{Settings, current, settings};
use crate::exit::{Failure, UNREADABLE, USAGE};
use crate::file_role::{Role, roles};
use crate::large_stack::on_large_stack;
use crate::message::{self, quote};
use crate::output::{Content, Output};
use crate::recording::RecordingArgs;
use crate::selection::SelectionArgs;

/// Options that only a check has, and that can be configured.
const OF_A_CHECK: &[&str] = &[
    "grow",
    "per-stack",
    "unstable",
    "max-lost",
    "max-cut",
    "same-environment",
    "accept-failed",
    "accept-incomplete",
    "exit-on-improvement",
    "fold-recursion",
    "fold-generics",
    "report",
];

/// Records what Cargo builds: `cargo heaptally bench`, `test` and `run`.
///
/// Builds with the debug information that names need, unless a profile says otherwise. Each benchmark of criterion and of
/// divan, and each test, is run in a process of its own, and has a window with its name: what the harness measures, as it
/// is, without an edit (docs/harnesses.md). Programs of other harnesses are recorded whole, or by the windows that they
/// open. The profile is written, and reported, or checked where --baseline or --limits is given.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 done, 2 wrong usage, 3 a limit is broken, 4 something could not be read or measured, or \
                        --strict was not met, 5 better than the limits (with --exit-on-improvement). When the build or a \
                        program fails: its own."
)]
pub(crate) struct Cargo {
    /// What to do.
    #[arg(value_enum)]
    action: Action,
    /// Only benchmarks or tests whose names fit, as their harness understands it.
    #[arg(value_name = "FILTER")]
    chosen: Option<OsString>,
    #[command(flatten)]
    cargo: CargoArgs,
    #[command(flatten)]
    recorded: RecordedArgs,
    #[command(flatten, next_help_heading = "Recording")]
    recording: RecordingArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten, next_help_heading = "What is reported")]
    show: ShowArgs,
    #[command(flatten, next_help_heading = "Checking")]
    against: AgainstArgs,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten, next_help_heading = "What is written of a check")]
    files: FileArgs,
    /// Further words: of `run` for the program, of `exec` the program and its words, else for the harness, which chooses by
    /// them.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Recording")]
struct RecordedArgs {
    /// Where to write the profile [default: heaptally/last/ACTION.pb.gz in the folder in which Cargo builds; of `exec` a
    /// file for each call, in heaptally/last/exec there, or in this folder].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Save the profile as the baseline NAME, if no program failed and the check passed.
    #[arg(long, value_name = "NAME")]
    save_baseline: Option<String>,
    /// Go on behind a benchmark or test that fails.
    #[arg(long)]
    no_fail_fast: bool,
    /// Show what benchmarks and tests print, also where they do not fail.
    #[arg(long)]
    show_output: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Record benchmarks.
    Bench,
    /// Record tests.
    Test,
    /// Record a program.
    Run,
    /// Record the program behind `--`, which Cargo or another runner built: CARGO_TARGET_…_RUNNER='cargo-heaptally exec --'.
    Exec,
}

impl Cargo {
    /// Builds, records, and reports or checks.
    pub(crate) fn run(mut self) -> anyhow::Result<u8> {
        self.check_usage()?;
        let (task, name) = match self.action {
            Action::Bench => (Task::Bench, "bench"),
            Action::Test => (Task::Test, "test"),
            Action::Run => (Task::Run, "run"),
            Action::Exec => {
                return Ok(exec::exec(&self.arguments, &self.recording, self.recorded.output.as_deref())?);
            }
        };
        let metadata = metadata(&self.cargo)?;
        let folder = target_folder(&self.cargo, &metadata).join("heaptally");
        let settings = self.settings(&folder);
        // What is not there is said before anything is built.
        for base in &mut self.against.baseline {
            *base = resolve(&*base, &settings)?.into_os_string();
        }
        let against = if self.is_check() { Some(self.against.read(&self.rules)?) } else { None };
        let file = self.file(&folder, name)?;
        if against.is_some() {
            let saved = self.recorded.save_baseline.as_ref().and_then(|name| path_of(name, &settings).ok());
            let saved: Vec<Role> = roles("--save-baseline", saved).collect();
            let profile: Vec<Role> = roles("-o", [&file]).collect();
            self.files.prepare(&profile, &saved, &self.against.inputs(&self.selection, &settings))?;
        }
        let words: Vec<OsString> = ["cargo".into(), name.into()].into_iter().chain(self.words()).collect();
        let output = Output::prepare(&file, Content::Profile).map_err(unmeasured)?;
        let built = build(task, &self.cargo, &metadata)?;
        built.remarks.iter().for_each(|remark| message::print(&format!("note: {remark}")));
        let bases = against.as_ref().map(|against| against.files.clone()).unwrap_or_default();
        let begin = |name: &String| begin_saving(name, &words, &bases, &settings);
        let saving = self.recorded.save_baseline.as_ref().map(begin).transpose()?;
        match self.record_and_write(task, &built, output, &words) {
            Err(mut failure) => {
                if failure.code != USAGE {
                    mark_failed(&file, &words, &mut failure);
                }
                give_up(saving, &failure.message);
                Err(failure.into())
            }
            Ok((profile, _, Some(code))) if !self.rules.accept_failed => {
                give_up(saving, &format!("a program ended with {code}"));
                match against {
                    Some(_) => message::print(
                        "a program failed, so nothing was checked\n--accept-failed checks what there is all the same",
                    ),
                    None => {
                        show(profile, &file, &self.selection, &self.show, false)?;
                    }
                }
                Ok(code)
            }
            Ok((profile, bytes, _)) => {
                let waiting = saving.map(|saving| Waiting::new(saving, bytes));
                self.judge(file, profile, against, waiting)
            }
        }
    }

    fn words(&self) -> impl Iterator<Item = OsString> {
        self.chosen.iter().chain(&self.arguments).cloned()
    }

    fn is_check(&self) -> bool {
        !self.against.baseline.is_empty() || !self.against.limits.is_empty()
    }

    /// Options that would be ignored are refused.
    fn check_usage(&self) -> Result<(), Failure> {
        let refuse = |why: &str| Err(Failure::new(USAGE, why));
        if self.is_check() && self.show.is_stated() {
            return refuse(
                "--sort, --by, --tree, --limit, --min, --format and --json are of the report, and with --baseline or \
                 --limits there is a check\n\
                 leave them out, use --write FORM=FILE, or `heaptally report` on the profile",
            );
        }
        // What is configured waits for a check.
        let is_configured = |key: &str| current().value("cargo", key).is_some();
        let is_stated = self.rules.is_stated() || self.files.is_stated();
        if !self.is_check() && is_stated && !OF_A_CHECK.iter().any(|key| is_configured(key)) {
            return refuse(
                "there is nothing to check against\n\
                 give --baseline or --limits, or leave out what is about a check",
            );
        }
        match self.action {
            Action::Exec if self.arguments.is_empty() => refuse("name the program behind --"),
            Action::Exec
                if self.is_check() || self.recorded.save_baseline.is_some() || self.cargo.names_targets() =>
            {
                refuse(
                    "`exec` records one program that another command started: nothing is built, checked or saved\n\
                     leave these options out",
                )
            }
            Action::Run | Action::Exec if self.chosen.is_some() => refuse(
                "only benchmarks and tests are chosen by a name\nput the program's own words behind --",
            ),
            _ => Ok(()),
        }
    }

    /// The configuration's settings; baselines are beside what is built, wherever that is.
    fn settings(&self, folder: &Path) -> Settings {
        let own = settings();
        let baseline_folder = own.baseline_folder.clone().or_else(|| Some(folder.to_owned()));
        Settings { baseline_folder, ..own.clone() }
    }

    /// The profile's file; its folder is there afterwards.
    fn file(&self, folder: &Path, name: &str) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.recorded.output {
            return Ok(file.clone());
        }
        let folder = folder.join("last");
        fs::create_dir_all(&folder).map_err(|error| {
            Failure::new(
                UNREADABLE,
                format!("cannot make the folder {}: {error}\nname a file with -o", quote(&folder)),
            )
        })?;
        Ok(folder.join(format!("{name}.pb.gz")))
    }

    /// Returns the profile, its bytes, and the code of a program that failed.
    fn record_and_write(
        &self,
        task: Task,
        built: &Built,
        output: Output,
        words: &[OsString],
    ) -> Result<(Profile, Vec<u8>, Option<u8>), Failure> {
        let wanted = Wanted {
            task,
            chosen: self.words().collect(),
            recording: &self.recording,
            keeps_going: self.recorded.no_fail_fast,
            shows_output: self.recorded.show_output,
        };
        let Sum { mut profile, failed, warnings } = record(&wanted, &built.programs)?;
        profile.environment.command = words.iter().map(|word| escape_path(word.as_bytes())).collect();
        profile.merge_children().map_err(|error| {
            Failure::new(
                UNREADABLE,
                format!("the processes cannot be put together: {error}\nleave out --follow-children"),
            )
        })?;
        let (line, bytes) = on_large_stack(|| (summary(&profile), pprof::write(&profile)))?;
        let (path, is_file) = (output.path().to_owned(), output.is_file());
        output.write(&bytes).map_err(unmeasured)?;
        if is_file {
            clear(&path).map_err(unmeasured)?;
        }
        let of_images = profile.images.iter().flat_map(|image| &image.warnings);
        let mut all: Vec<&String> = of_images.chain(&warnings).collect();
        all.sort();
        all.dedup();
        let warnings: String = all.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        let children = sentences(&profile.children);
        let children: String = children.iter().map(|sentence| format!("\n{sentence}")).collect();
        message::print(&format!("{line} → {}{warnings}{children}", message::shown(&path)));
        Ok((profile, bytes, failed))
    }

    /// Checks or reports; then the baseline is the new profile or stays the old one.
    fn judge(
        self,
        file: PathBuf,
        profile: Profile,
        against: Option<Against>,
        waiting: Option<Waiting>,
    ) -> anyhow::Result<u8> {
        let code = match against {
            Some(against) => {
                let shape = (self.show.full, self.show.width);
                Check::of_file(file, self.against, self.rules, self.selection, self.files, shape)
                    .judge(profile, against)
            }
            None => show(profile, &file, &self.selection, &self.show, self.rules.strict),
        };
        if let Some(waiting) = waiting {
            waiting.end(&code)?;
        }
        code
    }
}

fn give_up(saving: Option<Saving>, why: &str) {
    if let Some(saving) = saving {
        message::print(&saving.give_up(why));
    }
}
