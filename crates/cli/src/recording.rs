//! Recording a program: what `run` and every other command that starts one share.
//!
//! [`record`] starts the program with the recorder in it and reads what that left. With `repeat` it starts it several
//! times, each time with a segment of its own; the runs become one profile by [`merge`], before it is symbolised. The
//! first run that does not end with 0 is the last, as is one in which a signal came that was meant to end this command.
//! Nothing is written: where the profile goes is the caller's affair, as is what an incomplete one means
//! ([`is_complete`](crate::convert::is_complete)). Failures carry the exit codes of `run`.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args, ValueHint};
use heaptally_profile::merge::merge;
use heaptally_profile::model::{Environment, INCOMPLETE, Profile, WindowKind};
use heaptally_profile::path_text::escape_path;
use heaptally_segment::layout::{
    OPTION_BENCHMARK_NAMES, OPTION_FOLLOW_BENCHMARKS, OPTION_FOLLOW_CHILDREN, OPTION_FUNCTION_WINDOWS,
    OPTION_MUTATION_SHIFT, OPTION_NO_HARNESS, OPTION_NO_LIFETIMES, OPTION_ORACLE, OPTION_TASK_ORIGINS,
    PACKAGE_BENCHMARK, PACKAGE_BENCHMARK_LOOP,
};
use heaptally_segment::read;
use heaptally_symbolize::{Options, Symbolizer};

use crate::convert;
use crate::doctor::needed_libraries;
use crate::exit::{Failure, INTERNAL, NOT_EXECUTABLE, NOT_FOUND};
use crate::family::{self, Process};
use crate::function::definition::{Definitions, WindowAt, WindowIn, WindowPause};
use crate::function::desk::Desk;
use crate::function::finder::{Finder, Modules};
use crate::function::harness::put_apart;
use crate::function::outcome::outcome;
use crate::harness::benchmark_name::name_windows;
use crate::harness::{self, Choice};
use crate::large_stack::on_large_stack;
use crate::library;
use crate::message::{print, quote};
use crate::other_allocator;
use crate::process::{self, End};
use crate::program::{self, Program};
use crate::progress::ProgressLine;
use crate::proof;
use crate::segment_file::{Names, SegmentFile};
use crate::status::{self, RunStatus, Status};

