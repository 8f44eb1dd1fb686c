//! Swift's package-benchmark, which is linked into every benchmark program: where it measures, and who starts such programs.
//!
//! ```text
//! swift package benchmark ─▶ … ─▶ BenchmarkTool --benchmark-executable-paths …/Probe
//!                                    └─▶ Probe --input-fd 9 --output-fd 8      one to list, one for each benchmark
//! Probe --filter NAME --quiet true                                             by hand: those that fit, in one process
//! ```
//!
//! A measurement lies between two closures of `BenchmarkExecutor.run`, in every version since 1.0: one is called before each, and
//! again where the benchmark begins to measure by itself, the other behind it. Their symbols are local, so their entries are
//! patched. Which benchmark it was is found out after the run ([`benchmark_name`](super::benchmark_name)).

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use heaptally_segment::layout::PACKAGE_BENCHMARK;
use heaptally_symbolize::{ListedFunction, list_named};

use crate::doctor::image::{Image, has_text};
use crate::elf::package_benchmark::{FORWARDER, Symbols};
use crate::function::definition::{Edge, Role};
use crate::function::pattern::Pattern;
use crate::program::Program;

/// What a function is to a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Its entry begins one, or begins it anew.
    Begin,
    /// Its entry ends it.
    End,
    /// What runs beneath it is the harness's.
    Own,
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Begin => "benchmark begin",
            Self::End => "benchmark end",
            Self::Own => "benchmark harness",
        })
    }
}

/// In the text of its help, since 1.0.
const HELP: &[u8] = b"pipe filedescriptor used for communication with host process";
/// How its tool is told of programs.
const TOOLS_OPTION: &str = "--benchmark-executable-paths";

/// What is to be done where its functions cannot be seen.
pub(crate) const ADVICE: &str = "leave the symbols in the benchmark's program (no strip, no -Xlinker -s), or have its debug file \
     where the debug link says; else name the function that a benchmark calls: --window-in FUNCTION";

/// Its functions: the closure before a measurement, that behind it, and those beneath which it allocates itself.
pub(crate) fn edges() -> Vec<Edge> {
    const FUNCTIONS: [(Part, &str, &str); 4] = [
        (
            Part::Begin,
            "closure #2 in BenchmarkExecutor.run(_:)",
            r"re:^\$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACFy(Sb|y)cfU0_(TA)?$",
        ),
        (
            Part::End,
            "closure #3 in BenchmarkExecutor.run(_:)",
            r"re:^\$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACFy(Sb|y)cfU1_(TA)?$",
        ),
        (
            Part::Own,
            "closures #2 and #3 in BenchmarkExecutor.run(_:)",
            r"re:^\$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACFy(Sb|y)cfU[01]_",
        ),
        (
            Part::Own,
            "OperatingSystemStatsProducer.startSampling(_:)",
            r"re:^\$s9Benchmark28OperatingSystemStatsProducerC13startSampling",
        ),
    ];
    let edge = |(part, text, pattern): &(Part, &str, &str)| {
        let pattern = Pattern::parse(pattern).ok()?;
        let (window, text) = (PACKAGE_BENCHMARK.to_owned(), (*text).to_owned());
        Some(Edge { window, role: Role::Benchmark(*part), pattern, text })
    };
    FUNCTIONS.iter().filter_map(edge).collect()
}

/// Of functions that are edges: what hands the captured values over is none where the closure is a function, too.
pub(crate) fn without_forwarders(found: &mut Vec<usize>, functions: &[ListedFunction]) {
    let is_forwarder = |index: &usize| {
        let names = functions.get(*index).map(|function| function.system_names.as_slice());
        names.is_some_and(|names| names.iter().all(|name| name.ends_with(FORWARDER)))
    };
    if !found.iter().all(is_forwarder) {
        found.retain(|index| !is_forwarder(index));
    }
}

/// How a program has it, as far as its file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Absent,
    /// Its closures can be found.
    Patchable,
    /// They have no names: the program was stripped.
    Nameless,
    /// There are other functions of it only.
    OtherVersion,
}

/// Looks at a program's file.
pub(crate) fn linkage(program: &Program) -> Linkage {
    match program.elf.as_ref().map(|elf| elf.package_benchmark) {
        Some(Some(Symbols::Edges)) => Linkage::Patchable,
        Some(Some(Symbols::Others)) => Linkage::OtherVersion,
        Some(None) if has_help(&program.image) => match is_in_debug_file(&program.image) {
            true => Linkage::Patchable,
            false => Linkage::Nameless,
        },
        _ => Linkage::Absent,
    }
}

