//! Records Cargo's programs: one process for each benchmark or test, whose profiles are added.
//!
//! Names are looked up once, in the sum. With `--repeat` all is run that often, and what differs is told apart as for one
//! program.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use heaptally_profile::merge::{merge, sum};
use heaptally_profile::model::{Image, Profile, WindowKind};
use heaptally_profile::path_text::escape_path;

use super::build::{Program, Task};
use super::environment::Place;
use crate::exit::{Failure, UNREADABLE};
use crate::function::finder::Modules;
use crate::harness::by_id::{Call, Found, Harness, Scope, look};
use crate::large_stack::on_large_stack;
use crate::message::{self, quote};
use crate::process;
use crate::recording::{Recorded, Recording, RecordingArgs, record_addresses, symbolised};
use crate::status::Status;

/// What is recorded, and how.
pub(crate) struct Wanted<'w> {
    pub(crate) task: Task,
    /// The user's words for the programs.
    pub(crate) chosen: Vec<OsString>,
    pub(crate) recording: &'w RecordingArgs,
    /// Go on behind a program that fails.
    pub(crate) keeps_going: bool,
    /// Let programs print.
    pub(crate) shows_output: bool,
}

/// What was recorded.
pub(crate) struct Sum {
    pub(crate) profile: Profile,
    /// The code of the first program that failed.
    pub(crate) failed: Option<u8>,
    pub(crate) warnings: Vec<String>,
}

/// One program, as far as it was looked at.
struct Subject<'p> {
    program: &'p Program,
    found: Found,
    /// What it has to run; `None`: it is run whole.
    ids: Option<Vec<String>>,
}

/// How one benchmark or test ended.
enum One {
    Recorded(Box<Profile>),
    Failed(u8),
}

/// Records programs.
pub(crate) fn record(wanted: &Wanted<'_>, programs: &[Program]) -> Result<Sum, Failure> {
    let subjects = subjects(wanted, programs)?;
    if subjects.is_empty() {
        let (what, next) = match wanted.task {
            Task::Bench => ("benchmark", "write one, or choose otherwise"),
            Task::Test | Task::Run => ("test", "choose otherwise"),
        };
        let chosen = if wanted.chosen.is_empty() { String::new() } else { " that was chosen".to_owned() };
        return Err(Failure::new(
            UNREADABLE,
            format!("there is no {what}{chosen}, so nothing was recorded\n{next}"),
        ));
    }
    let mut recorder = Recorder {
        wanted,
        modules: Modules::default(),
        failed: None,
        warnings: Vec::new(),
        remarks: BTreeMap::new(),
        has_threads: false,
    };
    let mut runs = Vec::new();
    for _ in 0..wanted.recording.repeat.max(1) {
        let mut profiles = Vec::new();
        'all: for subject in &subjects {
            for id in subject.ids.iter().flatten().map(Some).chain(subject.ids.is_none().then_some(None)) {
                if process::interrupted().is_some() {
                    break 'all;
                }
                match recorder.one(subject, id.map(String::as_str))? {
                    One::Recorded(profile) => profiles.push(*profile),
                    One::Failed(code) => {
                        recorder.failed.get_or_insert(code);
                        if !wanted.keeps_going {
                            break 'all;
                        }
                    }
                }
            }
        }
        if !profiles.is_empty() {
            runs.push(put_together(profiles, sum)?);
        }
        if recorder.failed.is_some() || process::interrupted().is_some() {
            break;
        }
    }
    let Recorder { failed, warnings, remarks, has_threads, .. } = recorder;
    if let (Some(code), true) = (failed, runs.is_empty()) {
        return Err(Failure::new(code, "nothing was recorded"));
    }
    let mut profile = match runs.len() {
        1 => runs.remove(0),
        _ => put_together(runs, merge)?,
    };
    for ((program, remark), ids) in remarks {
        let of_program = |image: &&mut Image| image.label == program;
        if let Some(image) = profile.images.iter_mut().find(of_program) {
            image.warnings.push(format!("{} {remark}", holders(&ids)));
        }
    }
    if !has_threads {
        // One of each process, which says nothing, and their sums were compared.
        profile.threads.clear();
    }
    let failed = failed.or(process::interrupted().and_then(|signal| u8::try_from(128 + signal).ok()));
    let profile = on_large_stack(|| symbolised(profile, None, true))?;
    Ok(Sum { profile, failed, warnings })
}