/// The options that say how a program is recorded, for every command that starts one.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RecordingArgs {
    /// Run the program N times into one profile, which tells apart what differs between the runs.
    ///
    /// Command and environment are the same each time; the input is too, so a program that reads it gets it in the
    /// first run only. After a run that fails no other is started.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repeat: u64,
    /// Record child processes too, and their children.
    ///
    /// The profile then holds all processes, those of one program summed; a profile of each process stands beside it
    /// (PROGRAM.pb.gz, PROGRAM.cc1-4711.pb.gz …; not with --repeat). A forked child starts in the window `process`,
    /// whatever was open in its parent; one that calls no allocation function has no entry. Without this option
    /// children are counted and named in the last line.
    #[arg(long)]
    follow_children: bool,
    /// Do not follow blocks after their allocation: no frees, live bytes, peaks.
    #[arg(long)]
    no_lifetimes: bool,
    /// Join the callers of Swift's tasks to the stack that created the task.
    ///
    /// Else a stack in a task ends where the task begins. Each allocation is looked at then, inside of windows and outside, which
    /// takes time. Of tasks that create tasks, eight are told. Where Swift's runtime is linked in, tasks of `async let` begin where
    /// they begin without it.
    #[arg(long)]
    task_origins: bool,
    /// Record what runs beneath a function on its thread, in the program as it is; can be given several times.
    ///
    /// FUNCTION is as BEGIN in --window-at. Copies that were inlined count, too, where there is debug information. Each call
    /// that is not made beneath another one is an entry.
    #[arg(long, value_name = "[NAME=]FUNCTION", value_parser = WindowIn::parse)]
    window_in: Vec<WindowIn>,
    /// Record a window that opens at the entry of one function and closes at the entry of another, in the program as it
    /// is; can be given several times.
    ///
    /// BEGIN and END are names as reports print them or as the file has them, names with `*`, `re:REGEX` (all that fit), or
    /// FILE:LINE; `heaptally symbols` lists functions. The window counts all threads, and only such windows, and those of
    /// --window, are recorded. NAME has letters, digits, `_` and `-`; without it the window is named as it is defined.
    #[arg(long, value_name = "[NAME=]BEGIN..END", value_parser = WindowAt::parse)]
    window_at: Vec<WindowAt>,
    /// Record nothing in a window of --window-at from the entry of a function on; can be given several times.
    ///
    /// FUNCTION is as BEGIN there. It counts for all threads, until --window-resume as often as this, or the window's end.
    #[arg(long, value_name = "NAME=FUNCTION", value_parser = WindowPause::parse_pause)]
    window_pause: Vec<WindowPause>,
    /// Undo one --window-pause of that window at the entry of a function; can be given several times.
    #[arg(long, value_name = "NAME=FUNCTION", value_parser = WindowPause::parse_resume)]
    window_resume: Vec<WindowPause>,
    /// Start over what a window of that name holds when it is begun while it is open; can be given several times.
    ///
    /// What the entry held so far is told as discarded, and is in no other sum. NAME is that of a window of --window-at, or of
    /// --window.
    #[arg(long, value_name = "NAME")]
    window_restart: Vec<String>,
    /// Keep apart what a function allocates in a window, since it is the harness's; can be given several times.
    ///
    /// FUNCTION is as BEGIN in --window-at. Stacks through it, or through an inlined copy, go to a window of their own, which
    /// `heaptally report --full` shows.
    #[arg(long, value_name = "NAME=FUNCTION", value_parser = WindowPause::parse_harness)]
    window_harness: Vec<WindowPause>,
    /// Whose benchmark loops are windows by themselves, named as the benchmarks.
    ///
    /// Set-up, tear-down and pauses are outside, and iterations are told (docs/harnesses.md). Google Benchmark is found as a
    /// shared library, and in a program that it is linked into; CodSpeed's library in a program that it is linked into; Swift's
    /// package-benchmark in the program, and in those that its tool starts.
    #[arg(long, value_name = "HARNESS", value_enum, default_value_t = Choice::Auto)]
    harness: Choice,
    /// Keep the shared segment in a file in this folder, where the program cannot reach this command's /proc entry.
    ///
    /// The file is removed at the end. If this command is killed (SIGKILL) it is left, of no use, and can be removed.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    segment_dir: Option<PathBuf>,
}

impl RecordingArgs {
    /// Whether no harness's windows are wanted.
    pub(crate) fn leaves_harnesses_alone(&self) -> bool {
        self.harness == Choice::None
    }

    /// Whether windows at functions are defined.
    pub(crate) fn has_functions(&self) -> bool {
        !self.window_at.is_empty() || !self.window_in.is_empty()
    }

    /// Whether any of them was given.
    pub(crate) fn is_stated(&self) -> bool {
        self.repeat > 1
            || self.follow_children
            || self.no_lifetimes
            || self.task_origins
            || self.segment_dir.is_some()
            || !self.window_at.is_empty()
            || !self.window_in.is_empty()
            || !self.window_pause.is_empty()
            || !self.window_resume.is_empty()
            || !self.window_restart.is_empty()
            || !self.window_harness.is_empty()
            || self.harness != Choice::Auto
    }

    /// The recording of a program, named first, with its arguments: of all windows, without a progress line.
    pub(crate) fn recording(&self, program: &[OsString]) -> Recording {
        let mut functions = Definitions::default();
        functions.add(self.window_in.iter().map(|WindowIn(edge)| edge));
        functions.add(self.window_at.iter().flat_map(|window| [&window.begin, &window.end]));
        let pauses = self.window_pause.iter().chain(&self.window_resume).chain(&self.window_harness);
        functions.add_pauses(pauses.map(|WindowPause(edge)| edge));
        functions.add_restarts(&self.window_restart);
        Recording {
            functions,
            harness: self.harness,
            program: program.to_vec(),
            no_lifetimes: self.no_lifetimes,
            task_origins: self.task_origins,
            segment_dir: self.segment_dir.clone(),
            repeat: self.repeat,
            follow_children: self.follow_children,
            ..Recording::default()
        }
    }
}

