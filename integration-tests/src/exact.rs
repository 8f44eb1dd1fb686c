//! Programs of the system, which nobody wrote for these tests, and how exactly the recorder saw them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::counter::{Calls, Counter, ImageCalls};
use crate::report::{Report, Row, Window};
use crate::run::{Outcome, Run, report_json};
use crate::scratch::Scratch;
use crate::tool;

mod job;
mod script;

/// A program of the system with something to do.
#[derive(Debug)]
pub struct Foreign {
    /// The name in tests and tables.
    pub name: &'static str,
    /// Whether it starts others: then it is also measured with all of them recorded.
    pub has_children: bool,
    /// What it needs to be there.
    needs: &'static [&'static str],
    /// Whether its calls are the same in every run.
    repeats: Repeats,
    /// Whether it makes code while it runs, which has no unwind information.
    makes_code: bool,
    /// Whether its output tells times: digits and spaces are then no difference.
    tells_times: bool,
    /// Who is to run it, where this is root.
    user: Option<&'static str>,
    /// Writes its input, and says how to call it.
    prepare: fn(&Scratch) -> Option<Vec<String>>,
}

/// Whether a program's calls are the same in every run.
#[derive(Clone, Copy, Debug)]
enum Repeats {
    /// All, unless two runs without the recorder differ.
    All,
    /// All but those of some functions.
    AllBut(&'static [&'static str]),
    /// They depend on the time, or on which thread comes first.
    Not,
}

/// What was measured of one.
#[derive(Debug)]
pub struct Measure {
    /// The name.
    pub name: &'static str,
    /// Whether its children were recorded.
    pub is_followed: bool,
    /// The processes that were recorded.
    pub processes: usize,
    /// The calls that the recorder saw.
    pub events: u64,
    /// The rows of all windows.
    pub stacks: usize,
    /// The calls whose stacks are complete.
    pub complete: u64,
    /// The calls whose stacks are so by frame pointers.
    pub by_frame_pointer: u64,
    /// Whether it makes code while it runs.
    pub makes_code: bool,
    /// The processes of which the recorder and the witness behind it saw different numbers of calls.
    pub miscounted: Vec<String>,
    /// The calls that the witness saw behind the recorder, by program.
    pub behind: BTreeMap<String, Calls>,
    /// The calls that the witness saw without the recorder, by program.
    pub alone: BTreeMap<String, Calls>,
    /// Whether the calls are the same in every run.
    pub same_calls: SameCalls,
    /// Whether output and exit code were as without the recorder.
    pub is_same_output: bool,
    /// The losses as text; empty when nothing was lost.
    pub losses: String,
    /// Allocations from inside the recorder.
    pub reentrant: u64,
    /// The incomplete stacks, for messages.
    pub incomplete: String,
}

/// Whether a run under the recorder made the calls of one without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameCalls {
    /// It did.
    Same,
    /// It did not.
    Different,
    /// It need not: the program's calls vary by themselves.
    Varies,
}

/// GCC has hash tables of pointers, whose growth depends on where the pointers point.
const HASHED: Repeats = Repeats::AllBut(&["calloc", "free"]);

const ONE: Foreign = Foreign {
    name: "",
    has_children: false,
    needs: &[],
    repeats: Repeats::All,
    makes_code: false,
    tells_times: false,
    user: None,
    prepare: |_| None,
};
const SEVERAL: Foreign = Foreign { has_children: true, repeats: Repeats::Not, ..ONE };