fn put_together(
    profiles: Vec<Profile>,
    how: fn(Vec<Profile>) -> Result<Profile, heaptally_profile::Error>,
) -> Result<Profile, Failure> {
    on_large_stack(|| how(profiles))?.map_err(|error| {
        Failure::new(
            UNREADABLE,
            format!("the recordings cannot be put together: {error}\nrecord fewer at once"),
        )
    })
}

/// Looks which programs have something to run, and says what they have.
fn subjects<'p>(wanted: &Wanted<'_>, programs: &'p [Program]) -> Result<Vec<Subject<'p>>, Failure> {
    let mut subjects = Vec::new();
    for program in programs {
        let found = match wanted.task {
            Task::Run => Found::default(),
            _ if wanted.recording.leaves_harnesses_alone() => Found::default(),
            Task::Bench | Task::Test => look(&program.path).map_err(|error| {
                Failure::new(
                    UNREADABLE,
                    format!("cannot read {}: {error}\nbuild again", quote(&program.path)),
                )
            })?,
        };
        let Some(harness) = found.harness else {
            subjects.push(Subject { program, found, ids: None });
            continue;
        };
        let ids = ids(wanted, program, harness)?;
        if ids.is_empty() {
            continue;
        }
        let (count, what) = (ids.len(), if wanted.task == Task::Bench { "benchmark" } else { "test" });
        let plural = if count == 1 { "" } else { "s" };
        let how = [harness.name(), harness.how()].into_iter().filter(|words| !words.is_empty());
        let how = how.collect::<Vec<_>>().join("; ");
        message::print(&format!(
            "{}: {count} {what}{plural} ({how})",
            message::visible(program.name.as_bytes())
        ));
        subjects.push(Subject { program, found, ids: Some(ids) });
    }
    Ok(subjects)
}

