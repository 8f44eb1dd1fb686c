//! Google Benchmark that is linked into the program: its functions' entries, as for windows at functions.

use std::fmt;
use std::path::Path;

use heaptally_segment::layout::{
    ACTION_LOOP_BEGIN, ACTION_LOOP_END, ACTION_LOOP_NAME, ACTION_LOOP_PAUSE, ACTION_LOOP_RESUME,
    ACTION_LOOP_SKIP,
};

use crate::doctor::image::{Image, definition, has_text};
use crate::function::definition::{Edge, Role};
use crate::function::pattern::Pattern;

/// The window of loops whose benchmark is not known, as the recorder calls it; here it stands for all of them.
const WINDOW: &str = "google-benchmark";
/// In the text of its help, in every version.
const HELP: &[u8] = b"[--benchmark_list_tests=";
/// The function without which there are no loops.
const BEGIN: &str = "_ZN9benchmark5State16StartKeepRunningEv";

/// What is to be done where its functions cannot be seen.
pub(crate) const ADVICE: &str = "name the function of a benchmark instead: --window-in BM_name";

/// What a function tells of a benchmark's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Name,
    Begin,
    End,
    Pause,
    Resume,
    Skip,
}

impl Step {
    /// The action of a patched entry.
    pub(crate) fn action(self) -> u32 {
        match self {
            Self::Name => ACTION_LOOP_NAME,
            Self::Begin => ACTION_LOOP_BEGIN,
            Self::End => ACTION_LOOP_END,
            Self::Pause => ACTION_LOOP_PAUSE,
            Self::Resume => ACTION_LOOP_RESUME,
            Self::Skip => ACTION_LOOP_SKIP,
        }
    }

    /// What is missing where its function cannot be patched.
    pub(crate) fn lack(self) -> &'static str {
        match self {
            Self::Name => "all benchmarks are one window",
            Self::Begin | Self::End => "its benchmarks are no windows",
            Self::Pause | Self::Resume => "pauses are not seen, and what is allocated in them counts",
            Self::Skip => "a benchmark that is given up in its loop stays open",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "loop name",
            Self::Begin => "loop begin",
            Self::End => "loop end",
            Self::Pause => "loop pause",
            Self::Resume => "loop resume",
            Self::Skip => "loop skip",
        })
    }
}

/// Its functions.
pub(crate) fn edges() -> Vec<Edge> {
    const FUNCTIONS: [(Step, &str, &str); 6] = [
        (Step::Name, "benchmark::BenchmarkName::str() const", "_ZNK9benchmark13BenchmarkName3strB5cxx11Ev"),
        (Step::Begin, "benchmark::State::StartKeepRunning()", BEGIN),
        (Step::End, "benchmark::State::FinishKeepRunning()", "_ZN9benchmark5State17FinishKeepRunningEv"),
        (Step::Pause, "benchmark::State::PauseTiming()", "_ZN9benchmark5State11PauseTimingEv"),
        (Step::Resume, "benchmark::State::ResumeTiming()", "_ZN9benchmark5State12ResumeTimingEv"),
        (
            Step::Skip,
            "benchmark::State::SkipWithError()",
            "re:^_ZN9benchmark5State1(3SkipWithError|5SkipWithMessage)E",
        ),
    ];
    let edge = |(step, text, pattern): &(Step, &str, &str)| {
        let pattern = Pattern::parse(pattern).ok()?;
        Some(Edge { window: WINDOW.to_owned(), role: Role::Loop(*step), pattern, text: (*text).to_owned() })
    };
    FUNCTIONS.iter().filter_map(edge).collect()
}

/// How a program has it, as far as its file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// Not, or as a shared library.
    Absent,
    /// Linked in, with its functions' names.
    Named,
    /// Linked in, without these: stripped, or inlined by link-time optimisation.
    Nameless,
}

/// Looks at a program's file. Its symbols only if the harness's text is there, since there may be very many.
pub(crate) fn linkage(program: &Path) -> Linkage {
    let Ok(image) = Image::open(program) else { return Linkage::Absent };
    let Some(elf) = image.elf() else { return Linkage::Absent };
    if !has_text(&elf, HELP) {
        return Linkage::Absent;
    }
    match definition(&elf, BEGIN.as_bytes()) {
        Some(_) => Linkage::Named,
        None => Linkage::Nameless,
    }
}

/// What is said of a program that has it without its names.
pub(crate) fn nameless() -> [String; 1] {
    [format!(
        "Google Benchmark is linked in, and its functions have no names in the file (stripped, or link-time optimisation): \
         its benchmarks are no windows; {ADVICE}"
    )]
}