/// What to record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    /// The program and its arguments.
    pub(crate) program: Vec<OsString>,
    /// Record these windows only.
    pub(crate) windows: Vec<OsString>,
    /// Record these windows at functions.
    pub(crate) functions: Definitions,
    /// Whose benchmark loops are windows by themselves.
    pub(crate) harness: Choice,
    /// Do not follow blocks.
    pub(crate) no_lifetimes: bool,
    /// Join Swift's tasks to what created them.
    pub(crate) task_origins: bool,
    /// Where the segment is kept.
    pub(crate) segment_dir: Option<PathBuf>,
    /// How often to run it; 0 is once.
    pub(crate) repeat: u64,
    /// Record child processes too.
    pub(crate) follow_children: bool,
    /// Of child processes only those that run benchmarks for package-benchmark's tool; set by [`harness::prepare`].
    pub(crate) follows_benchmarks_only: bool,
    /// Windows of package-benchmark's benchmarks get their names; set by the same.
    pub(crate) names_benchmarks: bool,
    /// Show on the error output how far it is when names take long.
    pub(crate) shows_progress: bool,
    /// The program's working folder; `None`: this command's.
    pub(crate) folder: Option<PathBuf>,
    /// Variables of its environment, beside or in place of this command's.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Where its output and errors go; `None`: where this command's do.
    pub(crate) output: Option<Arc<File>>,
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

/// Runs a program and reads what its recorder left.
pub(crate) fn record(recording: &Recording) -> Result<Recorded, Failure> {
    record_with(recording, &mut Status::default())
}

/// As [`record`]; what is known of the runs goes to `status` at once, so that it is there if this fails.
pub(crate) fn record_with(recording: &Recording, status: &mut Status) -> Result<Recorded, Failure> {
    let (recorded, program) = record_addresses(recording, status, &mut Modules::default())?;
    let image = fs::canonicalize(&program.image).unwrap_or(program.image);
    let executable = Some((image, program.file));
    let profile = on_large_stack(|| symbolised(recorded.profile, executable, recording.shows_progress))?;
    Ok(Recorded { profile, ..recorded })
}