/// All programs. The tests take some of them, `exact-table` all.
pub const PROGRAMS: [Foreign; 21] = [
    Foreign { name: "python3", needs: &["python3"], prepare: job::python, ..ONE },
    Foreign { name: "perl", needs: &["perl"], prepare: job::perl, ..ONE },
    Foreign { name: "sqlite3", needs: &["sqlite3"], prepare: job::sqlite, ..ONE },
    Foreign { name: "cc1", needs: &["gcc"], repeats: HASHED, prepare: job::cc1, ..ONE },
    Foreign { name: "cc1plus", needs: &["g++"], repeats: HASHED, prepare: job::cc1plus, ..ONE },
    Foreign { name: "git log", needs: &["git"], prepare: job::git, ..ONE },
    Foreign { name: "jq", needs: &["jq"], prepare: job::jq, ..ONE },
    Foreign { name: "xz", needs: &["xz"], prepare: job::xz, ..ONE },
    Foreign { name: "pigz -p4", needs: &["pigz"], repeats: Repeats::Not, prepare: job::pigz, ..ONE },
    Foreign { name: "zstd -T4", needs: &["zstd"], repeats: Repeats::Not, prepare: job::zstd, ..ONE },
    Foreign {
        name: "openssl speed",
        needs: &["openssl"],
        repeats: Repeats::Not,
        tells_times: true,
        prepare: job::openssl,
        ..ONE
    },
    Foreign {
        name: "node",
        needs: &["node"],
        repeats: Repeats::Not,
        makes_code: true,
        prepare: job::node,
        ..ONE
    },
    Foreign { name: "convert", needs: &["convert"], repeats: Repeats::Not, prepare: job::convert, ..ONE },
    Foreign { name: "ffmpeg", needs: &["ffmpeg"], repeats: Repeats::Not, prepare: job::ffmpeg, ..ONE },
    Foreign { name: "bash", needs: &["bash", "diff"], prepare: script::bash, ..SEVERAL },
    Foreign { name: "git gc", needs: &["git"], prepare: script::git_gc, ..SEVERAL },
    Foreign { name: "cmake", needs: &["cmake", "gcc", "make"], prepare: script::cmake, ..SEVERAL },
    Foreign {
        name: "initdb",
        needs: &["setpriv"],
        user: Some("postgres"),
        prepare: script::initdb,
        ..SEVERAL
    },
    Foreign { name: "nginx, ab", needs: &["nginx", "ab", "curl"], prepare: script::nginx, ..SEVERAL },
    Foreign {
        name: "redis-server, -benchmark",
        needs: &["redis-server", "redis-benchmark", "redis-cli"],
        prepare: script::redis,
        ..SEVERAL
    },
    Foreign {
        name: "Xvfb, GTK 3",
        needs: &["Xvfb", "gtk-builder-tool", "gtk-query-settings"],
        prepare: script::gtk,
        ..SEVERAL
    },
];

