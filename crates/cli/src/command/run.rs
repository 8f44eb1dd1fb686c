//! `heaptally run`: starts a program with the recorder in it, and writes the profile when it has ended.
//!
//! With `--repeat` it starts it several times, each time with a segment of its own; the runs become one profile by
//! [`merge`], before it is symbolised. The first run that does not end with 0 is the last, as is one in which a signal
//! came that was meant to end this command.

use std::collections::HashMap;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueHint};
use heaptally_profile::merge::merge;
use heaptally_profile::model::{Environment, Profile};
use heaptally_profile::path_text::escape_path;
use heaptally_profile::pprof;
use heaptally_report::child::sentences;
use heaptally_report::escape::escape;
use heaptally_report::summary::summary;
use heaptally_report::text::brief;
use heaptally_segment::layout::{
    OPTION_FOLLOW_CHILDREN, OPTION_MUTATION_SHIFT, OPTION_NO_LIFETIMES, OPTION_ORACLE,
};
use heaptally_segment::read::{self, Snapshot};
use heaptally_symbolize::{Options, Symbolizer};

use crate::convert::{self, is_complete};
use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::family::{self, Process};
use crate::library;
use crate::message::{print, quote, quote_bytes};
use crate::other_allocator;
use crate::output::{Content, Output};
use crate::process::{self, End};
use crate::program::{self, Program};
use crate::progress::ProgressLine;
use crate::proof;
use crate::segment_file::SegmentFile;
use crate::selection::project;
use crate::status::{self, RunStatus, Status};
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
    /// Record this window only; can be given several times. One that never opens is an error.
    #[arg(long, value_name = "NAME")]
    window: Vec<OsString>,
    /// Run the program N times into one profile, which tells apart what differs between the runs.
    ///
    /// Command and environment are the same each time; the input is too, so a program that reads it gets it in the
    /// first run only. After a run that fails no other is started.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// Record child processes too, and their children.
    ///
    /// The profile then holds all processes, those of one program summed; a profile of each process stands beside it
    /// (PROGRAM.pb.gz, PROGRAM.cc1-4711.pb.gz …; not with --repeat). A forked child starts in the window `process`,
    /// whatever was open in its parent; one that calls no allocation function has no entry. Without this option
    /// children are counted and named in the last line.
    #[arg(long)]
    follow_children: bool,
    /// Exit with 125 if anything was lost or not seen, or any stack was cut.
    #[arg(long)]
    strict: bool,
    /// Do not follow blocks after their allocation: no frees, live bytes, peaks.
    #[arg(long)]
    no_lifetimes: bool,
    /// Write what became of program and recorder to FILE, as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json_status: Option<PathBuf>,
    /// Keep the shared segment in a file in this folder, where the program cannot reach this command's /proc entry.
    ///
    /// The file is removed at the end. If this command is killed (SIGKILL) it is left, of no use, and can be removed.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    segment_dir: Option<PathBuf>,
    /// Print nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

/// What to record.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// The program and its arguments.
    pub(crate) program: Vec<OsString>,
    /// Record these windows only.
    pub(crate) windows: Vec<OsString>,
    /// Do not follow blocks.
    pub(crate) no_lifetimes: bool,
    /// Where the segment is kept.
    pub(crate) segment_dir: Option<PathBuf>,
    /// How often to run it; 0 is once.
    pub(crate) repeat: u64,
    /// Record child processes too.
    pub(crate) follow_children: bool,
    /// Show on the error output how far it is when names take long.
    pub(crate) shows_progress: bool,
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// How the program ended, in the last run.
    pub(crate) end: End,
    /// The signal for which the runs that were left were not started.
    pub(crate) interrupted: Option<i32>,
    /// The profile of all runs, symbolised. Of a single run with children their images are apart.
    pub(crate) profile: Profile,
    /// The processes of a single run with children.
    pub(crate) processes: Vec<Process>,
    /// What the user should know of the runs.
    pub(crate) warnings: Vec<String>,
    /// Why it counts as failed though there is a profile.
    pub(crate) failure: Option<Failure>,
}

