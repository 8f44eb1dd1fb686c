//! Harnesses of benchmarks and tests: how each is known in a program, and how what it measures becomes windows.
//!
//! | harness | how |
//! |---|---|
//! | Google Benchmark, a shared library | the recorder stands in for its functions, with nothing to do here |
//! | Google Benchmark, linked in | the same functions' entries are patched ([`google_benchmark`]) |
//! | package-benchmark of Swift | two closures' entries are patched ([`package_benchmark`]); windows get their names after the run ([`benchmark_name`]) |
//! | CodSpeed's library | its functions' entries are patched ([`codspeed`]) |
//! | criterion, divan, libtest | a process for each benchmark or test, with a window at functions of the harness ([`by_id`]) |

use clap::ValueEnum;

use crate::program::Program;
use crate::recording::Recording;

pub(crate) mod benchmark_name;
pub(crate) mod by_id;
pub(crate) mod codspeed;
mod criterion;
mod divan;
pub(crate) mod google_benchmark;
mod libtest;
pub(crate) mod package_benchmark;

/// `--harness`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// Known harnesses' loops are windows, as far as they are found without asking
    #[default]
    Auto,
    /// They open no windows
    None,
    /// The functions of Google Benchmark are looked for in all that is loaded, and have to be there
    GoogleBenchmark,
    /// Those of CodSpeed's library likewise
    Codspeed,
    /// Swift's package-benchmark has to be there, in the program or in the ones that it starts
    PackageBenchmark,
}

/// The recording with what its harness needs; `program` gets what the user should know of it.
pub(crate) fn prepare(recording: &Recording, program: &mut Program) -> Recording {
    let mut recording = recording.clone();
    // Else nothing but windows at functions is recorded.
    let is_any_wanted = recording.functions.is_empty() || !recording.windows.is_empty();
    recording.names_benchmarks = match recording.harness {
        Choice::PackageBenchmark => true,
        Choice::Auto | Choice::GoogleBenchmark => is_any_wanted,
        Choice::Codspeed | Choice::None => false,
    };
    match recording.harness {
        Choice::GoogleBenchmark => {
            recording.functions.add_pauses(&google_benchmark::edges());
            recording.functions.needs_loops = true;
        }
        Choice::PackageBenchmark => {
            recording.functions.needs_benchmarks = true;
            let is_there = package_benchmark::linkage(program) == package_benchmark::Linkage::Patchable;
            let is_tool = package_benchmark::is_tool(&recording.program);
            add_package_benchmark(&mut recording, is_tool || !is_there);
        }
        Choice::Auto if is_any_wanted => {
            let has_codspeed = program.elf.as_ref().is_some_and(|elf| elf.has_codspeed);
            let google_benchmark = match google_benchmark::linkage(program) {
                // A copy of it whose runs are not those that it names.
                _ if has_codspeed && codspeed::measures_copy(program) => google_benchmark::Linkage::Absent,
                linkage => linkage,
            };
            match google_benchmark {
                google_benchmark::Linkage::Patchable => {
                    recording.functions.add_pauses(&google_benchmark::edges())
                }
                google_benchmark::Linkage::Nameless => program.warnings.extend(google_benchmark::nameless()),
                google_benchmark::Linkage::Absent if has_codspeed => {
                    recording.functions.add_pauses(&codspeed::edges());
                    program.warnings.extend(codspeed::isolated(program, recording.follow_children));
                }
                google_benchmark::Linkage::Absent => {}
            }
            let linkage = package_benchmark::linkage(program);
            let is_tool = package_benchmark::is_tool(&recording.program);
            if is_tool || linkage == package_benchmark::Linkage::Patchable {
                add_package_benchmark(&mut recording, is_tool);
            } else {
                program.warnings.extend(package_benchmark::warning(linkage));
            }
        }
        Choice::Codspeed => {
            recording.functions.add_pauses(&codspeed::edges());
            recording.functions.needs_brackets = true;
        }
        Choice::Auto | Choice::None => {}
    }
    recording
}

/// Its measurements become windows. Its tool has its functions, too, and does not use them: it starts programs that do.
fn add_package_benchmark(recording: &mut Recording, starts_others: bool) {
    recording.functions.add_pauses(&package_benchmark::edges());
    if starts_others && !recording.follow_children {
        recording.follow_children = true;
        recording.follows_benchmarks_only = true;
    }
}
