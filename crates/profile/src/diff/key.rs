//! Frames of two profiles by one numbering: equal functions have equal keys.
//!
//! A key is a function's normal name and its file, an allocation function, or a place without a name. Keys are in the
//! order of their texts, so that they do not depend on which profile is which.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::DiffOptions;
use super::bare;
use super::file::{FileId, Files};
use super::name::{normal_name, similarity, without_generics};
use crate::call_site::{CallSites, Standing};
use crate::frame::{Frame, file_name, location_frames};
use crate::model::{FrameKind, FunctionId, LocationId, Profile};
use crate::swift_name::{SwiftFrame, SwiftFrames};

/// A function of both profiles.
pub(super) type Key = u32;

/// A logical frame as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: Key,
    /// It was inlined into the next one.
    pub(super) inlined: bool,
    /// A rule lists it: it is nobody's call site.
    pub(super) listed: bool,
    /// Whose it is, where it can be a call site.
    pub(super) standing: Option<Standing>,
    /// The allocation function.
    pub(super) entry: bool,
    /// Its source is known, so that inlined functions are known too.
    pub(super) has_source: bool,
    /// What it is to its neighbours, where it is Swift's.
    pub(super) swift: SwiftFrame,
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Meaning {
    rank: u8,
    pub(super) name: String,
    pub(super) file: FileId,
}

/// What is known of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Whether it occurs in the base, and in the change.
    pub(super) on: [bool; 2],
    /// Whether its code is shared with functions of other names.
    pub(super) is_folded: bool,
    /// The first key with its name: the same in every file.
    plain: Key,
    /// Whether its name, in whatever file, occurs in the base, and in the change.
    name_on: [bool; 2],
    /// The first key with its name but for generic arguments; its own where it has none.
    generic: Key,
}

/// Similarities that were asked for, the latest ones. Not shown: only a memory.
struct Similarities(RefCell<Vec<((Key, Key), f64)>>);

impl Similarities {
    /// A power of two.
    const LEN: usize = 1 << 12;

    fn new() -> Self {
        Self(RefCell::new(vec![((Key::MAX, Key::MAX), 0.0); Self::LEN]))
    }
}

impl fmt::Debug for Similarities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Similarities")
    }
}

/// The frames of both profiles.
#[derive(Debug)]
pub(super) struct Keys {
    meanings: Vec<Meaning>,
    known: Vec<Known>,
    /// By side and location.
    items: [Vec<Vec<Item>>; 2],
    /// Whether one side alone tells which allocation function was called: then it tells nothing apart.
    pub(super) is_entry_one_sided: bool,
    similarities: Similarities,
}

const NAMED: u8 = 0;
const ENTRY: u8 = 1;
const ELIDED: u8 = 2;
const NAMELESS: u8 = 3;
const TASK_ORIGIN: u8 = 4;

