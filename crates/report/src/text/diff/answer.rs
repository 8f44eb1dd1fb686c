//! The first line of a comparison.

use heaptally_profile::diff::{Diff, Kind, Side};

use super::{Numbers, Sides, allocations, bytes, entry};
use crate::escape::quote;
use crate::number::counted;

/// The most important entry of all windows, and what it changed.
pub(super) fn answer(sides: &Sides<'_, '_>) -> String {
    let Some((window, entry)) = sides.diff.first() else { return no_difference(sides.diff) };
    let numbers = Numbers::of(window);
    let amount = match window.sign(allocations(entry)) {
        // What was only renamed counts as much as before.
        _ if window.is_even(entry) => "as much as before".to_owned(),
        0 => format!("{} {}", numbers.delta(window, bytes(entry), true), numbers.unit("B")),
        _ => numbers.allocations(&numbers.delta(window, allocations(entry), false)),
    };
    format!(
        "{amount} in {}: {} ({})",
        quote(&window.views[1].window.name),
        entry::site(sides, window, entry, None).join(" "),
        match (entry.kind, entry.counterpart) {
            (Kind::New | Kind::Gone, Some(_)) => {
                format!("{}; perhaps another name", entry::kind(entry.kind))
            }
            _ => entry::kind(entry.kind).to_owned(),
        }
    )
}

/// The first line where no call site differs.
fn no_difference(diff: &Diff<'_>) -> String {
    let windows = diff.compared().count() as u64;
    let alone: Vec<String> =
        [Side::Base, Side::Change].into_iter().filter_map(|side| alone(diff, side)).collect();
    let stacks: u64 = diff.compared().map(|window| window.pairing.unchanged).sum();
    let same = format!("{} in {}", counted(stacks, "stack", "stacks"), counted(windows, "window", "windows"));
    match (windows, diff.differs()) {
        (0, _) if alone.is_empty() => "nothing to compare: neither side has a window".to_owned(),
        (0, _) => format!("nothing to compare: no window is on both sides ({})", alone.join("; ")),
        (_, true) => format!("other windows: {}; no difference in the rest: {same}", alone.join("; ")),
        (_, false) => format!("no difference: {same}"),
    }
}

/// The windows that one side alone has: `"a", "b" in the base only`.
fn alone(diff: &Diff<'_>, side: Side) -> Option<String> {
    const MOST: usize = 5;
    let windows = diff.unpaired[side.index()].iter().filter(|window| !window.in_background);
    let mut names: Vec<String> = windows.map(|view| quote(&view.window.name)).collect();
    if names.len() > MOST {
        let more = names.len() - MOST;
        names.truncate(MOST);
        names.push(format!("{more} more"));
    }
    let side = match side {
        Side::Base => "base",
        Side::Change => "change",
    };
    (!names.is_empty()).then(|| format!("{} in the {side} only", names.join(", ")))
}