/// The benchmarks or tests of a program that are chosen.
fn ids(wanted: &Wanted<'_>, program: &Program, harness: &dyn Harness) -> Result<Vec<String>, Failure> {
    let run = |call: &Call| {
        let words = words(&program.place, program.path.as_os_str().to_owned(), &call.arguments);
        let (first, rest) = words.split_first().ok_or_else(|| Failure::new(UNREADABLE, "no program"))?;
        let mut command = Command::new(first);
        command.args(rest).stdin(Stdio::null()).envs(call.variables.iter().copied());
        command.envs(program.place.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &program.place.folder {
            command.current_dir(folder);
        }
        command.output().map_err(|error| {
            Failure::new(
                UNREADABLE,
                format!("cannot start {}: {error}\nsee whether it runs by itself", quote(first)),
            )
        })
    };
    let list = |chosen: &[OsString]| -> Result<Vec<String>, Failure> {
        let mut output = run(&harness.list(chosen))?;
        if !output.status.success()
            && let Some(call) = harness.list_otherwise(chosen)
        {
            output = run(&call)?;
        }
        if !output.status.success() {
            let _closed = std::io::stderr().write_all(&output.stderr);
            let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(UNREADABLE);
            let name = quote(&program.name);
            return Err(Failure::new(
                code,
                format!("{name} does not list what it has, see above\nsee what stands behind --"),
            ));
        }
        Ok(harness.ids(&String::from_utf8_lossy(&output.stdout), wanted.task == Task::Bench))
    };
    let mut ids = list(&wanted.chosen)?;
    // libtest lists ignored tests, too, and says by another list which they are.
    let is_about_ignored = |word: &OsString| word == "--ignored" || word == "--include-ignored";
    if harness.name() == "libtest" && !wanted.chosen.iter().any(is_about_ignored) {
        let ignored = list(&[&wanted.chosen[..], &["--ignored".into()]].concat())?;
        ids.retain(|id| !ignored.contains(id));
    }
    Ok(ids)
}

/// A program and its arguments, behind what starts it.
fn words(place: &Place, program: OsString, arguments: &[OsString]) -> Vec<OsString> {
    let runner = place.runner.iter().map(OsString::from);
    runner.chain([program]).chain(arguments.iter().cloned()).collect()
}

/// Records one after the other.
struct Recorder<'w> {
    wanted: &'w Wanted<'w>,
    modules: Modules,
    failed: Option<u8>,
    warnings: Vec<String>,
    /// Windows that hold more than what is measured, by program and by what that is.
    remarks: BTreeMap<(String, &'static str), BTreeSet<String>>,
    /// Some process had several threads to tell of.
    has_threads: bool,
}

impl Recorder<'_> {
    /// Records one benchmark or test, or the program whole. Where the first scope's window does not open, it is run again
    /// for the next one's.
    fn one(&mut self, subject: &Subject<'_>, id: Option<&str>) -> Result<One, Failure> {
        let own = self.wanted.recording.has_functions();
        let mut scopes: Vec<Option<Scope>> = Vec::new();
        if own || id.is_none() || subject.found.opens_windows {
            scopes.push(None);
        }
        if !own && id.is_some() {
            scopes.extend(subject.found.scopes.iter().copied().map(Some));
        }
        let mut why = None;
        let count = scopes.len();
        for (number, scope) in scopes.into_iter().enumerate() {
            let is_last = number + 1 == count;
            let (recorded, output) = self.run(subject, id, scope)?;
            let code = recorded.end.code();
            if code != 0 {
                show(output);
                let what = quote(id.unwrap_or(&subject.program.name));
                message::print(&format!("{what} ended with {code}"));
                if self.wanted.task != Task::Run {
                    return Ok(One::Failed(code));
                }
                self.failed = Some(code);
            }
            if let Some(failure) = recorded.failure {
                why = Some(failure);
                continue;
            }
            let mut profile = recorded.profile;
            if scope.is_none()
                && id.is_some()
                && !own
                && !rename(&mut profile, id.unwrap_or_default())
                && !is_last
            {
                continue;
            }
            if let (Some(id), Some(remark)) = (id, scope.and_then(|scope| scope.remark)) {
                let key = (escape_path(subject.program.name.as_bytes()), remark);
                self.remarks.entry(key).or_default().insert(id.to_owned());
            }
            self.finish(subject, &mut profile, recorded.warnings);
            return Ok(One::Recorded(Box::new(profile)));
        }
        let what = quote(id.unwrap_or(&subject.program.name));
        let why = why.map_or_else(
            || {
                "its program has none of the harness's functions\nis it stripped? build it with symbols"
                    .to_owned()
            },
            |failure| failure.message,
        );
        Err(Failure::new(UNREADABLE, format!("no window of {what} could be recorded: {why}")))
    }

    /// Runs it once for a scope, or, without one, with the windows that it opens or that are defined by options.
    fn run(
        &mut self,
        subject: &Subject<'_>,
        id: Option<&str>,
        scope: Option<Scope>,
    ) -> Result<(Recorded, Option<Arc<File>>), Failure> {
        let Program { place, path, .. } = subject.program;
        let chosen = &self.wanted.chosen;
        let call = match (id, subject.found.harness) {
            (Some(id), Some(harness)) => harness.one(id, chosen),
            // Cargo says so to every benchmark's program.
            _ if self.wanted.task == Task::Bench => {
                Call { arguments: [&chosen[..], &["--bench".into()]].concat(), ..Call::default() }
            }
            _ => Call { arguments: chosen.clone(), ..Call::default() },
        };
        let words = words(place, path.as_os_str().to_owned(), &call.arguments);
        let keeps_output = id.is_some() && !self.wanted.shows_output;
        let output = keeps_output.then(tempfile::tempfile).transpose();
        let output = output.map_err(|error| {
            Failure::new(
                UNREADABLE,
                format!("cannot keep what a program prints: {error}\nmake room for temporary files"),
            )
        })?;
        let variables =
            call.variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut recording = Recording {
            repeat: 1,
            folder: place.folder.clone(),
            variables: place.variables.iter().cloned().chain(variables).collect(),
            output: output.map(Arc::new),
            ..self.wanted.recording.recording(&words)
        };
        if let Some(scope) = scope {
            recording.functions = scope.definitions(id.unwrap_or_default());
        }
        let recorded = record_addresses(&recording, &mut Status::default(), &mut self.modules);
        let (recorded, _) = recorded.map_err(|failure| {
            let what = quote(id.unwrap_or(&subject.program.name));
            Failure::new(UNREADABLE, format!("{what}: {}", failure.message))
        })?;
        Ok((recorded, recording.output))
    }

    /// Gives the image the program's name, without Cargo's hash, and notes what is to be said.
    fn finish(&mut self, subject: &Subject<'_>, profile: &mut Profile, warnings: Vec<String>) {
        let name = escape_path(subject.program.name.as_bytes());
        let file = subject.program.path.file_name().unwrap_or_default();
        let file = escape_path(file.as_bytes());
        let busy = profile.threads.iter().filter(|thread| !thread.totals.is_empty());
        self.has_threads |= busy.count() > 1 || !profile.check_sums().is_empty();
        for image in profile.images.iter_mut().filter(|image| image.label == file) {
            image.label.clone_from(&name);
        }
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

/// Windows, as the subject of a sentence with its verb.
fn holders(ids: &BTreeSet<String>) -> String {
    /// So many are named.
    const MOST_NAMED: usize = 4;
    let named: Vec<String> = ids.iter().take(MOST_NAMED).map(quote).collect();
    match ids.len() {
        1 => format!("window {} holds", named.join("")),
        count if count <= MOST_NAMED => format!("windows {} hold", named.join(", ")),
        count => format!("{count} windows ({} …) hold", named.join(", ")),
    }
}

/// Gives the windows that a program opened the name of what it ran: since it ran that alone, one window needs no other
/// name. Returns whether it opened any.
fn rename(profile: &mut Profile, id: &str) -> bool {
    let id = escape_path(id.as_bytes());
    let is_own = |kind: WindowKind| !matches!(kind, WindowKind::Automatic | WindowKind::Harness);
    let count = profile.windows.iter().filter(|window| is_own(window.kind)).count();
    for window in profile.windows.iter_mut().filter(|window| is_own(window.kind)) {
        window.name = if count == 1 { id.clone() } else { format!("{id}: {}", window.name) };
    }
    count > 0
}

/// Prints what a program printed.
fn show(output: Option<Arc<File>>) {
    let Some(output) = output else { return };
    let mut output = &*output;
    let mut bytes = Vec::new();
    let read = output.rewind().and_then(|()| output.read_to_end(&mut bytes));
    if read.is_ok() {
        let _closed = std::io::stderr().write_all(&bytes);
    }
}

/// The name of Cargo's target: its file's without the hash.
pub(crate) fn without_hash(name: &OsStr) -> &OsStr {
    const DIGITS: usize = 16;
    let bytes = name.as_bytes();
    let Some(at) = bytes.len().checked_sub(DIGITS + 1) else { return name };
    match bytes.split_at(at) {
        (front, [b'-', hash @ ..]) if hash.iter().all(u8::is_ascii_hexdigit) => OsStr::from_bytes(front),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_without_its_hash() {
        for (name, known) in [
            ("parse-0123456789abcdef", "parse"),
            ("my-parse-0123456789abcdef", "my-parse"),
            ("parse-0123456789abcdeg", "parse-0123456789abcdeg"),
            ("parse", "parse"),
            ("", ""),
        ] {
            assert_eq!(without_hash(name.as_ref()), known, "{name}");
        }
    }
}
