//! Functions as people tell them apart: by name and file; one without name by its place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use heaptally_profile::frame::{Frame, location_frames};
use heaptally_profile::model::{FrameKind, Profile};
use heaptally_profile::short_name::{Language, shown};
use heaptally_profile::swift_name;

use crate::escape::escape;
use crate::frame::source_file;

/// An index into a [`FunctionTable`]. Ascending: by name, place and file.
pub(super) type FunctionIndex = u32;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function<'p> {
    name: Cow<'p, str>,
    /// Where it has no name.
    place: String,
    pub(super) file: &'p str,
    language: Language,
}

impl<'p> Function<'p> {
    fn of(frame: &Frame<'p>) -> Self {
        let place = match frame.kind {
            FrameKind::Elided => "(frames left out)".to_owned(),
            FrameKind::TaskOrigin => crate::frame::TASK_ORIGIN.to_owned(),
            _ if frame.name().is_none() => frame.place(),
            _ => String::new(),
        };
        let language = frame.function.map_or(Language::Other, Language::of);
        Self {
            // Parts, copies and wrappings of a function of Swift are that function.
            name: match language {
                Language::Swift => swift_name::full_function(frame.name().unwrap_or_default()),
                _ => Cow::Borrowed(frame.name().unwrap_or_default()),
            },
            place,
            file: source_file(frame).unwrap_or_default(),
            language,
        }
    }

    /// Its name, and the same where there is little room; or the place that stands for it. Escaped.
    pub(super) fn texts(&self) -> [String; 2] {
        match &*self.name {
            "" => [&*self.place; 2].map(|place| escape(place).into_owned()),
            name => shown(name, self.language).map(|name| escape(&name).into_owned()),
        }
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
