//! What an allocation is, in a word or two: `array growth`, `string`, `task`.
//!
//! ```text
//! malloc
//! alloc::raw_vec::finish_grow                 array growth
//! alloc::string::String::push_str             string, which says that it is over array growth
//! Header::name                                the call site: what is further out says nothing of it
//! ```
//! The rules stand in `rules/kind.txt`, which is embedded and explains itself. What they do not tell for certain is not said.

mod rule;

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::call_site::{CallSites, Rules};
use crate::frame::Frame;
use crate::model::{FrameKind, Function, FunctionId, Profile};
use crate::short_name::{Language, printed};
use crate::swift_name;
use crate::view::RowView;

pub(crate) use rule::KindRules;

/// What an allocation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The words of the rule.
    pub words: String,
    /// Of a class's instance: the class.
    pub of_type: Option<String>,
}

impl Kind {
    /// As a name for programs: `array_growth`.
    pub fn name(&self) -> String {
        self.words.replace(' ', "_")
    }
}

/// What an allocation is, by its number in [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KindId {
    /// As a rule says.
    Rule(usize),
    /// An instance of a class, of which this is the function that makes one.
    Instance(FunctionId),
}

/// A class's instance, which no list tells: its memory is asked for by the class's own function.
const CLASS_INSTANCE: &str = "class instance";
const ALLOCATING: &str = ".__allocating_init";
const ALLOCATE_OBJECT: &str = "swift_allocObject";

/// Tells kinds of a profile's stacks. It looks at a function when it meets it, and once.
#[derive(Debug)]
pub struct Kinds<'p> {
    profile: &'p Profile,
    rules: &'p KindRules,
    known: RefCell<FxHashMap<FunctionId, Option<usize>>>,
}

impl<'p> Kinds<'p> {
    /// By these rules.
    pub fn new(profile: &'p Profile, rules: &'p Rules) -> Self {
        Self { profile, rules: rules.kinds(), known: RefCell::default() }
    }

    /// What a row's allocations are; `None`: that is not certain.
    pub fn of(&self, row: &RowView<'p>, sites: &CallSites<'p>) -> Option<KindId> {
        let profile = self.profile;
        let site = row.call_site(profile, sites).map(|(at, _)| at)?;
        let mut found = None;
        let mut callee: Option<Frame<'p>> = None;
        for (at, frame) in row.frames(profile).take(site + 1).enumerate() {
            if found.is_none()
                && let Some(kind) = instance(&frame, callee.as_ref())
            {
                return Some(kind);
            }
            // Frames of the user's tell nothing, and where all frames are listed the site is one of them.
            let is_listed = profile
                .locations
                .get(frame.location)
                .is_some_and(|location| sites.lists(location, frame.line_index));
            if at > 0 && is_listed && frame.kind != FrameKind::EntryPoint {
                match (self.of_function(&frame), found) {
                    (None, _) => {}
                    (Some(kind), None) => found = Some(kind),
                    (Some(kind), Some(inner)) if kind == inner => {}
                    (Some(kind), Some(inner)) if self.rules.is_over(kind, inner) => found = Some(kind),
                    (Some(_), Some(_)) => break,
                }
            }
            callee = Some(frame);
        }
        found.map(KindId::Rule)
    }

    /// The same in words.
    pub fn kind(&self, id: KindId) -> Kind {
        match id {
            KindId::Rule(rule) => Kind { words: self.rules.words(rule).to_owned(), of_type: None },
            KindId::Instance(function) => {
                let name = self.profile.functions.get(function).map_or("", |function| &function.name);
                let within = swift_name::function(name);
                let of_type = within.split_once(ALLOCATING).map(|(of_type, _)| of_type.to_owned());
                Kind { words: CLASS_INSTANCE.to_owned(), of_type }
            }
        }
    }

    fn of_function(&self, frame: &Frame<'_>) -> Option<usize> {
        let (id, function) = frame.function_id.zip(frame.function)?;
        *self.known.borrow_mut().entry(id).or_insert_with(|| self.rules.of(&names(function)))
    }
}

/// The names of a function that patterns are compared with.
fn names(function: &Function) -> Vec<String> {
    let mut names: Vec<String> = printed(function).into_iter().map(|name| name.into_owned()).collect();
    names.extend([function.name.clone(), function.system_name.clone()]);
    names.retain(|name| !name.is_empty());
    names.dedup();
    names
}

/// The instance of a class, where the function is known that asked for its memory: with debug information, without which an inlined
/// initializer's own allocations would look the same.
fn instance(frame: &Frame<'_>, callee: Option<&Frame<'_>>) -> Option<KindId> {
    let function = frame.function.filter(|function| !function.file.is_empty())?;
    if callee?.name() != Some(ALLOCATE_OBJECT) || Language::of(function) != Language::Swift {
        return None;
    }
    swift_name::function(&function.name)
        .contains(ALLOCATING)
        .then(|| frame.function_id.map(KindId::Instance))?
}

#[cfg(test)]
mod tests;
