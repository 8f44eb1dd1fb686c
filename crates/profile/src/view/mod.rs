//! A profile as reports and comparisons look at it: windows, each with its stacks in order.
//!
//! ```text
//! profile ── Selection ──▶ View ── WindowView ── RowView: a row, its stack, how many of its frames
//!                                       └─ LeftOut: what the selection does not hold
//! ```
//!
//! Stacks that are equal once they are trimmed ([`Selection::under`]) are one row of the view.

mod order;
mod selection;

use std::borrow::Cow;
use std::collections::HashMap;

use regex::Regex;

use crate::call_site::CallSites;
use crate::canonical;
use crate::frame::{Frame, frames};
use crate::model::{Counts, Image, LocationId, Profile, Row, Stack, Window, WindowId, WindowKind};
use crate::total::CaptureEvents;

pub use order::Sort;
use order::StackOrder;
pub use selection::Selection;
use selection::{Matcher, Verdict};

/// What a selection holds of a profile.
#[derive(Debug)]
pub struct View<'p> {
    /// The profile.
    pub profile: &'p Profile,
    /// The windows, in the profile's order.
    pub windows: Vec<WindowView<'p>>,
}

/// A window with its rows.
#[derive(Debug)]
pub struct WindowView<'p> {
    /// Its index in the profile.
    pub id: WindowId,
    /// The window.
    pub window: &'p Window,
    /// The image that opened it.
    pub image: Option<&'p Image>,
    /// The sum of the rows.
    pub counts: Counts,
    /// How their allocations were walked.
    pub captures: CaptureEvents,
    /// Whether it is one [in the background](is_in_background), and was not asked for by name.
    pub in_background: bool,
    /// The rows, as [`Sort`] says.
    pub rows: Vec<RowView<'p>>,
    /// What the selection does not hold.
    pub left_out: LeftOut,
}

/// A row to look at.
#[derive(Clone, Debug)]
pub struct RowView<'p> {
    /// The row; where stacks became equal, the sum of their rows.
    pub row: Cow<'p, Row>,
    /// The stack; where stacks became equal, one of them.
    pub stack: &'p Stack,
    /// How many logical frames of it are looked at; `usize::MAX`: all.
    pub frame_count: usize,
    /// Whether frames were trimmed.
    pub is_trimmed: bool,
}

/// What a selection leaves out of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Stacks without a frame of [`Selection::under`].
    pub not_under_stacks: u64,
    /// Their counts.
    pub not_under: Counts,
    /// Stacks that another pattern was against.
    pub filtered_stacks: u64,
    /// Their counts.
    pub filtered: Counts,
}

impl LeftOut {
    /// How many stacks.
    pub fn stacks(&self) -> u64 {
        self.not_under_stacks.saturating_add(self.filtered_stacks)
    }
}

impl<'p> View<'p> {
    /// Looks at a profile.
    pub fn new(profile: &'p Profile, selection: &Selection, sites: &CallSites<'p>, sort: Sort) -> Self {
        let mut windows: Vec<WindowView<'p>> = profile
            .windows
            .iter()
            .enumerate()
            .map(|(id, window)| WindowView {
                id,
                window,
                image: profile.images.get(window.image),
                counts: Counts::default(),
                captures: CaptureEvents::default(),
                in_background: selection.windows.is_empty() && is_in_background(profile, window),
                rows: Vec::new(),
                left_out: LeftOut::default(),
            })
            .collect();

        let matcher = Matcher::new(profile, selection, sites);
        let verdicts: Vec<Verdict> = profile.stacks.iter().map(|stack| matcher.judge(stack)).collect();
        for row in &profile.rows {
            let (Some(window), Some(stack), Some(&verdict)) =
                (windows.get_mut(row.window), profile.stacks.get(row.stack), verdicts.get(row.stack))
            else {
                continue;
            };
            window.left_out.add(verdict, row);
            if let Verdict::Keep { frames: frame_count, is_trimmed } = verdict {
                window.counts.add(&row.counts);
                window.captures.add(stack.capture, row.counts.allocations);
                window.rows.push(RowView { row: Cow::Borrowed(row), stack, frame_count, is_trimmed });
            }
        }
        if !selection.windows.is_empty() {
            windows.retain(|view| selection.windows.contains(&view.window.name));
        }
        let order = StackOrder::new(profile);
        for window in &mut windows {
            if !selection.under.is_empty() {
                window.rows = joined(profile, std::mem::take(&mut window.rows));
            }
            order.sort(&mut window.rows, sort);
        }
        Self { profile, windows }
    }
}

/// Which stacks of a profile hold a frame that fits one of the patterns, as [`Selection`] compares them.
pub(crate) fn stacks_with(profile: &Profile, patterns: &[Regex], sites: &CallSites<'_>) -> Vec<bool> {
    stacks_fitting(profile, &Selection { filter: patterns.to_vec(), ..Selection::default() }, sites)
}

/// Which stacks of a profile a selection without [`Selection::under`] holds.
pub(crate) fn stacks_fitting(profile: &Profile, selection: &Selection, sites: &CallSites<'_>) -> Vec<bool> {
    let matcher = Matcher::new(profile, selection, sites);
    profile.stacks.iter().map(|stack| matcher.judge(stack) != Verdict::Filtered).collect()
}