fn has_help(program: &Path) -> bool {
    let Ok(image) = Image::open(program) else { return false };
    image.elf().is_some_and(|elf| has_text(&elf, HELP))
}

fn is_in_debug_file(program: &Path) -> bool {
    let names = list_named(program, "", &[PathBuf::from("/usr/lib/debug")]);
    let mut names = names.functions.iter().flat_map(|function| &function.system_names);
    names.any(|name| Symbols::of(name.as_bytes()) == Some(Symbols::Edges))
}

/// Whether a call starts programs with benchmarks, for which it waits: its tool, or what starts that.
pub(crate) fn is_tool(words: &[OsString]) -> bool {
    let is_option = |word: &OsString| {
        word.to_str().and_then(|word| word.strip_prefix(TOOLS_OPTION)).is_some_and(|rest| {
            // Its value may stand behind a sign.
            rest.is_empty() || rest.starts_with('=')
        })
    };
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = Path::new(program).file_name().unwrap_or_default();
    let mut plain = arguments.iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let is_plugin = match name.to_str() {
        Some("swift") => plain.any(|word| word == "package") && plain.any(|word| word == "benchmark"),
        Some("swift-package") => plain.any(|word| word == "benchmark"),
        _ => false,
    };
    is_plugin || arguments.iter().any(is_option)
}

/// What is said of a program that has it without its closures; `None`: there is nothing to say.
pub(crate) fn warning(linkage: Linkage) -> Option<String> {
    let why = match linkage {
        Linkage::Absent | Linkage::Patchable => return None,
        Linkage::Nameless => "its functions have no names in the file (stripped)",
        Linkage::OtherVersion => {
            "it has not the two closures between which it measures (inlined, or another version)"
        }
    };
    Some(format!("package-benchmark is linked in, and {why}: its benchmarks are no windows; {ADVICE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_RUN: &str = "$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACF";

    #[test]
    fn closures_of_every_version() {
        for (rest, expected) in [
            ("ySbcfU0_", Symbols::Edges),
            ("ySbcfU0_TA", Symbols::Edges),
            ("yycfU0_", Symbols::Edges),
            ("ySbcfU1_", Symbols::Others),
            ("ySbcfU0_TA.resume.0", Symbols::Others),
            ("", Symbols::Others),
        ] {
            assert_eq!(Symbols::of(format!("{OF_RUN}{rest}").as_bytes()), Some(expected), "{rest}");
        }
        assert_eq!(Symbols::of(b"$s9Benchmark0A6ResultV"), None);
        // The patterns say the same.
        let begin = edges().remove(0);
        let fits = |rest: &str| {
            let system_names = vec![format!("{OF_RUN}{rest}")];
            !begin.pattern.find(&[ListedFunction { system_names, ..ListedFunction::default() }]).is_empty()
        };
        assert!(fits("ySbcfU0_") && fits("ySbcfU0_TA") && fits("yycfU0_"));
        assert!(!fits("ySbcfU1_") && !fits("ySbcfU0_Tm") && !fits("ySicfU0_"));
        assert_eq!(edges().len(), 4);
    }

    #[test]
    fn a_forwarder_is_an_edge_where_it_stands_alone() {
        let function =
            |name: &str| ListedFunction { system_names: vec![name.to_owned()], ..ListedFunction::default() };
        let functions = [function("U0_TA"), function("U0_")];
        let mut both = vec![0, 1];
        without_forwarders(&mut both, &functions);
        let mut alone = vec![0];
        without_forwarders(&mut alone, &functions);
        assert_eq!((both, alone), (vec![1], vec![0]));
    }

    #[test]
    fn who_starts_benchmarks() {
        let is = |words: &str| is_tool(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(is("swift package benchmark"));
        assert!(is("/usr/bin/swift package --disable-sandbox benchmark --target a"));
        assert!(is("swift-package benchmark"));
        assert!(is("./BenchmarkTool --command run --benchmark-executable-paths /a/Probe"));
        for other in
            ["swift build", "swift benchmark package", "swift package", "benchmark package benchmark"]
        {
            assert!(!is(other), "{other}");
        }
    }
}
