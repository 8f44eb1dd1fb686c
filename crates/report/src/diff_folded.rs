//! Two profiles compared as folded stacks: what difffolded.pl prints, and differential flame graphs are drawn from.
//!
//! ```text
//! main;parse;Header::push_value;malloc 40000 41000
//! ```
//!
//! One line for each stack: its frames from the outside, what the base has, what the change has, of what the options sort
//! by. Where a pair's stacks differ, the change's stands there, and stacks that become the same are one line. The numbers
//! are those of the recordings where both have as many iterations, else they are per 1,000 iterations. Where several
//! windows are shown, their names are the outermost frames.

use std::collections::BTreeMap;

use heaptally_profile::diff::{Diff, Pair, Side, WindowDiff};

use crate::{Options, frame};

/// The stacks of both sides.
pub fn diff_folded(diff: &Diff<'_>, options: &Options) -> String {
    let windows: Vec<_> = diff.windows.iter().filter(|window| !window.is_in_background()).collect();
    let mut lines: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for window in &windows {
        let [base, change] = window.views.each_ref().map(|view| view.window.iterations);
        for pair in &window.pairs {
            let values = pair.counts.each_ref().map(|counts| options.sort.value(counts));
            let values = match base == change {
                true => values,
                false => [Side::Base, Side::Change]
                    .map(|side| (window.per_iteration(side, values[side.index()]) * 1000.0).round() as u64),
            };
            if values == [0, 0] {
                continue;
            }
            let mut frames = stack(diff, window, pair);
            if windows.len() > 1 {
                frames.push(one_frame(&crate::escape::escape(&window.views[1].window.name)));
            }
            frames.reverse();
            let line = lines.entry(frames.join(";")).or_default();
            line.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
        }
    }
    lines.into_iter().map(|(stack, [base, change])| format!("{stack} {base} {change}\n")).collect()
}

fn stack(diff: &Diff<'_>, window: &WindowDiff<'_>, pair: &Pair) -> Vec<String> {
    let side = usize::from(!pair.rows[1].is_empty());
    let row = pair.rows[side].first().and_then(|&row| window.views[side].rows.get(row));
    let frames = row.into_iter().flat_map(|row| row.frames(diff.profiles[side]));
    frames.map(|frame| one_frame(&frame::name(&frame))).collect()
}

/// A name that is one frame: `;` parts frames.
fn one_frame(name: &str) -> String {
    name.replace(';', ":")
}