/// As [`record_with`], without names: the profile holds addresses, which [`symbolised`] reads. `modules` are those whose
/// functions were listed before.
pub(crate) fn record_addresses(
    recording: &Recording,
    status: &mut Status,
    modules: &mut Modules,
) -> Result<(Recorded, Program), Failure> {
    let Some(name) = recording.program.first() else {
        return Err(Failure::recorder("no program is named\nname one behind --"));
    };
    recording.functions.check(&recording.windows).map_err(Failure::recorder)?;
    process::survive_file_limit();
    process::make_do_with_limited_address_space();
    let mut program = program::examine(name)?;
    program::refuse_preloaded()?;
    let library = library::library()?;
    let recording = &harness::prepare(recording, &mut program);
    recording.functions.check_room()?;
    let repeat = recording.repeat.max(1);
    let of_run = |number: u64, message: &str| match repeat {
        1 => message.to_owned(),
        _ => format!("run {number} of {repeat}: {message}"),
    };
    let mut before: Option<Profile> = None;
    let mut warnings = Vec::new();
    let mut number = 1;
    let mut processes = Vec::new();
    let (end, interrupted, mut profile, failure) = loop {
        let mut run = run_once(recording, &program, &library, status, modules)
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
    add_warnings(&mut profile, &program);
    Ok((Recorded { end, interrupted, profile, processes, warnings, failure }, program))
}

/// How a run ended, as the second half of a sentence.
fn ending(end: End) -> String {
    match end.signal {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("exited with {}", end.code()),
    }
}

/// Runs the program once and reads what its recorder left.
fn run_once(
    recording: &Recording,
    program: &Program,
    library: &Path,
    status: &mut Status,
    modules: &mut Modules,
) -> Result<OneRun, Failure> {
    let Some((name, arguments)) = recording.program.split_first() else {
        return Err(Failure::recorder("no program is named\nname one behind --"));
    };
    let mut names = recording.windows.clone();
    let own = recording.functions.windows.iter().map(OsString::from);
    names.extend(own.filter(|name| !recording.windows.contains(name)));
    // Those that can be restarted come first.
    let wanted = (!names.is_empty()).then(|| names.clone());
    let mut restarts = recording.functions.restarts.clone();
    if recording.names_benchmarks {
        let own = [PACKAGE_BENCHMARK, PACKAGE_BENCHMARK_LOOP].map(OsString::from);
        names.extend(own.into_iter().filter(|name| !recording.windows.contains(name)));
        if recording.functions.has_benchmarks() {
            restarts.push(PACKAGE_BENCHMARK.to_owned());
        }
    }
    let can_restart = |name: &OsString| restarts.iter().any(|restart| name == restart.as_str());
    names.sort_by_key(|name| !can_restart(name));
    let windows = Names { all: &names, restartable: restarts.len() as u32, are_all: wanted.is_some() };
    let segment = SegmentFile::create(recording.segment_dir.as_deref(), options(recording), windows)?;
    let desk = open_desk(recording, &segment, &names, (program, library), modules)?;
    let mut command = Command::new(name);
    command.args(arguments);
    place(&mut command, recording)?;
    let entries = program_environment(library, segment.path(), &recording.variables);
    let end = process::run(&mut command, entries).map_err(|error| cannot_start(name, &error))?;
    status.runs.push(RunStatus { end, oracle: None });
    let finder = desk
        .map(|desk| desk.close().ok_or_else(|| Failure::new(INTERNAL, "a fault in heaptally, see above")));
    let finder = finder.transpose()?;
    // Before the segment is read: whoever ends meanwhile has been noticed there.
    let running = match recording.follow_children {
        true => BTreeMap::new(),
        false => family::running_programs(segment.file()),
    };
    let (run, oracle) = on_large_stack(|| {
        let mut snapshot = read::read(segment.file()).map_err(|error| {
            Failure::recorder(format!("cannot read what was recorded: {error}\nrun again"))
        })?;
        let oracle = status::oracle(&snapshot);
        proof::was_in_path(&snapshot, &recording.program, end)?;
        let benchmarks = name_windows(&mut snapshot, wanted.as_deref());
        let has_benchmark = benchmarks.is_any_open;
        let functions =
            finder.as_ref().map(|finder| outcome(finder, &snapshot, has_benchmark)).unwrap_or_default();
        let unopened = proof::unopened(&snapshot);
        let failure = functions.failure.or_else(|| proof::opened_all(&unopened));
        // The profile is written all the same, and what reads it does not know this run's exit code.
        let mut marks = functions.marks;
        if marks.is_empty() {
            marks.extend(unopened.iter().map(|name| format!("{INCOMPLETE}the window {name} never opened")));
        }
        let mut profile = convert::profile(&snapshot, environment(recording, end), library);
        benchmarks.tell(&mut profile);
        other_allocator::warn(&mut profile, &snapshot, program);
        for window in profile.windows.iter_mut().filter(|window| window.kind != WindowKind::Automatic) {
            window.definition = recording.functions.phrases(&window.name);
        }
        if let Some(finder) = &finder {
            put_apart(&mut profile, finder);
        }
        let mut processes = Vec::new();
        if recording.follow_children {
            let running = family::running(segment.file());
            processes = family::processes(&snapshot, &running, end);
            profile.children.recorded = processes.len().saturating_sub(1) as u64;
            profile.children.still_running = running.len() as u64;
        } else {
            family::add_unnoticed(&mut profile.children, running);
        }
        if let Some(image) = profile.images.first_mut() {
            image.warnings.extend(functions.warnings.into_iter().chain(marks));
        }
        // One iteration: what is shown is the whole.
        for window in &mut profile.windows {
            if functions.uncounted.contains(&window.name) {
                (window.iterations, window.iterations_told) = (1, true);
            }
        }
        Ok((OneRun { end, profile, processes, failure }, oracle))
    })??;
    if let Some(run) = status.runs.last_mut() {
        run.oracle = oracle;
    }
    if let Some(finder) = finder {
        *modules = finder.into_modules();
    }
    Ok(run)
}

/// Says where the program is to run, and where its output goes.
fn place(command: &mut Command, recording: &Recording) -> Result<(), Failure> {
    if let Some(folder) = &recording.folder {
        command.current_dir(folder);
    }
    if let Some(output) = &recording.output {
        let cannot = |error: io::Error| {
            Failure::recorder(format!(
                "cannot keep the program's output: {error}\nfree descriptors (ulimit -n)"
            ))
        };
        command.stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(cannot)?);
        command.stderr(output.try_clone().map_err(cannot)?);
    }
    Ok(())
}