/// What one run left, not symbolised.
struct OneRun {
    end: End,
    profile: Profile,
    processes: Vec<Process>,
    failure: Option<Failure>,
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
        let mut status = Status { repeat: self.repeat, ..Status::default() };
        let result = output.and_then(|output| self.record_and_write(output, &mut status));
        if let Err(failure) = &result {
            status.error = Some(failure.message.clone());
        }
        let written = status_output.map_or(Ok(()), |output| status.write(output));
        let code = result?;
        written?;
        Ok(code)
    }

    fn record_and_write(&self, output: Output, status: &mut Status) -> Result<u8, Failure> {
        let recording = Recording {
            program: self.program.clone(),
            windows: self.window.clone(),
            no_lifetimes: self.no_lifetimes,
            segment_dir: self.segment_dir.clone(),
            repeat: self.repeat,
            follow_children: self.follow_children,
            shows_progress: !self.quiet,
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
        let path = output.path().to_owned();
        output.write(&bytes)?;
        status.profile = Some(escape_path(path.as_os_str().as_bytes()));
        if !self.quiet {
            let warnings = profile.images.iter().flat_map(|image| &image.warnings).chain(&of_runs);
            let warnings: String = warnings.map(|warning| format!("\nwarning: {warning}")).collect();
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
        // What was asked for is not all there, whatever the program made of the signal.
        Ok(match (end.code(), interrupted) {
            (0, Some(signal)) => End { exit_code: None, signal: Some(signal) }.code(),
            (code, _) => code,
        })
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

/// Runs a program and reads what its recorder left.
pub(crate) fn record(recording: &Recording) -> Result<Recorded, Failure> {
    record_with(recording, &mut Status::default())
}

fn record_with(recording: &Recording, status: &mut Status) -> Result<Recorded, Failure> {
    let Some(name) = recording.program.first() else {
        return Err(Failure::recorder("no program is named\nname one behind --"));
    };
    process::survive_file_limit();
    process::make_do_with_limited_address_space();
    let program = program::examine(name)?;
    let library = library::library()?;
    let repeat = recording.repeat.max(1);
    let of_run = |number: u64, message: &str| match repeat {
        1 => message.to_owned(),
        _ => format!("run {number} of {repeat}: {message}"),
    };
    let mut before: Option<Profile> = None;
    let mut warnings = Vec::new();
    let mut number = 1;
    let mut processes = Vec::new();
    let (end, interrupted, profile, failure) = loop {
        let mut run = run_once(recording, &library, status)
            .map_err(|failure| Failure::new(failure.code, of_run(number, &failure.message)))?;
        if repeat == 1 {
            processes = std::mem::take(&mut run.processes);
        } else if recording.follow_children {
            run.profile.merge_children().map_err(|error| {
                Failure::recorder(format!("the processes cannot be put together: {error}"))
            })?;
        }
        let OneRun { end, profile, failure, .. } = run;
        let profile = merge(before.into_iter().chain([profile]).collect()).map_err(|error| {
            Failure::recorder(format!("the runs cannot be put together: {error}\nrun without --repeat"))
        })?;
        let failure = failure.map(|failure| Failure::new(failure.code, of_run(number, &failure.message)));
        if repeat > 1 && end.code() != 0 {
            warnings.push(format!("run {number} of {repeat} {}", ending(end)));
        }
        if number >= repeat || end.code() != 0 || failure.is_some() {
            break (end, None, profile, failure);
        }
        if let Some(signal) = process::interrupted() {
            warnings.push(format!("run {number} of {repeat} was the last, since signal {signal} came"));
            break (end, Some(signal), profile, failure);
        }
        before = Some(profile);
        number += 1;
    };
    let profile = on_large_stack(|| symbolised(profile, program, recording.shows_progress))?;
    Ok(Recorded { end, interrupted, profile, processes, warnings, failure })
}

/// How a run ended, as the second half of a sentence.
fn ending(end: End) -> String {
    match end.signal {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("exited with {}", end.code()),
    }
}

/// Runs the program once and reads what its recorder left.
fn run_once(recording: &Recording, library: &Path, status: &mut Status) -> Result<OneRun, Failure> {
    let Some((name, arguments)) = recording.program.split_first() else {
        return Err(Failure::recorder("no program is named\nname one behind --"));
    };
    let segment =
        SegmentFile::create(recording.segment_dir.as_deref(), options(recording), &recording.windows)?;
    let mut command = Command::new(name);
    command.args(arguments);
    let end = process::run(&mut command, program_environment(library, segment.path()))
        .map_err(|error| cannot_start(name, &error))?;
    status.runs.push(RunStatus { end, oracle: None });
    let (run, oracle) = on_large_stack(|| {
        let snapshot = read::read(segment.file()).map_err(|error| {
            Failure::recorder(format!("cannot read what was recorded: {error}\nrun again"))
        })?;
        let oracle = status::oracle(&snapshot);
        proof::was_in_path(&snapshot, name, end)?;
        let failure = opened_all(&snapshot);
        let mut profile = convert::profile(&snapshot, environment(recording, end));
        other_allocator::warn(&mut profile, &snapshot);
        let mut processes = Vec::new();
        if recording.follow_children {
            let running = family::running(segment.file());
            processes = family::processes(&snapshot, &running, end);
            profile.children.recorded = processes.len().saturating_sub(1) as u64;
            profile.children.still_running = running.len() as u64;
        }
        Ok((OneRun { end, profile, processes, failure }, oracle))
    })??;
    if let Some(run) = status.runs.last_mut() {
        run.oracle = oracle;
    }
    Ok(run)
}

/// The program was found and looked at, and does not start.
fn cannot_start(name: &OsStr, error: &io::Error) -> Failure {
    let words = format!("cannot start {}: {error}", quote(name));
    let refused = |advice| Failure::recorder(format!("{words}\n{advice}"));
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => refused("raise the limit of open files (ulimit -n)"),
        Some(libc::EAGAIN) => refused("raise the limit of processes (ulimit -u)"),
        Some(libc::ENOMEM) => refused("raise the limit of the address space (ulimit -v), or free memory"),
        Some(libc::E2BIG) => {
            refused("its arguments and environment leave no room for the recorder's: give it fewer")
        }
        Some(libc::ENOENT) => {
            Failure::new(NOT_FOUND, format!("{words}\nsee whether it runs without heaptally"))
        }
        _ => Failure::new(NOT_EXECUTABLE, format!("{words}\nsee whether it runs without heaptally")),
    }
}

fn environment(recording: &Recording, end: End) -> Environment {
    Environment {
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: env::consts::ARCH.to_owned(),
        command: recording.program.iter().map(|word| escape_path(word.as_bytes())).collect(),
        exit_code: Some(i32::from(end.code())),
        ..Environment::default()
    }
}

/// Runs on a stack of its own: names can be nested deeply, and the user may have limited this command's (ulimit -s).
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    const STACK_BYTES: usize = 64 << 20;
    const SMALL_STACK_BYTES: usize = 8 << 20;
    let is_limited = process::make_do_with_limited_address_space();
    let (stack_bytes, advice) = if is_limited {
        (SMALL_STACK_BYTES, "raise the limit of the address space (ulimit -v)")
    } else {
        (STACK_BYTES, "free memory, or see which limit or sandbox is in the way of threads")
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack_bytes).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| {
            Failure::recorder(format!("cannot start a thread to read what was recorded: {error}\n{advice}"))
        })?;
        thread.join().map_err(|_| Failure::new(crate::exit::INTERNAL, "a fault in heaptally, see above"))
    })
}

