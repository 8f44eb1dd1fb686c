//! Which stacks of which windows are looked at, and how much of them.

use regex::Regex;

use super::LeftOut;
use crate::call_site::CallSites;
use crate::frame::{Frame, frame_count, location_frames};
use crate::model::{FrameKind, Profile, Row, Stack};
use crate::short_name;

/// What to look at. The default is everything.
///
/// A pattern is compared with each logical frame: with the name of its function, whole and as reports print it
/// ([`short_name`]), and with its source file; a frame without name is compared by what stands for it,
/// `0x1234 in libfoo.so`. Anywhere in the text is enough. Of several patterns of one kind one has to fit.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The names of the windows; empty: all of them.
    pub windows: Vec<String>,
    /// Stacks that hold such a frame, without the callers of the outermost one.
    pub under: Vec<Regex>,
    /// Stacks that hold such a frame.
    pub filter: Vec<Regex>,
    /// Stacks that do not.
    pub exclude: Vec<Regex>,
    /// Stacks whose thread began in such a function: the outermost frame that no rule lists, or one further out.
    pub root: Vec<Regex>,
}

impl Selection {
    /// The names of [`windows`](Self::windows) that the profile does not have.
    pub fn missing_windows(&self, profile: &Profile) -> Vec<&str> {
        let known = |name: &&str| profile.windows.iter().any(|window| window.name == *name);
        self.windows.iter().map(String::as_str).filter(|name| !known(name)).collect()
    }

    /// The patterns for stacks, each with what it is called here and, with `--` before it, as an option.
    pub fn patterns(&self) -> impl Iterator<Item = (&'static str, &Regex)> {
        let kinds = [
            ("under", &self.under),
            ("filter", &self.filter),
            ("root", &self.root),
            ("exclude", &self.exclude),
        ];
        kinds.into_iter().flat_map(|(kind, patterns)| patterns.iter().map(move |pattern| (kind, pattern)))
    }

    /// Whether every stack of the windows is looked at.
    pub fn takes_all_stacks(&self) -> bool {
        self.under.is_empty() && self.filter.is_empty() && self.exclude.is_empty() && self.root.is_empty()
    }
}

/// Why a stack is left out, or how much of it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its first logical frames, so many of them.
    Keep { frames: usize, is_trimmed: bool },
    /// No frame fits [`Selection::under`].
    NotUnder,
    /// Another pattern was against it.
    Filtered,
}

impl LeftOut {
    pub(super) fn add(&mut self, verdict: Verdict, row: &Row) {
        let (stacks, counts) = match verdict {
            Verdict::Keep { .. } => return,
            Verdict::NotUnder => (&mut self.not_under_stacks, &mut self.not_under),
            Verdict::Filtered => (&mut self.filtered_stacks, &mut self.filtered),
        };
        *stacks += 1;
        counts.add(&row.counts);
    }
}

/// A selection with its patterns compared with every function once.
pub(super) struct Matcher<'p, 's> {
    profile: &'p Profile,
    sites: &'s CallSites<'p>,
    under: Option<Fits>,
    filter: Option<Fits>,
    exclude: Option<Fits>,
    root: Option<Fits>,
}

impl<'p, 's> Matcher<'p, 's> {
    pub(super) fn new(profile: &'p Profile, selection: &Selection, sites: &'s CallSites<'p>) -> Self {
        let fits = |patterns: &[Regex]| (!patterns.is_empty()).then(|| Fits::new(profile, patterns));
        Self {
            profile,
            sites,
            under: fits(&selection.under),
            filter: fits(&selection.filter),
            exclude: fits(&selection.exclude),
            root: fits(&selection.root),
        }
    }

    pub(super) fn judge(&self, stack: &Stack) -> Verdict {
        let any = |fits: &Fits| stack.locations.iter().any(|&at| fits.outermost(at).is_some());
        if self.filter.as_ref().is_some_and(|fits| !any(fits))
            || self.exclude.as_ref().is_some_and(any)
            || self.root.as_ref().is_some_and(|fits| !self.begins_in(fits, stack))
        {
            return Verdict::Filtered;
        }
        let Some(under) = &self.under else {
            return Verdict::Keep { frames: usize::MAX, is_trimmed: false };
        };
        let outermost = stack
            .locations
            .iter()
            .enumerate()
            .rev()
            .find_map(|(position, &at)| Some((position, under.outermost(at)?)));
        let Some((position, line_index)) = outermost else { return Verdict::NotUnder };
        let count = |at: &usize| self.profile.locations.get(*at).map_or(0, frame_count);
        let inner: usize = stack.locations.iter().take(position).map(count).sum();
        let all: usize = stack.locations.iter().map(count).sum();
        let frames = inner + line_index + 1;
        Verdict::Keep { frames, is_trimmed: frames < all }
    }

    /// Whether the outermost frame that no rule lists fits, or one further out.
    fn begins_in(&self, fits: &Fits, stack: &Stack) -> bool {
        for &at in stack.locations.iter().rev() {
            let Some(location) = self.profile.locations.get(at) else { continue };
            if matches!(location.kind, FrameKind::Elided | FrameKind::EntryPoint | FrameKind::TaskOrigin) {
                continue;
            }
            for line_index in (0..frame_count(location)).rev() {
                if fits.fits(at, line_index) {
                    return true;
                }
                if !self.sites.lists(location, line_index) {
                    return false;
                }
            }
        }
        false
    }
}

/// Which frames fit any of some patterns: by location the lines that do, in ascending order.
struct Fits(Vec<Vec<usize>>);

impl Fits {
    fn new(profile: &Profile, patterns: &[Regex]) -> Self {
        let any = |text: &str| patterns.iter().any(|pattern| pattern.is_match(text));
        let functions: Vec<bool> = profile
            .functions
            .iter()
            .map(|function| {
                (!function.name.is_empty() && any(&function.name))
                    || short_name::printed(function).iter().any(|name| !name.is_empty() && any(name))
                    || (!function.file.is_empty() && any(&function.file))
            })
            .collect();
        let is_fit = |frame: &Frame<'_>| match frame.function_id {
            Some(function) if frame.name().is_some() => functions[function],
            Some(function) => functions[function] || any(&frame.place()),
            None => any(&frame.place()),
        };
        let of = |at| location_frames(profile, at).filter(is_fit).map(|frame| frame.line_index).collect();
        Self((0..profile.locations.len()).map(of).collect())
    }

    /// The outermost line of a location that fits.
    fn outermost(&self, location: usize) -> Option<usize> {
        self.0.get(location)?.last().copied()
    }

    fn fits(&self, location: usize, line_index: usize) -> bool {
        self.0.get(location).is_some_and(|lines| lines.contains(&line_index))
    }
}
