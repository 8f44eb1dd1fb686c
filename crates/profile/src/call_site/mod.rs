//! The call site of a stack: the innermost frame that the user can act on.
//!
//! Frames of allocators, of the recorder, of libc and of languages' standard libraries and run times are passed over;
//! `rules/call_site.txt`, which is embedded, lists them and explains itself. A user's own list can be added with
//! [`Rules::parse`] and [`Rules::extend`]. Dependencies are user code.
//!
//! ```text
//! malloc                             entry point        passed over
//! alloc::raw_vec::finish_grow        [function rust]    passed over
//! Header::push_value                 in no list         the call site
//! parse_line (inlined)
//! main
//! ```

mod language;
mod rule;

pub use rule::Rules;

use crate::frame::frame_count;
use crate::model::{FrameKind, FunctionId, Location, LocationId, ModuleId, Profile, StackId};

/// Whose a frame is: the nearer to the user, the less. What every frame of a stack is in the lists of, the least stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// In no list.
    User,
    /// A listed function in a module that is not listed: a library's code that was compiled into the program, perhaps with
    /// code of the user's inlined.
    Program,
    /// In a listed module, or the trampoline of a signal.
    Library,
    /// A function that does nothing but allocate.
    Allocation,
}

/// The call site of one stack by the embedded rules: the location and the index of the line in it.
///
/// For many stacks make one [`CallSites`]: it looks at each function once.
pub fn call_site(profile: &Profile, stack: StackId) -> Option<(LocationId, usize)> {
    CallSites::new(profile, Rules::embedded()).of(stack)
}

/// Finds the call sites of a profile's stacks.
#[derive(Debug)]
pub struct CallSites<'p> {
    profile: &'p Profile,
    /// By function: whether it is in the lists.
    functions: Vec<bool>,
    /// By function: whether it does nothing but allocate.
    allocations: Vec<bool>,
    /// By module.
    modules: Vec<bool>,
}

impl<'p> CallSites<'p> {
    /// Looks at the functions and modules of a profile.
    pub fn new(profile: &'p Profile, rules: &Rules) -> Self {
        Self {
            profile,
            functions: profile.functions.iter().map(|function| rules.lists_function(function)).collect(),
            allocations: profile.functions.iter().map(|function| rules.allocates(function)).collect(),
            modules: profile.modules.iter().map(|module| rules.lists_module(&module.path)).collect(),
        }
    }

    /// The call site of a stack: the location and the index of the line in it, innermost inlined frame first: the innermost
    /// of the frames with the least [`Standing`].
    ///
    /// A location without lines has no line 0 either: then the address is all there is to name. `None` when there is no
    /// frame with a standing, or no such stack.
    pub fn of(&self, stack: StackId) -> Option<(LocationId, usize)> {
        let stack = self.profile.stacks.get(stack)?;
        let mut best: Option<(Standing, (LocationId, usize))> = None;
        for &at in &stack.locations {
            let Some(location) = self.profile.locations.get(at) else { continue };
            for line_index in 0..frame_count(location) {
                let Some(standing) = self.standing(location, line_index) else { continue };
                if standing == Standing::User {
                    return Some((at, line_index));
                }
                if best.is_none_or(|(least, _)| standing < least) {
                    best = Some((standing, (at, line_index)));
                }
            }
        }
        best.map(|(_, place)| place)
    }

    /// Whose a frame is. `None` for the allocation function itself, and for frames that were left out.
    pub fn standing(&self, location: &Location, line_index: usize) -> Option<Standing> {
        if matches!(location.kind, FrameKind::EntryPoint | FrameKind::Elided | FrameKind::TaskOrigin) {
            return None;
        }
        let function = location.lines.get(line_index).map(|line| line.function);
        let allocates =
            function.is_some_and(|function| self.allocations.get(function).copied().unwrap_or(false));
        Some(match location.module {
            _ if allocates => Standing::Allocation,
            _ if location.kind == FrameKind::Signal => Standing::Library,
            Some(module) if self.lists_module(module) => Standing::Library,
            _ if function.is_some_and(|function| self.lists_function(function)) => Standing::Program,
            _ => Standing::User,
        })
    }

    /// Whether a frame is in the lists: the allocation function, the trampoline of a signal, a frame of a listed module
    /// or function. `line_index` is as in [`Frame`](crate::frame::Frame).
    pub fn lists(&self, location: &Location, line_index: usize) -> bool {
        matches!(location.kind, FrameKind::EntryPoint | FrameKind::Signal)
            || location.module.is_some_and(|module| self.lists_module(module))
            || location.lines.get(line_index).is_some_and(|line| self.lists_function(line.function))
    }

