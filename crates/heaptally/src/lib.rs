//! Allocation windows for Rust programs that heaptally records.
//!
//! A window is a named span of the program. `heaptally run -- ./program` records the call stack of every allocation
//! inside it, and its report is per window and per iteration:
//!
//! ```
//! fn parse(line: &str) -> Vec<String> {
//!     line.split(' ').map(str::to_owned).collect()
//! }
//!
//! let lines = ["a b", "c d e"];
//! {
//!     let _window = heaptally::window(c"parse");
//!     for line in lines {
//!         std::hint::black_box(parse(line));
//!     }
//!     heaptally::iterations(c"parse", 2);
//! }
//! ```
//!
//! It does: open and close windows of all threads ([`window`]) and of one ([`thread_window`]), tell their iterations
//! ([`iterations`]), and leave out what a thread allocates meanwhile ([`pause`]).
//!
//! It does *not*: record anything by itself. The recorder is a library that the command preloads; without it every
//! function here has no effect and costs one load and one test, so the calls can stay in. It defines no symbol with a
//! C name, replaces no allocator, and never allocates for a name of at most 255 bytes. The recorder exists for Linux
//! on x86-64 with glibc, in dynamically linked programs; elsewhere the crate compiles and does nothing.
//!
//! Features add adapters for harnesses, and nothing else has dependencies: `criterion-0-5` to `criterion-0-8`, each for that
//! version of criterion, and `tango`. `cargo heaptally bench` needs none of them (docs/harnesses.md). Rust 1.90 is the oldest
//! that the crate is for; the features may want a later one for their harness.
//!
//! The caller owes: guards that live as long as the window should be open. `let _ = heaptally::window(c"w");` closes
//! it at once; bind it to a name.

#[cfg(any(
    feature = "criterion-0-5",
    feature = "criterion-0-6",
    feature = "criterion-0-7",
    feature = "criterion-0-8"
))]
mod criterion;
mod guard;
mod name;
mod table;
#[cfg(feature = "tango")]
pub mod tango;
#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod tests;

#[cfg(feature = "criterion-0-5")]
pub use criterion::criterion_0_5;
#[cfg(feature = "criterion-0-6")]
pub use criterion::criterion_0_6;
#[cfg(feature = "criterion-0-7")]
pub use criterion::criterion_0_7;
#[cfg(feature = "criterion-0-8")]
pub use criterion::criterion_0_8;
pub use guard::{PauseGuard, ThreadWindowGuard, WindowGuard, pause, thread_window, window};
pub use name::Name;

/// Says that `count` more iterations ran in the window of this name.
///
/// The report divides the window's counts by the sum of these calls; a window for which there are none is divided by
/// the number of its entries.
///
/// ```
/// let _window = heaptally::window(c"push");
/// let mut numbers = Vec::new();
/// for number in 0..1_000 {
///     numbers.push(number);
/// }
/// heaptally::iterations(c"push", 1_000);
/// ```
pub fn iterations<'name>(name: impl Into<Name<'name>>, count: u64) {
    let name = name.into();
    if let Some(table) = table::find() {
        name::Held::new(name, table).with(|name| table.window_iterations(name, count));
    }
}

/// Whether the recorder is in this process: the program runs under `heaptally run`.
///
/// Also true where the recorder is there but records nothing, as in a child of the recorded program, and outside of
/// the windows that the command was told to record.
pub fn is_recording() -> bool {
    table::find().is_some()
}