/// Rows whose frames are equal as one.
fn joined<'p>(profile: &'p Profile, rows: Vec<RowView<'p>>) -> Vec<RowView<'p>> {
    let mut joined: Vec<RowView<'p>> = Vec::with_capacity(rows.len());
    let mut known: HashMap<Vec<(LocationId, usize)>, usize> = HashMap::new();
    for row in rows {
        let key = row.frames(profile).map(|frame| (frame.location, frame.line_index)).collect();
        match known.get(&key).and_then(|&at| joined.get_mut(at)) {
            Some(same) => same.join(&row),
            None => {
                known.insert(key, joined.len());
                joined.push(row);
            }
        }
    }
    joined
}

/// Whether a window is not what is looked for: the automatic one beside others that were opened, that of a program
/// which another one replaced (`env X=1 ./bench`), or a harness's.
pub fn is_in_background(profile: &Profile, window: &Window) -> bool {
    let is_automatic = |window: &Window| window.kind == WindowKind::Automatic;
    let is_replaced = |image: Option<&Image>| image.is_some_and(|image| image.replaced);
    window.kind == WindowKind::Harness
        || is_automatic(window)
            && (!profile.windows.iter().all(is_automatic)
                || (is_replaced(profile.images.get(window.image))
                    && profile.windows.iter().any(|other| !is_replaced(profile.images.get(other.image)))))
}

impl<'p> RowView<'p> {
    /// Takes another row in: the counts are added up, the stack stays.
    pub fn join(&mut self, other: &Self) {
        canonical::merge(self.row.to_mut(), &other.row);
    }

    /// Its logical frames, leaf first.
    pub fn frames(&self, profile: &'p Profile) -> impl Iterator<Item = Frame<'p>> + use<'p> {
        frames(profile, self.stack).take(self.frame_count)
    }

    /// The call site among [`frames`](Self::frames): its index from the leaf, and the frame.
    ///
    /// `None` where there is none, or where the selection ends before it.
    pub fn call_site(&self, profile: &'p Profile, sites: &CallSites<'p>) -> Option<(usize, Frame<'p>)> {
        let (location, line_index) = sites.of(self.row.stack)?;
        let is_it = |frame: &Frame<'_>| frame.location == location && frame.line_index == line_index;
        self.frames(profile).enumerate().find(|(_, frame)| is_it(frame))
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::call_site::Rules;
    use crate::model::{FrameKind, Function, Line, Location, StackId};

    /// A profile of one window; each stack is its frames from the leaf, those of one location joined by `|`, and counts
    /// one allocation more than the one before.
    fn profile(stacks: &[&str]) -> Profile {
        let mut profile = Profile {
            images: vec![Image::default()],
            windows: vec![Window { name: "w".into(), iterations: 1, ..Window::default() }],
            ..Profile::default()
        };
        for (at, names) in stacks.iter().enumerate() {
            let mut stack = Stack::default();
            for names in names.split_whitespace() {
                let location = match profile.locations.iter().position(|location| {
                    let of = |line: &Line| profile.functions[line.function].name.as_str();
                    location.lines.iter().map(of).collect::<Vec<_>>().join("|") == names
                }) {
                    Some(known) => known,
                    None => {
                        let mut location = Location::default();
                        for name in names.split('|') {
                            location.lines.push(Line { function: profile.functions.len(), line: 1 });
                            profile.functions.push(Function {
                                name: name.into(),
                                system_name: name.into(),
                                file: if name == "malloc" { String::new() } else { "src/x.rs".into() },
                                ..Function::default()
                            });
                        }
                        if names == "malloc" {
                            location.kind = FrameKind::EntryPoint;
                        }
                        profile.locations.push(location);
                        profile.locations.len() - 1
                    }
                };
                stack.locations.push(location);
            }
            profile.stacks.push(stack);
            let allocations = at as u64 + 1;
            profile.rows.push(Row {
                stack: at as StackId,
                counts: Counts { allocations, bytes: 8 * allocations, ..Counts::default() },
                ..Row::default()
            });
        }
        profile
    }

    fn patterns(texts: &[&str]) -> Vec<Regex> {
        texts.iter().map(|text| Regex::new(text).unwrap()).collect()
    }

    /// The rows as `allocations: frames`, and what was left out as (not under, filtered).
    fn look(profile: &Profile, selection: &Selection) -> (Vec<String>, (u64, u64)) {
        let sites = CallSites::new(profile, Rules::embedded());
        let view = View::new(profile, selection, &sites, Sort::Count);
        let window = &view.windows[0];
        let line = |row: &RowView<'_>| {
            let names: Vec<&str> = row.frames(profile).filter_map(|frame| frame.name()).collect();
            format!("{}: {}", row.row.counts.allocations, names.join(" "))
        };
        let kept = window.counts.allocations;
        let out = (window.left_out.not_under.allocations, window.left_out.filtered.allocations);
        let all: u64 = profile.rows.iter().map(|row| row.counts.allocations).sum();
        assert_eq!(kept + out.0 + out.1, all);
        (window.rows.iter().map(line).collect(), out)
    }

