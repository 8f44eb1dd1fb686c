//! Functions as people tell them apart: by name and file; one without name by its place.

use std::collections::BTreeMap;

use heaptally_profile::frame::{Frame, location_frames};
use heaptally_profile::model::{FrameKind, Profile};
use heaptally_profile::short_name::without_parameters;

use crate::escape::escape;
use crate::frame::is_cpp;

/// An index into a [`FunctionTable`]. Ascending: by name, place and file.
pub(super) type FunctionIndex = u32;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function<'p> {
    name: &'p str,
    /// Where it has no name.
    place: String,
    pub(super) file: &'p str,
    is_cpp: bool,
}

impl<'p> Function<'p> {
    fn of(frame: &Frame<'p>) -> Self {
        let place = match frame.kind {
            FrameKind::Elided => "(frames left out)".to_owned(),
            FrameKind::TaskOrigin => crate::frame::TASK_ORIGIN.to_owned(),
            _ if frame.name().is_none() => frame.place(),
            _ => String::new(),
        };
        Self {
            name: frame.name().unwrap_or_default(),
            place,
            file: frame.file().unwrap_or_default(),
            is_cpp: is_cpp(frame),
        }
    }

    /// Its name, or the place that stands for it; escaped.
    pub(super) fn text(&self) -> String {
        escape(if self.name.is_empty() { &self.place } else { self.name }).into_owned()
    }

    /// The same without parameters, of the [`text`](Self::text).
    pub(super) fn short<'a>(&self, text: &'a str) -> &'a str {
        without_parameters(text, self.is_cpp)
    }
}

/// The functions of a profile's frames.
pub(super) struct FunctionTable<'p> {
    functions: Vec<Function<'p>>,
    /// By location, by line.
    indices: Vec<Vec<FunctionIndex>>,
}

impl<'p> FunctionTable<'p> {
    pub(super) fn new(profile: &'p Profile) -> Self {
        let locations = 0..profile.locations.len();
        let all = locations.clone().flat_map(|at| location_frames(profile, at));
        let mut known: BTreeMap<Function<'p>, FunctionIndex> =
            all.map(|frame| (Function::of(&frame), 0)).collect();
        for (index, (_, function)) in (0..).zip(&mut known) {
            *function = index;
        }
        let index = |frame: Frame<'p>| known.get(&Function::of(&frame)).copied().unwrap_or_default();
        let indices = locations.map(|at| location_frames(profile, at).map(index).collect()).collect();
        Self { functions: known.into_keys().collect(), indices }
    }

    /// The function of a frame.
    pub(super) fn index(&self, frame: &Frame<'_>) -> FunctionIndex {
        let lines = self.indices.get(frame.location);
        lines.and_then(|lines| lines.get(frame.line_index)).copied().unwrap_or_default()
    }

    pub(super) fn get(&self, index: FunctionIndex) -> Option<&Function<'p>> {
        self.functions.get(index as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }
}
