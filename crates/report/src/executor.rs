//! What stood behind async functions when they were resumed, by their stacks.

use heaptally_profile::frame::{Frame, location_frames};
use heaptally_profile::model::{Executor, Profile, StackId};
use rustc_hash::FxHashMap;

/// The executors of a profile's stacks.
#[derive(Debug)]
pub(crate) struct Executors<'p> {
    of_stack: FxHashMap<StackId, Vec<&'p Executor>>,
}

impl<'p> Executors<'p> {
    pub(crate) fn new(profile: &'p Profile) -> Self {
        let mut of_stack: FxHashMap<StackId, Vec<&Executor>> = FxHashMap::default();
        for executor in &profile.executors {
            of_stack.entry(executor.stack).or_default().push(executor);
        }
        for executors in of_stack.values_mut() {
            // Equal ones stay in the profile's order.
            executors.sort_by_key(|executor| std::cmp::Reverse(executor.allocations));
        }
        Self { of_stack }
    }

    /// Those of a stack, the one with most allocations first.
    pub(crate) fn of(&self, stack: StackId) -> &[&'p Executor] {
        self.of_stack.get(&stack).map_or(&[], Vec::as_slice)
    }
}

/// The frames of an executor, the innermost one first.
pub(crate) fn frames<'p>(profile: &'p Profile, executor: &'p Executor) -> impl Iterator<Item = Frame<'p>> {
    executor.locations.iter().flat_map(move |&at| location_frames(profile, at))
}