/// Answers the recorder, where windows at functions are wanted.
fn open_desk(
    recording: &Recording,
    segment: &SegmentFile,
    names: &[OsString],
    (program, library): (&Program, &Path),
    modules: &mut Modules,
) -> Result<Option<Desk>, Failure> {
    if recording.functions.is_empty() {
        return Ok(None);
    }
    let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    let finder = Finder::new(recording.functions.clone(), &names, library, std::mem::take(modules));
    let image = fs::canonicalize(&program.image).unwrap_or_else(|_| program.image.clone());
    let mut ahead = vec![image.clone()];
    ahead.extend(needed_libraries(&image));
    Desk::open(segment.file(), finder, ahead).map(Some).map_err(|error| {
        Failure::recorder(format!(
            "cannot answer the recorder: {error}\nsee which limit or sandbox is in the way of threads"
        ))
    })
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
        machine: machine(),
        command: recording.program.iter().map(|word| escape_path(word.as_bytes())).collect(),
        exit_code: Some(i32::from(end.code())),
        ..Environment::default()
    }
}

/// The processor's model, and how many of them the program can use; empty: unknown.
fn machine() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map(|(_, model)| model.split_whitespace().collect::<Vec<_>>().join(" "));
    let (Some(model), Ok(count)) = (model, std::thread::available_parallelism()) else {
        return String::new();
    };
    // `;` stands between several machines.
    let model = model.replace(';', ",");
    if count == NonZeroUsize::MIN {
        format!("{model}, 1 processor")
    } else {
        format!("{model}, {count} processors")
    }
}

fn options(recording: &Recording) -> u32 {
    let mut options = if recording.no_lifetimes { OPTION_NO_LIFETIMES } else { 0 };
    if recording.follow_children {
        let only = recording.follows_benchmarks_only;
        options |= if only { OPTION_FOLLOW_BENCHMARKS } else { OPTION_FOLLOW_CHILDREN };
    }
    if recording.names_benchmarks {
        options |= OPTION_BENCHMARK_NAMES;
    }
    if !recording.functions.is_empty() {
        options |= OPTION_FUNCTION_WINDOWS;
    }
    if recording.task_origins {
        options |= OPTION_TASK_ORIGINS;
    }
    // The functions of Google Benchmark that can be stood in for are those of a shared library.
    if matches!(recording.harness, Choice::None | Choice::Codspeed) {
        options |= OPTION_NO_HARNESS;
    }
    // For heaptally's own tests: see the recorder's feature `oracle`.
    if env::var_os("HEAPTALLY_ORACLE").is_some_and(|value| value == "1") {
        options |= OPTION_ORACLE;
        let mutation = env::var("HEAPTALLY_MUTATION").ok().and_then(|value| value.parse::<u8>().ok());
        options |= u32::from(mutation.unwrap_or(0)) << OPTION_MUTATION_SHIFT;
    }
    options
}

/// This command's environment, each variable in its place, with those of the program's own, and with what the recorder
/// needs: in `LD_PRELOAD` the recorder comes first, then what the user preloads.
fn program_environment(library: &Path, segment: &Path, own: &[(OsString, OsString)]) -> Vec<CString> {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    const SEGMENT: &[u8] = b"HEAPTALLY_SEGMENT=";
    let mut entries = process::own_environment();
    entries.retain(|entry| !entry.starts_with(SEGMENT));
    for (name, value) in own {
        let begin = [name.as_bytes(), b"="].concat();
        entries.retain(|entry| !entry.starts_with(&begin));
        entries.push([&begin, value.as_bytes()].concat());
    }
    let ours = [PRELOAD, library.as_os_str().as_bytes()].concat();
    match entries.iter_mut().rfind(|entry| entry.starts_with(PRELOAD)) {
        Some(entry) => *entry = [&ours, &b":"[..], &entry[PRELOAD.len()..]].concat(),
        None => entries.push(ours),
    }
    entries.push([SEGMENT, segment.as_os_str().as_bytes()].concat());
    entries.into_iter().filter_map(|entry| CString::new(entry).ok()).collect()
}

/// Adds what the user should know of the programs.
fn add_warnings(profile: &mut Profile, program: &Program) {
    if let Some(image) = profile.images.first_mut() {
        image.warnings.extend_from_slice(&program.warnings);
    }
    let mut of_path: HashMap<String, Vec<String>> = HashMap::new();
    for image in profile.images.iter_mut().skip(1) {
        let warnings = of_path.entry(image.path.clone());
        image.warnings.extend_from_slice(
            warnings.or_insert_with(|| program::warnings_of_image(Path::new(&image.path))),
        );
    }
}

/// The profile with names. `executable`: the program as it was opened, where it may have been replaced meanwhile.
pub(crate) fn symbolised(
    mut profile: Profile,
    executable: Option<(PathBuf, File)>,
    shows_progress: bool,
) -> Profile {
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
