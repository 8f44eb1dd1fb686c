//! Google Benchmark that is linked into the program: its functions' entries, as for windows at functions.

use std::fmt;
use std::path::Path;

use heaptally_segment::layout::{
    ACTION_LOOP_BEGIN, ACTION_LOOP_END, ACTION_LOOP_NAME, ACTION_LOOP_PAUSE, ACTION_LOOP_RESUME,
    ACTION_LOOP_SKIP,
};

use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use crate::doctor::image::{Elf, Image, definition, has_text};
use crate::doctor::needed_libraries;
use crate::elf::{GOOGLE_BENCHMARK_BEGIN, Origin};
use crate::function::definition::{Edge, Role};
use crate::function::pattern::Pattern;
use crate::program::Program;

/// The window of loops whose benchmark is not known, as the recorder calls it; here it stands for all of them.
const WINDOW: &str = "google-benchmark";
/// In the text of its help, in every version.
const HELP: &[u8] = b"[--benchmark_list_tests=";

/// The function that the runner names a benchmark by before it runs.
const NAME: &str = "_ZNK9benchmark13BenchmarkName3strB5cxx11Ev";

/// What is to be done where its functions cannot be seen.
pub(crate) const ADVICE: &str = "write its loops with heaptally_benchmark.h, or have the build keep the functions \
                                 (docs/harnesses.md, both), or name the function of a benchmark instead: --window-in BM_name";

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
            Self::Begin => "a benchmark is no window: name its function by --window-in",
            Self::End => "a benchmark's window is not closed",
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
        (Step::Begin, "benchmark::State::StartKeepRunning()", GOOGLE_BENCHMARK_BEGIN),
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
    /// Not, or as a shared library whose functions the recorder can stand in for.
    Absent,
    /// Linked in, or a shared library that calls its own functions without asking the loader (Ubuntu's: `-Bsymbolic-functions`).
    Patchable,
    /// Linked in, without its functions' names: stripped, or inlined by link-time optimisation.
    Nameless,
}

/// Looks at a program's file.
pub(crate) fn linkage(program: &Program) -> Linkage {
    match program.elf.as_ref().map(|elf| elf.google_benchmark) {
        Some(Some(Origin::Here)) => Linkage::Patchable,
        Some(Some(Origin::Library)) if calls_itself(&program.image) => Linkage::Patchable,
        Some(None) if has_help(&program.image) => Linkage::Nameless,
        _ => Linkage::Absent,
    }
}

fn has_help(program: &Path) -> bool {
    let Ok(image) = Image::open(program) else { return false };
    image.elf().is_some_and(|elf| has_text(&elf, HELP))
}

/// Whether the shared library that a program needs calls the function that names a benchmark without the loader.
fn calls_itself(program: &Path) -> bool {
    needed_libraries(program).iter().filter_map(|path| Image::open(path).ok()).any(|image| {
        image.elf().is_some_and(|elf| {
            definition(&elf, GOOGLE_BENCHMARK_BEGIN.as_bytes()).is_some()
                && !is_relocated(&elf, NAME.as_bytes())
        })
    })
}

/// Whether the loader is asked for a function.
fn is_relocated(elf: &Elf<'_>, name: &[u8]) -> bool {
    let Some(symbols) = elf.dynamic_symbol_table() else { return false };
    elf.dynamic_relocations().into_iter().flatten().any(|(_, relocation)| match relocation.target() {
        RelocationTarget::Symbol(index) => {
            symbols.symbol_by_index(index).is_ok_and(|symbol| symbol.name_bytes() == Ok(name))
        }
        _ => false,
    })
}

/// Whether a copy of one of its functions that was inlined into another one, called `around`, goes unseen there. What begins and
/// ends a loop pauses it, too, which makes no difference.
pub(crate) fn misses_copy(step: Step, around: &str) -> bool {
    match step {
        Step::Name => around.contains("BenchmarkRunner"),
        _ => !is_its_own(around),
    }
}

/// Whether a function, by its mangled name, is one of Google Benchmark's: a benchmark's own has its types as parameters.
fn is_its_own(name: &str) -> bool {
    let rest = name.trim_start_matches("_Z").trim_start_matches(['Z', 'L']);
    rest.starts_with("N9benchmark")
        || rest.starts_with("NK9benchmark")
        || name.contains("N9benchmark8internal")
}

/// What is said of a program that has it without its names.
pub(crate) fn nameless() -> [String; 1] {
    [format!(
        "Google Benchmark is linked in, and its functions have no names in the file (stripped, or link-time optimisation): \
         its benchmarks are no windows; {ADVICE}"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_harness_and_benchmarks() {
        for name in [
            "_ZN9benchmark5State17FinishKeepRunningEv",
            "_ZNK9benchmark13BenchmarkName3strB5cxx11Ev",
            "_ZN9benchmark8internal15BenchmarkRunner13DoNIterationsEv",
            "_ZNSt17_Function_handlerIFviEZN9benchmark8internal15BenchmarkRunner13DoNIterationsEvEUliE_E9_M_invokeE",
        ] {
            assert!(is_its_own(name), "{name}");
        }
        for name in [
            "main",
            "_ZL3oneRN9benchmark5StateE",
            "_ZN4mine4slowERN9benchmark5StateE",
            "_Z1fILi3EEvRN9benchmark5StateE",
        ] {
            assert!(!is_its_own(name), "{name}");
            assert!(misses_copy(Step::Pause, name) && !misses_copy(Step::Name, name));
        }
        assert!(misses_copy(Step::Name, "_ZN9benchmark8internal15BenchmarkRunner13DoNIterationsEv"));
    }

    #[test]
    fn every_function_has_a_pattern() {
        let steps: Vec<Role> = edges().iter().map(|edge| edge.role).collect();
        let all = [Step::Name, Step::Begin, Step::End, Step::Pause, Step::Resume, Step::Skip];
        assert_eq!(steps, all.map(Role::Loop));
    }
}