    /// Whether a module is in the lists.
    pub fn lists_module(&self, module: ModuleId) -> bool {
        self.modules.get(module).copied().unwrap_or(false)
    }

    /// Whether a function is in the lists.
    pub fn lists_function(&self, function: FunctionId) -> bool {
        self.functions.get(function).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Function, Line, Location, Module, Stack};

    /// A profile of one stack. A frame is (module, kind, names of its lines from the innermost).
    fn profile(frames: &[(&str, FrameKind, &[&str])]) -> Profile {
        let mut profile = Profile::default();
        let mut stack = Stack::default();
        for (module, kind, names) in frames {
            profile.modules.push(Module { path: (*module).to_owned(), ..Module::default() });
            let mut location =
                Location { module: Some(profile.modules.len() - 1), kind: *kind, ..Location::default() };
            for name in *names {
                profile.functions.push(Function {
                    name: (*name).to_owned(),
                    system_name: (*name).to_owned(),
                    ..Function::default()
                });
                location.lines.push(Line { function: profile.functions.len() - 1, line: 1 });
            }
            stack.locations.push(profile.locations.len());
            profile.locations.push(location);
        }
        profile.stacks.push(stack);
        profile
    }

    #[test]
    fn the_innermost_frame_of_the_user_is_found_within_inlined_ones() {
        let profile = profile(&[
            ("", FrameKind::EntryPoint, &["malloc"]),
            ("/bin/bench", FrameKind::Return, &["alloc::raw_vec::finish_grow"]),
            ("/bin/bench", FrameKind::Return, &["alloc::vec::Vec<T>::push", "header::push_value", "parse"]),
            ("/bin/bench", FrameKind::Return, &["main"]),
        ]);
        assert_eq!(call_site(&profile, 0), Some((2, 1)));
    }

    #[test]
    fn a_module_in_the_lists_is_passed_over_whatever_its_names() {
        let profile = profile(&[
            ("", FrameKind::EntryPoint, &["malloc"]),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", FrameKind::Return, &[]),
            ("/usr/lib/libpng16.so.16", FrameKind::Return, &[]),
            ("/bin/bench", FrameKind::Return, &["main"]),
        ]);
        assert_eq!(call_site(&profile, 0), Some((2, 0)));
    }

    #[test]
    fn where_all_frames_are_listed_the_innermost_stands_in() {
        let profile = profile(&[
            ("", FrameKind::EntryPoint, &["calloc"]),
            ("/lib64/ld-linux-x86-64.so.2", FrameKind::Return, &["allocate_dtv"]),
            ("/lib/libc.so.6", FrameKind::Return, &["pthread_create"]),
        ]);
        assert_eq!(call_site(&profile, 0), Some((1, 0)));
    }

    /// A thread's start that has the user's code inlined stands nearer to it than what the library did with it.
    #[test]
    fn an_allocation_function_stands_in_only_where_there_is_nothing_else() {
        let new = ("/lib/libstdc++.so.6", FrameKind::Return, &["operator new(unsigned long)"][..]);
        let mutate = ("/lib/libstdc++.so.6", FrameKind::Return, &["std::string::_M_mutate(int)"][..]);
        let allocate =
            ("/bin/x", FrameKind::Return, &["std::allocator<int>::allocate(int)", "std::f<int>()"][..]);
        let start = ("/lib/libc.so.6", FrameKind::Return, &["start_thread"][..]);
        let malloc = ("", FrameKind::EntryPoint, &["malloc"][..]);
        let site = |frames: &[_]| call_site(&profile(frames), 0);
        assert_eq!(site(&[malloc, new, mutate, allocate, start]), Some((3, 1)));
        assert_eq!(site(&[malloc, new, mutate, start]), Some((2, 0)));
        assert_eq!(site(&[malloc, new]), Some((1, 0)));
    }

    #[test]
    fn a_stack_without_frames_has_none() {
        assert_eq!(call_site(&profile(&[("", FrameKind::EntryPoint, &["malloc"])]), 0), None);
        assert_eq!(call_site(&Profile::default(), 3), None);
    }

    #[test]
    fn an_elided_middle_is_no_call_site() {
        let profile = profile(&[
            ("", FrameKind::EntryPoint, &["malloc"]),
            ("", FrameKind::Elided, &[]),
            ("/bin/bench", FrameKind::Return, &["recurse"]),
        ]);
        assert_eq!(call_site(&profile, 0), Some((2, 0)));
    }
}