    #[test]
    fn under_trims_above_the_outermost_match_and_joins_what_is_then_equal() {
        let profile = profile(&[
            "malloc f|iter run main",
            "malloc f|iter run other",
            "malloc g iter h iter main",
            "malloc set_up main",
        ]);
        let selection = Selection { under: patterns(&["^iter$"]), ..Selection::default() };
        let (rows, out) = look(&profile, &selection);
        assert_eq!(rows, ["3: malloc f iter", "3: malloc g iter h iter"]);
        assert_eq!(out, (4, 0));
    }

    #[test]
    fn filter_exclude_and_root() {
        let profile = profile(&[
            "malloc parse run worker _start",
            "malloc parse main _start",
            "malloc eat main _start",
        ]);
        let of = |change: fn(&mut Selection)| {
            let mut selection = Selection::default();
            change(&mut selection);
            look(&profile, &selection).0
        };
        assert_eq!(
            of(|s| s.filter = patterns(&["pars"])),
            ["2: malloc parse main _start", "1: malloc parse run worker _start"]
        );
        assert_eq!(of(|s| s.filter = patterns(&["run", "eat"])).len(), 2);
        assert_eq!(of(|s| s.exclude = patterns(&["^main$"])), ["1: malloc parse run worker _start"]);
        assert_eq!(of(|s| s.root = patterns(&["worker"])), ["1: malloc parse run worker _start"]);
        assert_eq!(of(|s| s.root = patterns(&["_start"])).len(), 3);
        assert_eq!(of(|s| s.root = patterns(&["^run$"])), [""; 0]);
        assert_eq!(of(|s| s.filter = patterns(&["src/x\\.rs"])).len(), 3);
    }

    #[test]
    fn names_fit_as_they_are_printed_too() {
        let mut profile = profile(&["malloc push run main", "malloc g main"]);
        let push = profile.functions.iter_mut().find(|function| function.name == "push").unwrap();
        push.name =
            "std::vector<idx::Posting, std::allocator<idx::Posting> >::push_back(idx::Posting&&)".into();
        push.system_name = "_ZNSt6vectorIN3idx7PostingESaIS1_EE9push_backEOS1_".into();
        let run = profile.functions.iter_mut().find(|function| function.name == "run").unwrap();
        run.name = "idx::Tokenizer::normalise[abi:cxx11](std::basic_string_view<char, std::char_traits<char> >) const \
                    [clone .llvm.9347151543946927007]"
            .into();
        for (pattern, fits) in [
            ("vector<idx::Posting>::push_back", true),
            ("vector<idx::Posting>::push_back$", true),
            ("^std::vector<idx::Posting>::push_back\\(idx::Posting&&\\)$", true),
            ("std::allocator<idx::Posting> >::push_back", true),
            (r"normalise\[abi:cxx11\]\(std::string_view\) const$", true),
            (r"llvm\.9347151543946927007", true),
            ("vector<idx::Posting>::pop_back", false),
        ] {
            let selection = Selection { filter: patterns(&[pattern]), ..Selection::default() };
            assert_eq!(look(&profile, &selection).0.len(), usize::from(fits), "{pattern}");
        }
    }

    #[test]
    fn a_frame_without_name_is_known_by_its_place() {
        let mut profile = profile(&["malloc f"]);
        profile.modules.push(crate::model::Module { path: "/lib/libodd.so".into(), ..Default::default() });
        profile.locations.push(Location { module: Some(0), address: 0x10, ..Location::default() });
        profile.stacks[0].locations.push(2);
        let selection = Selection { filter: patterns(&["0x10 in libodd.so"]), ..Selection::default() };
        assert_eq!(look(&profile, &selection).0.len(), 1);
    }

    #[test]
    fn rows_are_sorted_by_what_is_asked_for_and_ties_by_frames() {
        let mut profile = profile(&["malloc b main", "malloc a main", "malloc c main"]);
        for row in &mut profile.rows {
            row.counts = Counts { allocations: 4, bytes: 8, ..Counts::default() };
        }
        profile.rows[0].counts.freed = 4;
        profile.rows[2].counts.bytes = 9;
        profile.rows[2].counts.temporary = 1;
        let sites = CallSites::new(&profile, Rules::embedded());
        let names = |sort| {
            let view = View::new(&profile, &Selection::default(), &sites, sort);
            let rows = view.windows[0].rows.iter();
            rows.filter_map(|row| row.frames(&profile).nth(1)?.name()).collect::<String>()
        };
        assert_eq!(names(Sort::Count), "cab");
        assert_eq!(names(Sort::Bytes), "cab");
        assert_eq!(names(Sort::Live), "cab");
        assert_eq!(names(Sort::Temporary), "cab");
        profile.rows[0].counts.temporary = 2;
        let sites = CallSites::new(&profile, Rules::embedded());
        let view = View::new(&profile, &Selection::default(), &sites, Sort::Temporary);
        assert_eq!(view.windows[0].rows[0].row.counts.temporary, 2);
    }
}