impl Keys {
    pub(super) fn new(profiles: [&Profile; 2], sites: [&CallSites<'_>; 2], options: &DiffOptions) -> Self {
        let files = Files::new(profiles);
        let mut names = profiles.map(|profile| normal_names(profile, options));
        bare::shorten(profiles, &mut names, &files);
        let ambiguous = ambiguous(profiles, &names, &files);
        let same_build = same_builds(profiles);
        let swift = profiles.map(SwiftFrames::new);
        let of = |rank, name: String| Meaning { rank, name, file: FileId::UNKNOWN };
        let named = |side: usize, function: FunctionId| {
            let name = names[side].get(function).map_or("", String::as_str);
            let file = profiles[side].functions.get(function).map_or("", |function| &function.file);
            let is_told = !file.is_empty() && ambiguous.contains(name);
            let file = if is_told { files.id(side, file) } else { FileId::UNKNOWN };
            Meaning { rank: NAMED, name: name.to_owned(), file }
        };
        let nameless = |frame: &Frame<'_>| of(NAMELESS, place(frame, &same_build));

        let mut meanings = BTreeSet::from([of(ELIDED, String::new()), of(TASK_ORIGIN, String::new())]);
        for (side, profile) in profiles.into_iter().enumerate() {
            meanings.extend((0..profile.functions.len()).map(|function| named(side, function)));
            for frame in frames_of(profile) {
                match (frame.kind, frame.name()) {
                    (FrameKind::Elided | FrameKind::TaskOrigin, _) => {}
                    (FrameKind::EntryPoint, Some(name)) => {
                        meanings.insert(of(ENTRY, name.to_owned()));
                    }
                    (_, Some(_)) => {}
                    (_, None) => {
                        meanings.insert(nameless(&frame));
                    }
                }
            }
        }
        let meanings: Vec<Meaning> = meanings.into_iter().collect();
        let find = |meaning: &Meaning| meanings.binary_search(meaning).unwrap_or_default() as Key;
        let [elided, task_origin] = [ELIDED, TASK_ORIGIN].map(|rank| find(&of(rank, String::new())));
        let mut known = vec![Known::default(); meanings.len()];
        let items = [0, 1].map(|side| {
            let profile = profiles[side];
            let functions: Vec<Key> =
                (0..profile.functions.len()).map(|function| find(&named(side, function))).collect();
            let mut item = |frame: Frame<'_>| {
                let key = match (frame.kind, frame.name(), frame.function_id) {
                    (FrameKind::Elided, ..) => elided,
                    (FrameKind::TaskOrigin, ..) => task_origin,
                    (FrameKind::EntryPoint, Some(name), _) => find(&of(ENTRY, name.to_owned())),
                    (_, Some(_), Some(function)) => functions.get(function).copied().unwrap_or_default(),
                    _ => find(&nameless(&frame)),
                };
                let location = profile.locations.get(frame.location);
                if let Some(known) = known.get_mut(key as usize) {
                    known.on[side] = true;
                    known.is_folded |= frame.function.is_some_and(|function| function.is_folded);
                }
                Item {
                    key,
                    inlined: frame.inlined,
                    listed: matches!(frame.kind, FrameKind::Elided | FrameKind::TaskOrigin)
                        || location.is_some_and(|location| sites[side].lists(location, frame.line_index)),
                    standing: location.and_then(|location| sites[side].standing(location, frame.line_index)),
                    entry: frame.kind == FrameKind::EntryPoint,
                    has_source: frame.file().is_some(),
                    swift: frame.function_id.map(|function| swift[side].of(function)).unwrap_or_default(),
                }
            };
            (0..profile.locations.len())
                .map(|at| location_frames(profile, at).map(&mut item).collect())
                .collect()
        });
        let has_entry =
            items.each_ref().map(|items: &Vec<Vec<Item>>| items.iter().flatten().any(|item| item.entry));
        let mut keys = Self {
            meanings,
            known,
            items,
            is_entry_one_sided: has_entry[0] != has_entry[1],
            similarities: Similarities::new(),
        };
        keys.join_names();
        keys.join_instances();
        keys
    }

    /// Finds the keys that differ in their file only; they stand beside each other.
    fn join_names(&mut self) {
        let mut first = 0;
        while first < self.meanings.len() {
            let same = |at: &usize| self.is_same_name(first as Key, *at as Key);
            let end = first + 1 + (first + 1..self.meanings.len()).take_while(same).count();
            let run = self.known.get_mut(first..end).unwrap_or_default();
            let name_on = [0, 1].map(|side| run.iter().any(|known| known.on[side]));
            for known in run {
                (known.plain, known.name_on) = (first as Key, name_on);
            }
            first = end;
        }
    }

    /// Finds the instances of one generic function.
    fn join_instances(&mut self) {
        let mut first: BTreeMap<String, Key> = BTreeMap::new();
        for (at, (meaning, known)) in self.meanings.iter().zip(&mut self.known).enumerate() {
            known.generic = at as Key;
            if meaning.rank == NAMED && meaning.name.contains('<') {
                known.generic = *first.entry(without_generics(&meaning.name)).or_insert(at as Key);
            }
        }
    }

    /// Whether both are instances of one generic function.
    pub(super) fn are_instances(&self, a: Key, b: Key) -> bool {
        let known = |key: Key| self.known.get(key as usize);
        known(a).zip(known(b)).is_some_and(|(a, b)| a.generic == b.generic)
    }

    /// Whether one may stand for the other because optimisers fold instances of a generic function whose code is the same:
    /// then one of them is gone from one side.
    pub(super) fn are_folded_instances(&self, a: Key, b: Key) -> bool {
        self.are_instances(a, b) && self.is_one_sided(a) != self.is_one_sided(b)
    }

    /// The frames of a location.
    pub(super) fn items(&self, side: usize, location: LocationId) -> &[Item] {
        self.items[side].get(location).map_or(&[], Vec::as_slice)
    }

    pub(super) fn name(&self, key: Key) -> &str {
        self.meanings.get(key as usize).map_or("", |meaning| &meaning.name)
    }

