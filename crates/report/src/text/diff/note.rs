//! What is to be known before the numbers of a comparison are read.

use heaptally_profile::diff::{Condition, Diff, What};
use heaptally_profile::view::WindowView;

use crate::escape::{escape, quote};
use crate::number::{count, counted};
use crate::text::head::{LIVE_ONLY, sampled};

/// What differs between the recordings, in words.
pub fn words(condition: &Condition) -> String {
    let [base, change] = condition.values.each_ref().map(|value| escape(value));
    let what = match condition.what {
        What::Architecture => "another architecture",
        What::Machine => "another machine",
        What::Libc => "another C library",
        What::Allocator => "another allocator",
        What::Compilers => "other compilers",
        What::Recorder => "another recorder",
        What::Lifetimes => {
            return format!(
                "blocks were {base} in the base, {change} in the change: only allocations are compared"
            );
        }
        What::TaskOrigins => {
            return format!(
                "Swift's tasks were {base} to what created them in the base, {change} in the change: their stacks differ by that; \
                 record both with --task-origins, or both without"
            );
        }
        What::Sampling => {
            return format!(
                "sampled ({base} in the base, {change} in the change): the numbers are estimates"
            );
        }
        What::Estimates => return format!("both sides: {}", sampled(&base)),
        What::LiveOnly => return format!("both sides: {LIVE_ONLY}"),
        What::Incomplete => "allocations without a whole stack",
        What::Windows => {
            return format!(
                "windows of the base: {base}, of the change: {change}; a file without windows is of the whole run, so its \
                 stacks are new or gone: record both with heaptally, or both with the other tool"
            );
        }
        What::Definitions => {
            return format!(
                "windows are defined at other functions, and may be other parts of the program: {base} in the base, {change} in \
                 the change"
            );
        }
        What::Nameless => {
            let which = match (base.is_empty(), change.is_empty()) {
                (false, false) => "either side",
                (false, true) => "the base",
                (true, _) => "the change",
            };
            let why = match which {
                "either side" => "which another build moves",
                _ => "and fit none of the other side's names",
            };
            return format!(
                "no call site of {which} has a name (stripped), so functions are told apart by where they start, {why}: \
                 record programs with their symbols, best built with -g"
            );
        }
        What::Ending => {
            return format!(
                "a program failed, and may not have done all of its work: exit code {base} in the base, {change} in the change"
            );
        }
    };
    format!("{what}: {base} in the base, {change} in the change")
}

/// Windows that nobody looks for (before those of the program) and in which one side allocates more. A harness's own are
/// not told: it does as much around a window as it likes.
pub(super) fn background(diff: &Diff<'_>) -> Option<String> {
    let is_own = |view: &WindowView<'_>| view.window.harnessed().is_none();
    let paired = diff.windows.iter().filter(|window| window.is_in_background());
    let paired =
        paired.map(|window| (&window.views[1], window.counts.each_ref().map(|counts| counts.allocations)));
    let unpaired = [0, 1].into_iter().flat_map(|side| {
        let windows = diff.unpaired[side].iter().filter(|view| view.in_background);
        windows.map(move |view| {
            let mut counts = [0, 0];
            counts[side] = view.counts.allocations;
            (view, counts)
        })
    });
    let told: Vec<String> = paired
        .chain(unpaired)
        .filter(|(view, [base, change])| is_own(view) && base != change)
        .map(|(view, [base, change])| {
            format!(
                "{} ({} → {})",
                quote(&view.window.name),
                count(base),
                counted(change, "allocation", "allocations")
            )
        })
        .collect();
    (!told.is_empty())
        .then(|| format!("before the windows: {}; --window process compares the stacks", told.join(", ")))
}
