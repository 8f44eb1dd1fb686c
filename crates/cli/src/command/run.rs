//! `heaptally run`: starts a program with the recorder in it, and writes the profile when it has ended.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptally_profile::model::{INCOMPLETE, Profile};
use heaptally_profile::path_text::escape_path;
use heaptally_profile::pprof;
use heaptally_report::child::sentences;
use heaptally_report::ending;
use heaptally_report::escape::escape;
use heaptally_report::summary::summary;
use heaptally_report::text::brief;

use crate::baseline::{Saving, clear, mark_failed, path_of};
use crate::config::settings;
use crate::convert::is_complete;
use crate::exit::Failure;
use crate::family::{self, Process};
use crate::file_role::{self, Role, roles};
use crate::large_stack::on_large_stack;
use crate::message::print;
use crate::output::{Content, Output};
use crate::recording::{Recorded, Recording, RecordingArgs, record_with};
use crate::selection::project;
use crate::status::Status;
use crate::terminal::{color, width};

/// How many windows, and how many call sites of each, the end of a run shows on a terminal.
const BRIEF_LINES: usize = 5;

/// Runs a program and records the call stack of every allocation inside its windows.
///
/// The program's input, output, environment, working folder and exit code are its own. Windows are opened by the
/// program (heaptally.h, the crate heaptally); without any, the whole run is recorded as one, named `process`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: the program's own, or 128 + n when signal n ended it; 125 the recorder failed or \
                        refused, a named window never opened, or --strict was not met; 126 the program cannot be \
                        executed; 127 it was not found."
)]
pub(crate) struct Run {
    /// Where to write the profile [default: PROGRAM.pb.gz in the working folder, and on a terminal the first call sites
    /// are shown, too].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Save the profile under this name, too, for `heaptally diff NAME …`.
    ///
    /// Where baselines are kept, `heaptally baseline list` says. If the run fails, or the program does not end with 0, an
    /// older one of that name stays as it is, and is refused as stale until a run replaces it.
    #[arg(long, value_name = "NAME")]
    save_baseline: Option<String>,
    /// Record this window only; can be given several times. One that never opens is an error.
    #[arg(long, value_name = "NAME")]
    window: Vec<OsString>,
    #[command(flatten)]
    recording: RecordingArgs,
    /// Exit with 125 if anything was lost or not seen, or any stack was cut.
    #[arg(long)]
    strict: bool,
    /// Write what became of program and recorder to FILE, as JSON, which crates/cli/schema describes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json_status: Option<PathBuf>,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

impl Run {
    /// Records.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let status_output =
            self.json_status.as_deref().map(|path| Output::prepare(path, Content::Status)).transpose()?;
        let default_output = default_output(self.program.first());
        let output = Output::prepare(self.output.as_deref().unwrap_or(&default_output), Content::Profile);
        if let (Some(status_output), Ok(output)) = (&status_output, &output) {
            status_output.check_differs(output)?;
        }
        self.check_files(&default_output)?;
        let mut status = Status { repeat: self.recording.repeat, ..Status::default() };
        let result = output.and_then(|output| self.record_and_save(output, &mut status));
        if let Err(failure) = &result {
            status.error = Some(failure.message.clone());
        }
        let written = status_output.map_or(Ok(()), |output| status.write(output));
        let code = result?;
        written?;
        Ok(code)
    }

    /// Refuses to write what is read, and twice to one file.
    fn check_files(&self, default_output: &Path) -> Result<(), Failure> {
        let baseline = self.save_baseline.as_ref().and_then(|name| path_of(name, settings()).ok());
        let inputs: Vec<Role> = file_role::configuration().collect();
        let saved: Vec<Role> = roles("--save-baseline", baseline).collect();
        let output = roles("-o", [self.output.as_deref().unwrap_or(default_output)]);
        // That the two of them are one is refused where they are prepared.
        file_role::check(&saved.iter().cloned().chain(output).collect::<Vec<_>>(), &inputs)?;
        file_role::check(
            &saved.into_iter().chain(roles("--json-status", &self.json_status)).collect::<Vec<_>>(),
            &inputs,
        )
    }

    /// Records; then the baseline is the new profile or stays the old one, and so is the output.
    fn record_and_save(&self, output: Output, status: &mut Status) -> Result<u8, Failure> {
        let begin = |name: &String| Saving::begin(name, &self.program, false, settings());
        let saving = self.save_baseline.as_ref().map(begin).transpose()?;
        let file = output.is_file().then(|| output.path().to_owned());
        let mut result = self.record_and_write(output, status);
        if let (Err(failure), Some(file), None) = (&mut result, &file, &status.profile) {
            mark_failed(file, &self.program, failure);
        }
        let said = match (saving, &result) {
            (None, _) => return result.map(|(code, _)| code),
            (Some(saving), Ok((0, bytes))) => saving.save(bytes)?,
            (Some(saving), Ok((code, _))) => {
                saving.give_up(&format!("the program ended with {}", ending::code(i32::from(*code))))
            }
            (Some(saving), Err(failure)) => saving.give_up(&failure.message),
        };
        if !self.quiet || result.as_ref().map_or(true, |(code, _)| *code != 0) {
            print(&said);
        }
        result.map(|(code, _)| code)
    }