impl Foreign {
    /// The program called `name`.
    ///
    /// # Panics
    /// When there is none.
    pub fn named(name: &str) -> &'static Self {
        PROGRAMS.iter().find(|program| program.name == name).unwrap_or_else(|| panic!("no program {name}"))
    }

    /// Whether the system has what it needs, as far as that has a fixed place.
    pub fn is_there(&self) -> bool {
        self.needs.iter().all(|name| tool::system(name).is_some())
    }

    /// Its command line, once its input is written to `scratch`. `None` where the system has it not.
    pub fn prepare(&self, scratch: &Scratch) -> Option<Vec<String>> {
        if !tool::have(self.needs) {
            return None;
        }
        (self.prepare)(scratch)
    }

    /// A run of `command` in `scratch` which is as repeatable as the program allows.
    pub fn run(&self, scratch: &Scratch, command: &[String]) -> Run {
        let run = Run::new(scratch, command)
            .environment("PYTHONHASHSEED", "0")
            .environment("PYTHONDONTWRITEBYTECODE", "1")
            .environment("PERL_HASH_SEED", "0")
            .environment("PERL_PERTURB_KEYS", "0")
            .environment("LC_ALL", "C")
            .environment("HOME", scratch.folder())
            .environment("GIT_CONFIG_NOSYSTEM", "1");
        match self.user {
            Some(user) if tool::is_root() => run.by_user(user),
            _ => run,
        }
    }

    /// Runs it twice alone and once under the recorder, with its children if `follows`. `None` where the system has it
    /// not.
    pub fn measure(&self, counter: &Counter, follows: bool) -> Option<Measure> {
        let scratch = Scratch::new();
        let command = self.prepare(&scratch)?;
        let witness = |run: Run| {
            let (outcome, images) = counter.count(run.without_frames());
            let images = images.into_iter().filter(|image| follows || image.is_main);
            (outcome, images.collect::<Vec<_>>())
        };
        let (_, again) = witness(self.run(&scratch, &command).unrecorded());
        compiled(&scratch);
        let (plain, alone) = witness(self.run(&scratch, &command).unrecorded());
        let plain_file = compiled(&scratch);
        let options: &[&str] = if follows { &["--follow-children"] } else { &[] };
        let run = self.run(&scratch, &command).options(options.iter().copied());
        let (recorded, behind) = witness(run);
        let is_same_file = plain_file == compiled(&scratch);

        let processes = if follows { processes(&recorded) } else { Vec::new() };
        let reports: Vec<&Report> = match processes.as_slice() {
            [] => vec![recorded.report()],
            several => several.iter().map(|(_, _, report)| report).collect(),
        };
        let windows = || reports.iter().flat_map(|report| &report.windows);
        let by = |capture: &str| {
            let rows = windows().flat_map(|window| &window.rows).filter(|row| row.capture == capture);
            rows.map(|row| row.counts.calls()).sum()
        };
        let is_whole = windows().flat_map(|window| &window.rows).all(Row::is_complete);
        let losses = reports.iter().map(|report| report.losses_text()).filter(|text| !text.is_empty());
        let (again, alone, behind_by_program) = (by_program(&again), by_program(&alone), by_program(&behind));
        Some(Measure {
            name: self.name,
            is_followed: follows,
            processes: reports.len(),
            events: windows().map(Window::calls).sum(),
            stacks: windows().map(|window| window.rows.len()).sum(),
            complete: by("complete"),
            by_frame_pointer: by("frame_pointer"),
            makes_code: self.makes_code,
            miscounted: miscounted(&recorded, &processes, &behind),
            same_calls: self.same_calls([&again, &alone, &behind_by_program]),
            behind: behind_by_program,
            alone,
            is_same_output: is_same_file && self.is_same(&plain, &recorded),
            losses: losses.collect::<Vec<_>>().join(", "),
            reentrant: reports.iter().map(|report| report.loss("reentrant")).sum(),
            incomplete: if is_whole { String::new() } else { incomplete(&recorded) },
        })
    }

    fn is_same(&self, plain: &Outcome, recorded: &Outcome) -> bool {
        let text = |outcome: &Outcome| {
            let mut text = outcome.stdout.clone();
            if self.tells_times {
                text.retain(|byte| !byte.is_ascii_digit() && *byte != b' ');
            }
            text
        };
        plain.code == recorded.code && text(plain) == text(recorded)
    }

    /// Of two runs alone and one under the recorder.
    fn same_calls(&self, [again, alone, behind]: [&BTreeMap<String, Calls>; 3]) -> SameCalls {
        let names: &[&str] = match self.repeats {
            Repeats::All => &[],
            Repeats::AllBut(names) => names,
            Repeats::Not => return SameCalls::Varies,
        };
        let without = |calls: &BTreeMap<String, Calls>| {
            let calls = calls.iter().map(|(program, calls)| (program.clone(), calls.without(names)));
            calls.collect::<BTreeMap<_, _>>()
        };
        match (without(again) == without(alone), without(behind) == without(alone)) {
            (_, true) => SameCalls::Same,
            (true, false) => SameCalls::Different,
            (false, false) => SameCalls::Varies,
        }
    }
}

impl Measure {
    /// The share of calls with complete stacks, or with such that are so but for code which the program made.
    pub fn whole_share(&self) -> f64 {
        let made = if self.makes_code { self.by_frame_pointer } else { 0 };
        share(self.complete + made, self.events)
    }

