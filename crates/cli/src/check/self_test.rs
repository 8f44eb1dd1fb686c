//! A regression that is made, so that one knows that a check can fail.
//!
//! Each window of the profile gets one more stack, which allocates more than any limit allows and than anything else in
//! the window. A window whose check passes all the same is guarded by nothing.

use heaptally_profile::model::{Capture, Counts, Function, Line, Location, Profile, RepeatValue, Row, Stack};

/// The function that is to blame.
pub(crate) const FUNCTION: &str = "heaptally_self_test";
/// How often it allocates in each iteration: more than a limit can state.
const ALLOCATIONS: u64 = 1 << 50;

/// A profile to which a regression in each window is added.
pub(crate) fn with_regression(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    let function = profile.functions.len();
    profile.functions.push(Function {
        name: FUNCTION.to_owned(),
        system_name: FUNCTION.to_owned(),
        file: format!("{FUNCTION}.c"),
        ..Function::default()
    });
    let location = profile.locations.len();
    profile.locations.push(Location { lines: vec![Line { function, line: 1 }], ..Location::default() });
    let stack = profile.stacks.len();
    profile.stacks.push(Stack { locations: vec![location], capture: Capture::Complete, ..Stack::default() });
    for (id, window) in profile.windows.iter().enumerate() {
        // Large, and no sum of them too large for a number.
        let allocations = ALLOCATIONS.max(window.iterations.saturating_mul(1 << 20));
        let runs = window.iterations_per_repeat.len();
        let of_run = RepeatValue { allocations, bytes: allocations };
        let all = allocations.saturating_mul(runs.max(1) as u64);
        profile.rows.push(Row {
            window: id,
            stack,
            counts: Counts { allocations: all, bytes: all, ..Counts::default() },
            repeats: vec![of_run; runs],
            ..Row::default()
        });
    }
    // The threads' own sums know nothing of it.
    profile.threads.clear();
    profile
}