    /// Whether two keys differ in their file only.
    pub(super) fn is_same_name(&self, a: Key, b: Key) -> bool {
        match (self.meanings.get(a as usize), self.meanings.get(b as usize)) {
            (Some(a), Some(b)) => a.rank == NAMED && b.rank == NAMED && a.name == b.name,
            _ => false,
        }
    }

    /// Whether both are functions with names.
    pub(super) fn are_named(&self, a: Key, b: Key) -> bool {
        [a, b].iter().all(|&key| self.meanings.get(key as usize).is_some_and(|meaning| meaning.rank == NAMED))
    }

    /// Whether it occurs in one profile only.
    pub(super) fn is_one_sided(&self, key: Key) -> bool {
        self.known.get(key as usize).is_some_and(|known| known.on != [true, true])
    }

    /// What stands for a key when files are not looked at; `None` where one side alone has a function of that name.
    pub(super) fn shared_name(&self, key: Key) -> Option<Key> {
        self.known.get(key as usize).filter(|known| known.name_on == [true, true]).map(|known| known.plain)
    }

    /// How much alike two names are, from 0 to 1.
    pub(super) fn similarity(&self, a: Key, b: Key) -> f64 {
        let pair = (a.min(b), a.max(b));
        let place = (pair.0.wrapping_mul(0x9e37_79b9) ^ pair.1) as usize % Similarities::LEN;
        let mut memory = self.similarities.0.borrow_mut();
        match memory.get_mut(place) {
            Some((known, similarity)) if *known == pair => *similarity,
            Some(entry) => {
                *entry = (pair, similarity(self.name(pair.0), self.name(pair.1)));
                entry.1
            }
            None => similarity(self.name(pair.0), self.name(pair.1)),
        }
    }

    pub(super) fn is_folded(&self, key: Key) -> bool {
        self.known.get(key as usize).is_some_and(|known| known.is_folded)
    }
}

fn frames_of(profile: &Profile) -> impl Iterator<Item = Frame<'_>> {
    (0..profile.locations.len()).flat_map(|at| location_frames(profile, at))
}

/// The normal names of a profile's functions.
fn normal_names(profile: &Profile, options: &DiffOptions) -> Vec<String> {
    let normal = |name: &str| match (normal_name(name), options.fold_generics) {
        (name, true) => without_generics(&name),
        (name, false) => name,
    };
    profile.functions.iter().map(|function| normal(&function.name)).collect()
}

/// Whether a linker knows a function by this name all over a program: then it is one, in whatever file the code of a macro
/// or an included file stands that was expanded in it. Not so names of C, and of C++ what a file has for itself.
fn is_global(system_name: &str) -> bool {
    let is_mangled =
        system_name.starts_with("_ZN") || system_name.starts_with("_R") || system_name.starts_with("$s");
    is_mangled && !system_name.contains("_GLOBAL__N_")
}

/// The names that functions in several files have: there the file tells them apart.
fn ambiguous<'n>(profiles: [&Profile; 2], names: &'n [Vec<String>; 2], files: &Files) -> BTreeSet<&'n str> {
    let mut files_of: BTreeMap<&str, BTreeSet<FileId>> = BTreeMap::new();
    for (side, profile) in profiles.into_iter().enumerate() {
        for (at, function) in profile.functions.iter().enumerate() {
            if !function.file.is_empty() && !is_global(&function.system_name) {
                let Some(name) = names[side].get(at) else { continue };
                files_of.entry(name).or_default().insert(files.id(side, &function.file));
            }
        }
    }
    files_of.into_iter().filter(|(_, files)| files.len() > 1).map(|(name, _)| name).collect()
}

/// The build-ids that both profiles have: there addresses can be compared.
fn same_builds<'p>(profiles: [&'p Profile; 2]) -> BTreeSet<&'p str> {
    let of = |profile: &'p Profile| {
        let ids = profile.modules.iter().map(|module| module.build_id.as_str());
        ids.filter(|id| !id.is_empty()).collect::<BTreeSet<_>>()
    };
    of(profiles[0]).intersection(&of(profiles[1])).copied().collect()
}

/// What stands for a frame without name: its module, and its address where that means the same in both.
fn place(frame: &Frame<'_>, same_build: &BTreeSet<&str>) -> String {
    match frame.module {
        Some(module) if same_build.contains(module.build_id.as_str()) => frame.place(),
        Some(module) => file_name(&module.path).to_owned(),
        None => String::new(),
    }
}