    /// The share of calls with complete stacks.
    pub fn complete_share(&self) -> f64 {
        share(self.complete, self.events)
    }

    /// What is not as it should be, a line each; empty when all is well.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.miscounted.clone();
        if !self.is_same_output {
            problems.push("output or exit code differ".to_owned());
        }
        if self.same_calls == SameCalls::Different {
            problems.push(format!("under the recorder\n{:?}, alone\n{:?}", self.behind, self.alone));
        }
        if self.reentrant > 0 || !self.losses.is_empty() {
            problems.push(format!("lost: {}", self.losses));
        }
        if self.whole_share() < 0.999 {
            let (complete, events) = (self.complete, self.events);
            problems.push(format!("{complete} of {events} complete, for instance not\n{}", self.incomplete));
        }
        problems
    }
}

fn share(part: u64, whole: u64) -> f64 {
    let as_number = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
    if whole == 0 { 0.0 } else { as_number(part) / as_number(whole) }
}

/// The processes that a run recorded: their numbers, programs and reports.
fn processes(outcome: &Outcome) -> Vec<(u64, String, Report)> {
    let processes = outcome.status["processes"].as_array().into_iter().flatten();
    let process = |process: &serde_json::Value| {
        let profile = Path::new(process["profile"].as_str().unwrap_or_default());
        let report = Report::parse_without_frames(&report_json(profile));
        let report = report.unwrap_or_else(|error| panic!("{}: {error}", profile.display()));
        let program = process["program"].as_str().unwrap_or_default().to_owned();
        (process["pid"].as_u64().unwrap_or(0), program, report)
    };
    processes.map(process).collect()
}

/// The processes of which the recorder and the witness saw different numbers of calls. Without `processes` all that was
/// recorded is the main process's.
fn miscounted(
    outcome: &Outcome,
    processes: &[(u64, String, Report)],
    witnessed: &[ImageCalls],
) -> Vec<String> {
    let calls = |report: &Report| report.windows.iter().map(Window::calls).sum::<u64>();
    let mut recorded: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    let mut counted: BTreeMap<u64, u64> = BTreeMap::new();
    for (pid, program, report) in processes {
        recorded.entry(*pid).or_insert((0, program)).0 += calls(report);
    }
    if processes.is_empty() {
        recorded.insert(0, (calls(outcome.report()), "the program"));
    }
    for image in witnessed {
        let pid = if processes.is_empty() { 0 } else { image.pid };
        *counted.entry(pid).or_default() += image.calls.allocations();
        recorded.entry(pid).or_insert((0, "a process that was not recorded"));
    }
    let count = |pid| counted.get(pid).copied().unwrap_or(0);
    let differ = recorded.iter().filter(|(pid, (calls, _))| *calls != count(pid));
    differ
        .map(|(pid, (calls, program))| format!("{pid} {program}: {calls} recorded, {} counted", count(pid)))
        .collect()
}

/// The calls of each program, all its processes together.
fn by_program(images: &[ImageCalls]) -> BTreeMap<String, Calls> {
    let mut programs: BTreeMap<String, Calls> = BTreeMap::new();
    for image in images {
        let name = image.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        programs.entry(name).or_default().add(&image.calls);
    }
    programs
}

/// Some of the incomplete stacks as text.
fn incomplete(outcome: &Outcome) -> String {
    let document = report_json(&outcome.profile);
    let report = Report::parse(&document).unwrap_or_else(|error| panic!("report: {error}"));
    let rows =
        report.windows.iter().flat_map(|window| &window.rows).filter(|row| !row.is_complete()).take(10);
    rows.map(Row::text).collect::<Vec<_>>().join("\n")
}

/// The file that the compilers write, where there is one. It is removed.
fn compiled(scratch: &Scratch) -> Option<Vec<u8>> {
    let path = scratch.path("job.s");
    let content = fs::read(&path).ok();
    // A run that writes none is not to find the one before.
    let _ = fs::remove_file(path);
    content
}
