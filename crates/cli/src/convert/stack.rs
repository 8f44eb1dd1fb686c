//! Stacks of a segment as a profile has them.
//!
//! A stack with async callers is, leaf first: the frames of the async function and what it called, then its callers. The
//! frames behind the function say which executor resumed it, differ from run to run, and stand beside: several stacks of
//! the segment may be one of the profile. Behind the last caller may stand the stack that created the task.

use std::collections::HashMap;

use heaptally_profile::model::{Capture, Executor, LocationId, Profile, Row, Stack, StackId, WindowId};
use heaptally_segment::layout::{
    ASYNC_BROKEN, ASYNC_FRAMES, ASYNC_UNKNOWN, NODE_ASYNC, NODE_FRAME_POINTER, Root,
};
use heaptally_segment::read::{Area, Link};

/// The stacks and rows of one area.
pub(super) struct Stacks<'a> {
    area: &'a Area,
    first_location: usize,
    /// The library that recorded.
    recorder: Option<usize>,
    known: HashMap<(Link, LocationId), (StackId, bool)>,
    executors: HashMap<(Link, LocationId), usize>,
    /// Those of async functions, by what they are without their executors.
    async_stacks: HashMap<Stack, StackId>,
    async_rows: HashMap<(WindowId, StackId), usize>,
}

/// A stack, and what stands beside it.
struct Found {
    stack: Stack,
    is_async: bool,
    executor: Vec<LocationId>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(area: &'a Area, first_location: usize, recorder: Option<usize>) -> Self {
        Self {
            area,
            first_location,
            recorder,
            known: HashMap::new(),
            executors: HashMap::new(),
            async_stacks: HashMap::new(),
            async_rows: HashMap::new(),
        }
    }

    /// The stack of a leaf, with the allocation function's location, and whether it is an async function's.
    fn stack(&mut self, profile: &mut Profile, leaf: Link, entry_point: LocationId) -> (StackId, bool) {
        if let Some(known) = self.known.get(&(leaf, entry_point)) {
            return *known;
        }
        let Found { stack, is_async, executor } = self.find(leaf, entry_point);
        let push = |profile: &mut Profile, stack| {
            profile.stacks.push(stack);
            profile.stacks.len() - 1
        };
        let id = if is_async {
            *self.async_stacks.entry(stack).or_insert_with_key(|stack| push(profile, stack.clone()))
        } else {
            push(profile, stack)
        };
        self.known.insert((leaf, entry_point), (id, is_async));
        if is_async {
            profile.executors.push(Executor { stack: id, locations: executor, allocations: 0 });
        }
        (id, is_async)
    }

    /// Adds a row of a leaf, to that of its stack and window if there is one.
    pub(super) fn add(&mut self, profile: &mut Profile, (leaf, entry_point): (Link, LocationId), row: Row) {
        let (stack, is_async) = self.stack(profile, leaf, entry_point);
        let row = Row { stack, ..row };
        if !is_async {
            return profile.rows.push(row);
        }
        let executor = *self.executors.entry((leaf, entry_point)).or_insert(profile.executors.len() - 1);
        if let Some(executor) = profile.executors.get_mut(executor) {
            executor.allocations = executor.allocations.saturating_add(row.counts.allocations);
        }
        let known = self.async_rows.get(&(row.window, stack)).and_then(|at| profile.rows.get_mut(*at));
        match known {
            Some(known) => {
                known.counts.add(&row.counts);
                // Both may have occurred in the same entries.
                known.entries = None;
                known.first_entry = known.first_entry.zip(row.first_entry).map(|(one, other)| one.min(other));
                known.last_entry = known.last_entry.zip(row.last_entry).map(|(one, other)| one.max(other));
            }
            None => {
                self.async_rows.insert((row.window, stack), profile.rows.len());
                profile.rows.push(row);
            }
        }
    }

    fn find(&self, leaf: Link, entry_point: LocationId) -> Found {
        let mut part = Part::default();
        part.locations.push(entry_point);
        let mut root = self.walk(leaf, &mut part);
        let is_async = part.frames.is_some();
        let executor = std::mem::take(&mut part.executor);
        let mut locations = part.locations;
        let (mut is_unknown, mut uses_frame_pointer) = (part.is_unknown, part.uses_frame_pointer);
        // What created a task was there before it, so this ends.
        while let Some((note, origin)) = part.origin {
            locations.push(note);
            part = Part::default();
            let origins = self.walk(origin, &mut part);
            root = if root == Root::Complete { origins } else { root };
            locations.append(&mut part.locations);
            is_unknown |= part.is_unknown;
            uses_frame_pointer |= part.uses_frame_pointer;
        }
        let cut_reason = match root {
            Root::Complete => "",
            Root::CutNoInformation => "no unwind information, and no frame pointer that could be followed",
            Root::CutBadInformation => "unwind information that could not be followed",
            Root::CutBadStack => "the stack did not lead on",
            Root::CutDepth => "deeper than the limit, the middle is left out",
        };
        let capture = match (root, is_unknown, uses_frame_pointer) {
            (Root::Complete, true, _) => Capture::AsyncUnknown,
            (Root::Complete, false, false) => Capture::Complete,
            (Root::Complete, false, true) => Capture::FramePointer,
            _ => Capture::Cut,
        };
        let stack = Stack { locations, capture, cut_reason: cut_reason.to_owned() };
        Found { stack, is_async, executor }
    }

    /// Adds the frames from a leaf on to a part, and tells how they end.
    fn walk(&self, leaf: Link, part: &mut Part) -> Root {
        let mut callers = Vec::new();
        let mut link = leaf;
        let root = loop {
            let id = match link {
                Link::Root(root) => break root,
                Link::Frame(id) => id,
            };
            // A caller comes before its callees, so this ends.
            let Some(frame) = self.area.frames.get(id) else { break Root::CutBadInformation };
            link = frame.caller;
            if frame.flags & NODE_ASYNC != 0 {
                match (frame.origin(), frame.address) {
                    (Some(origin), _) => {
                        let origin = self.area.origins.get(&origin);
                        part.origin = origin.map(|origin| (self.first_location + id, *origin));
                    }
                    (None, ASYNC_BROKEN) => part.is_unknown = true,
                    (None, note) if note < ASYNC_BROKEN => {
                        part.frames = Some(note & ASYNC_FRAMES);
                        part.is_unknown |= note & ASYNC_UNKNOWN != 0;
                    }
                    _ => callers.push(self.first_location + id),
                }
                continue;
            }
            part.uses_frame_pointer |= frame.flags & NODE_FRAME_POINTER != 0;
            let is_recorders = self.recorder.is_some() && frame.module == self.recorder;
            let place = match &mut part.frames {
                Some(0) => &mut part.executor,
                Some(left) => {
                    *left -= 1;
                    &mut part.locations
                }
                None => &mut part.locations,
            };
            if !is_recorders {
                place.push(self.first_location + id);
            }
        };
        // The last caller comes first.
        part.locations.extend(callers.into_iter().rev());
        root
    }
}

/// The frames of one stack of the segment.
#[derive(Default)]
struct Part {
    /// Those of the async function and what it called, then its callers; all of another stack.
    locations: Vec<LocationId>,
    executor: Vec<LocationId>,
    /// How many more frames are the async function's, if there is one.
    frames: Option<u64>,
    is_unknown: bool,
    uses_frame_pointer: bool,
    /// What created the task: the note, and its leaf.
    origin: Option<(LocationId, Link)>,
}
