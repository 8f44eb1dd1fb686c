//! Two profiles compared as folded stacks: what difffolded.pl prints, and differential flame graphs are drawn from.
//!
//! ```text
//! main;parse;Header::push_value;malloc 40000 41000
//! ```
//!
//! One line for each stack: its frames from the outside, what the base has, what the change has, of what the options sort
//! by. Where a pair's stacks differ, the change's stands there, and stacks that become the same are one line; where the
//! call site has another name, both stand there. The numbers are those of the recordings where both have as many
//! iterations, or one side alone has the window, else they are per 1,000 iterations. Where several windows are shown, their
//! names are the outermost frames.

use std::collections::BTreeMap;

use heaptally_profile::diff::{Diff, How, Pair, Side, WindowDiff};
use heaptally_profile::model::Counts;
use heaptally_profile::view::{RowView, WindowView};

use crate::{Options, frame};

/// The stacks of both sides.
pub fn diff_folded(diff: &Diff<'_>, options: &Options) -> String {
    let windows: Vec<_> = diff.compared().collect();
    let unpaired = |side: Side| diff.unpaired[side.index()].iter().filter(|view| !view.in_background);
    let sides = [Side::Base, Side::Change];
    let shown = windows.len() + sides.into_iter().map(|side| unpaired(side).count()).sum::<usize>();
    let mut lines = Lines { diff, is_named: shown > 1, lines: BTreeMap::new() };
    for window in &windows {
        for pair in &window.pairs {
            let values = values(window, pair, options);
            match pair.how {
                How::OtherSite => {
                    lines.add_pair(window, pair, Side::Base, [values[0], 0]);
                    lines.add_pair(window, pair, Side::Change, [0, values[1]]);
                }
                _ if pair.rows[1].is_empty() => lines.add_pair(window, pair, Side::Base, values),
                _ => lines.add_pair(window, pair, Side::Change, values),
            }
        }
    }
    for side in sides {
        for view in unpaired(side) {
            for row in &view.rows {
                let mut values = [0; 2];
                values[side.index()] = options.sort.value(&row.row.counts);
                lines.add(side, view, row, values);
            }
        }
    }
    lines.lines.into_iter().map(|(stack, [base, change])| format!("{stack} {base} {change}\n")).collect()
}

/// What either side of a pair has, for a number of iterations that is the same on both.
fn values(window: &WindowDiff<'_>, pair: &Pair, options: &Options) -> [u64; 2] {
    let values = pair.counts.each_ref().map(|counts: &Counts| options.sort.value(counts));
    let [base, change] = window.views.each_ref().map(|view| view.window.iterations);
    // What each side has once is the same on both.
    if base == change || window.is_one_off(pair) {
        return values;
    }
    [Side::Base, Side::Change]
        .map(|side| (window.per_iteration(side, values[side.index()]) * 1000.0).round() as u64)
}

struct Lines<'d, 'p> {
    diff: &'d Diff<'p>,
    /// Whether windows are the outermost frames.
    is_named: bool,
    lines: BTreeMap<String, [u64; 2]>,
}

impl<'p> Lines<'_, 'p> {
    /// A pair by its stack of a side.
    fn add_pair(&mut self, window: &WindowDiff<'p>, pair: &Pair, side: Side, values: [u64; 2]) {
        let view = &window.views[side.index()];
        if let Some(row) = pair.rows[side.index()].first().and_then(|&row| view.rows.get(row)) {
            self.add(side, view, row, values);
        }
    }

    fn add(&mut self, side: Side, view: &WindowView<'p>, row: &RowView<'p>, values: [u64; 2]) {
        if values == [0, 0] {
            return;
        }
        let frames = row.frames(self.diff.profiles[side.index()]);
        let mut frames: Vec<String> = frames.map(|frame| one_frame(&frame::name(&frame))).collect();
        if self.is_named {
            frames.push(one_frame(&crate::escape::escape(&view.window.name)));
        }
        frames.reverse();
        let line = self.lines.entry(frames.join(";")).or_default();
        line.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
    }
}

/// A name that is one frame: `;` parts frames.
fn one_frame(name: &str) -> String {
    name.replace(';', ":")
}