fn options(recording: &Recording) -> u32 {
    let mut options = if recording.no_lifetimes { OPTION_NO_LIFETIMES } else { 0 };
    if recording.follow_children {
        options |= OPTION_FOLLOW_CHILDREN;
    }
    // For heaptally's own tests: see the recorder's feature `oracle`.
    if env::var_os("HEAPTALLY_ORACLE").is_some_and(|value| value == "1") {
        options |= OPTION_ORACLE;
        let mutation = env::var("HEAPTALLY_MUTATION").ok().and_then(|value| value.parse::<u8>().ok());
        options |= u32::from(mutation.unwrap_or(0)) << OPTION_MUTATION_SHIFT;
    }
    options
}

/// This command's environment, each variable in its place, with what the recorder needs: in `LD_PRELOAD` the recorder
/// comes first, then what the user preloads.
fn program_environment(library: &Path, segment: &Path) -> Vec<CString> {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    const SEGMENT: &[u8] = b"HEAPTALLY_SEGMENT=";
    let mut entries = process::own_environment();
    entries.retain(|entry| !entry.starts_with(SEGMENT));
    let ours = [PRELOAD, library.as_os_str().as_bytes()].concat();
    match entries.iter_mut().rfind(|entry| entry.starts_with(PRELOAD)) {
        Some(entry) => *entry = [&ours, &b":"[..], &entry[PRELOAD.len()..]].concat(),
        None => entries.push(ours),
    }
    entries.push([SEGMENT, segment.as_os_str().as_bytes()].concat());
    entries.into_iter().filter_map(|entry| CString::new(entry).ok()).collect()
}

/// A window that was asked for by name must have opened.
fn opened_all(snapshot: &Snapshot) -> Option<Failure> {
    let is_opened = |name: &Vec<u8>| {
        let windows = snapshot.areas.iter().flat_map(|area| &area.windows);
        windows.into_iter().any(|window| window.name == *name && window.entries > 0)
    };
    let missing: Vec<String> =
        snapshot.names.iter().filter(|name| !is_opened(name)).map(|name| quote_bytes(name)).collect();
    let advice = if missing == ["`process`"] {
        "that is what is recorded before the first window: run without --window, then `heaptally report --window process`"
    } else {
        "run without --window to see which windows there are"
    };
    (!missing.is_empty())
        .then(|| Failure::recorder(format!("the window {} never opened\n{advice}", missing.join(", "))))
}

fn symbolised(mut profile: Profile, program: Program, shows_progress: bool) -> Profile {
    if let Some(image) = profile.images.first_mut() {
        image.warnings.extend(program.warnings);
    }
    let mut of_path: HashMap<String, Vec<String>> = HashMap::new();
    for image in profile.images.iter_mut().skip(1) {
        let warnings = of_path.entry(image.path.clone());
        image.warnings.extend_from_slice(
            warnings.or_insert_with(|| program::warnings_of_image(Path::new(&image.path))),
        );
    }
    let image = fs::canonicalize(&program.image).unwrap_or(program.image);
    let executable = program.file.map(|file| (image, file));
    let mut line = ProgressLine::new(shows_progress);
    let is_limited = process::make_do_with_limited_address_space();
    let threads = if is_limited { Some(NonZeroUsize::MIN) } else { Options::default().threads };
    Symbolizer::new(Options { executable, threads, ..Options::default() })
        .symbolize_observed(&mut profile, &mut |progress| line.update(progress));
    drop(line);
    other_allocator::take_back(&mut profile);
    // The indices were whole before, so this cannot fail; a profile that it left alone is right all the same.
    if let Err(error) = profile.normalize() {
        print(&format!("the profile could not be put in order: {error}"));
    }
    profile
}
