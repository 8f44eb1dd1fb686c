//! The harness for tests of real programs under the real recorder.
//!
//! It builds the command once, builds programs in scratch folders, runs them under `heaptally run`, reads what
//! `heaptally report --json` says and compares it with what the programs themselves, or an independent counting
//! library, say.
//!
//! It does not look into the recorder: everything goes through the command line, as a user's work does.
//!
//! ```no_run
//! use integration_tests::{case::Case, check, run::Run, scratch::Scratch};
//!
//! let case = Case::load("A01");
//! let scratch = Scratch::of_case(&case);
//! let outcome = Run::new(&scratch, [case.program()]).run();
//! assert_eq!(outcome.code, 0);
//! check::case(&case, &outcome);
//! ```
//!
//! Environment variables of the tests:
//!
//! | variable | meaning |
//! |---|---|
//! | `HEAPTALLY_BIN` | the command to test; else it is built |
//! | `HEAPTALLY_TESTS_REQUIRE_TOOLS` | `1`: a missing compiler or program is a failure, not a skip; [`download`]s are fetched |
//! | `HEAPTALLY_SWIFT_PROGRAMS` | a folder of prebuilt Swift programs, their runtime in `lib`; else `shared/swift` beside the workspace |
//! | `HEAPTALLY_TESTS_SEED` | the seed of the random moments, as a failing test printed it |

pub mod case;
pub mod chain;
pub mod check;
pub mod command;
pub mod counter;
pub mod disk;
pub mod download;
pub mod exact;
pub mod name;
pub mod program;
pub mod random;
pub mod report;
pub mod run;
pub mod scratch;
pub mod swift;
pub mod swift_report;
pub mod terminal;
pub mod tool;
