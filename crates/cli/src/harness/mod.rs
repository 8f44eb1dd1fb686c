//! Harnesses of benchmarks and tests: how each is known in a program, and how what it measures becomes windows.
//!
//! | harness | how |
//! |---|---|
//! | Google Benchmark, a shared library | the recorder stands in for its functions, with nothing to do here |
//! | Google Benchmark, linked in | the same functions' entries are patched ([`google_benchmark`]) |
//! | criterion, divan, libtest | a process for each benchmark or test, with a window at functions of the harness ([`by_id`]) |

use clap::ValueEnum;

use crate::program::Program;
use crate::recording::Recording;

pub(crate) mod by_id;
mod criterion;
mod divan;
pub(crate) mod google_benchmark;
mod libtest;

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
}

/// The recording with what its harness needs; `program` gets what the user should know of it.
pub(crate) fn prepare(recording: &Recording, program: &mut Program) -> Recording {
    let mut recording = recording.clone();
    // Else nothing but windows at functions is recorded.
    let is_any_wanted = recording.functions.is_empty() || !recording.windows.is_empty();
    match recording.harness {
        Choice::GoogleBenchmark => {
            recording.functions.add_pauses(&google_benchmark::edges());
            recording.functions.needs_loops = true;
        }
        Choice::Auto if is_any_wanted => match google_benchmark::linkage(program) {
            google_benchmark::Linkage::Patchable => {
                recording.functions.add_pauses(&google_benchmark::edges())
            }
            google_benchmark::Linkage::Nameless => program.warnings.extend(google_benchmark::nameless()),
            google_benchmark::Linkage::Absent => {}
        },
        Choice::Auto | Choice::None => {}
    }
    recording
}