    /// Returns the exit code, and the profile's bytes.
    fn record_and_write(&self, output: Output, status: &mut Status) -> Result<(u8, Vec<u8>), Failure> {
        let recording = Recording {
            windows: self.window.clone(),
            shows_progress: !self.quiet,
            ..self.recording.recording(&self.program)
        };
        let recorded = record_with(&recording, status)?;
        let Recorded { end, interrupted, mut profile, mut processes, warnings: of_runs, failure } = recorded;
        if !processes.is_empty() {
            on_large_stack(|| tell_apart(&mut processes, &mut profile, &output))??;
            status.processes = processes.iter().map(Process::json).collect();
        }
        status.children = profile.children.clone();
        status.unstable = profile.window_unstable().iter().sum();
        status.windows = profile.windows.len() as u64;
        status.allocations = profile.window_counts().iter().map(|counts| counts.allocations).sum();
        status.complete = is_complete(&profile);

        let (line, bytes) = on_large_stack(|| (summary(&profile), pprof::write(&profile)))?;
        let (path, is_file) = (output.path().to_owned(), output.is_file());
        output.write(&bytes)?;
        if is_file {
            clear(&path)?;
        }
        status.profile = Some(escape_path(path.as_os_str().as_bytes()));
        if !self.quiet {
            // What the error below says is not said twice.
            let is_told = |warning: &&String| {
                let told = warning.strip_prefix(INCOMPLETE).zip(failure.as_ref());
                told.is_some_and(|(warning, failure)| failure.message.contains(warning))
            };
            let warnings = profile.images.iter().flat_map(|image| &image.warnings);
            let warnings = warnings.filter(|warning| !is_told(warning)).chain(&of_runs);
            let mut warnings: String = warnings.map(|warning| format!("\nwarning: {warning}")).collect();
            for image in profile.images.iter().filter(|image| image.is_by_passed()) {
                let label = escape(&image.label);
                warnings.push_str(&format!(
                    "\nwarning: {INCOMPLETE}{label} has a malloc of its own: nothing of it was counted"
                ));
            }
            let children = sentences(&profile.children);
            let children: String = children.iter().map(|sentence| format!("\n{sentence}")).collect();
            if !processes.is_empty() {
                print(&family::table(&processes));
            }
            let written = escape_path(path.as_os_str().as_bytes());
            print(&format!("{line} → {}{warnings}{children}", escape(&written)));
            if self.output.is_none() && io::stderr().is_terminal() {
                on_large_stack(|| print_brief(&profile, &path))?;
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        if self.strict && !status.complete {
            return Err(Failure::recorder(
                "--strict: stacks were cut, or something was lost or not seen: `heaptally report` says what\n\
                 leave --strict out to accept that",
            ));
        }
        Ok((end.code_of_runs(interrupted), bytes))
    }
}

/// Writes a profile of each process, unless the profile of all goes to a device or a pipe, and puts alike children in the
/// profile of all together.
fn tell_apart(processes: &mut [Process], profile: &mut Profile, output: &Output) -> Result<(), Failure> {
    family::note(processes, profile);
    if output.is_file() {
        family::write_profiles(processes, profile, output.path())?;
    }
    profile.merge_children().map_err(|error| {
        Failure::recorder(format!(
            "the processes cannot be put together: {error}\nrun without --follow-children"
        ))
    })
}

/// The first call sites, and how to see more.
fn print_brief(profile: &Profile, path: &Path) {
    let options = heaptally_report::Options {
        limit: BRIEF_LINES,
        color: color(),
        width: width(io::stderr()),
        project: project(),
        ..heaptally_report::Options::default()
    };
    let text = brief(profile, &options);
    if !text.is_empty() {
        let path = escape_path(path.as_os_str().as_bytes());
        let text = format!("\n{text}\nmore: heaptally report {}\n", escape(&path));
        let _closed = io::stderr().write_all(text.as_bytes());
    }
}

/// `PROGRAM.pb.gz` in the working folder.
fn default_output(program: Option<&OsString>) -> PathBuf {
    let name = program.and_then(|program| Path::new(program).file_name()).unwrap_or(OsStr::new("heaptally"));
    let mut name = name.to_owned();
    name.push(".pb.gz");
    PathBuf::from(name)
}
