//! The recorder in a forked child: an area of its own, and what can be kept of the parent's knowledge.
//!
//! Only the thread that forked lives on, and other threads may have held any lock then, the loader's list of objects
//! included. So nothing is asked of the loader here: the modules are taken from the parent's table, of which the child
//! has a copy. Tables, thread states and locks are made anew; the parent's stay behind, unused. Unwind rules are kept:
//! each is one word, and the same whoever computed it.
//!
//! What the child frees of its parent's blocks is freed from before. Windows that were open in the parent are not open
//! in the child: it starts in `process`, as a program does.
#![expect(unsafe_code, reason = "puts a new recorder in the place of the parent's")]

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{
    AreaHeader, FLAG_CHILD, FLAG_FORK_SAFE, FLAG_LOOPS_UNNAMED, FLAG_SMALL_TABLES, FileHeader, STATE_ATTACHED,
};
use heaptally_tally::{Life, Pages, Spin, Tally};

use crate::local::{QUIET, local};
use crate::patch::Plans;
use crate::recorder::{Late, OtherCode, Recorder, inherited, set};
use crate::resumer::Resumers;
use crate::start::{self, Area};
use crate::task_origin::Origins;
use crate::thread::FreeThreads;
use crate::{armed, environment};

/// Starts the recorder in a forked child. `None`: there is no area for it, or it cannot be mapped.
///
/// # Safety
/// The calling thread is the only one of a forked child whose parent recorded; it is outside of the recorder, and calls
/// this once.
pub(crate) unsafe fn attach(head: &'static FileHeader, pid: u32) -> Option<&'static Recorder> {
    // SAFETY: by the caller; it is not used once the child's own is set.
    let parent = unsafe { inherited() }?;
    let Area { map, plans, header, is_small } =
        start::take_area(head, environment::segment_path()?, pid, FLAG_CHILD)?;
    let options = start::options(head, parent.has_libc_malloc);
    let os = start::os();
    // SAFETY: the area was taken by an atomic counter, so it is this process's; its mappings stay.
    let tally = unsafe { Tally::new(&map, os, options) };
    let modules = parent.modules.inherit(Pages::new(map.modules, os), &parent.tally, &tally);
    describe(parent.tally.header(), &parent.tally, header, &tally);
    let own_plans = Plans::new(plans, os);
    let count = own_plans.inherit(&parent.plans, |number| parent.modules.inherited(number, &modules));
    header.plans.store(count, Ordering::Release);
    let count = own_plans.inherit_ranges(&parent.plans, |number| parent.modules.inherited(number, &modules));
    header.ranges.store(count, Ordering::Release);
    header.inherited_modules.store(header.modules.load(Ordering::Relaxed), Ordering::Relaxed);
    header.plan_limit.store(count, Ordering::Relaxed);
    if is_small {
        header.flags.fetch_or(FLAG_SMALL_TABLES, Ordering::Relaxed);
    }
    let resumers = Resumers::new();
    resumers.inherit(&parent.resumers, &tally);
    let origins = Origins::new();
    origins.inherit(&parent.origins);
    if origins.are_wanted() {
        tally.want_every_stack();
    }
    let recorder = Recorder {
        tally,
        cache: parent.cache,
        modules,
        plans: own_plans,
        resumers,
        origins,
        generation: AtomicU32::new(parent.generation.load(Ordering::Relaxed).wrapping_add(1)),
        coroutine_start: parent.coroutine_start,
        loader_start: parent.loader_start,
        other_code: OtherCode::new(),
        thread_end: parent.thread_end,
        free_threads: Spin::new(FreeThreads::new()),
        real_malloc: parent.real_malloc,
        has_libc_malloc: parent.has_libc_malloc,
        late: Spin::new(Late(ptr::null_mut())),
        #[cfg(feature = "oracle")]
        options: head.options,
        is_loader_watched: AtomicU32::new(parent.is_loader_watched.load(Ordering::Relaxed)),
    };
    let is_stale = crate::loader::has_changed_unseen();
    let local = local();
    // The parent thread's state is not this one's: its counters are the parent's.
    local.thread = ptr::null_mut();
    local.rounds = 0;
    local.lent = 0;
    (local.life, local.last_block, local.paused) = (Life::default(), 0, 0);
    let recorder = set(recorder);
    crate::patch::adopt(recorder);
    if armed::arm() {
        header.flags.fetch_or(FLAG_FORK_SAFE, Ordering::Relaxed);
    }
    header.state.store(STATE_ATTACHED, Ordering::Release);
    if is_stale {
        // The child itself loaded something before its first hook: the loader can be asked.
        let before = core::mem::replace(&mut local.busy, QUIET);
        recorder.update_modules(false);
        local.busy = before;
    }
    Some(recorder)
}

/// Writes what the report says of the image, from what the parent wrote.
fn describe(parent: &AreaHeader, parent_tally: &Tally, header: &AreaHeader, tally: &Tally) {
    let kept = parent.flags.load(Ordering::Acquire)
        & !(FLAG_CHILD | FLAG_FORK_SAFE | FLAG_LOOPS_UNNAMED | FLAG_SMALL_TABLES);
    header.flags.fetch_or(kept, Ordering::Relaxed);
    for (into, word) in header.libc_version_words.iter().zip(&parent.libc_version_words) {
        into.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let copy = |from: (&AtomicU32, &AtomicU32), into: (&AtomicU32, &AtomicU32)| {
        let mut text = [0; 1024];
        let (offset, len) = (from.0.load(Ordering::Relaxed), from.1.load(Ordering::Relaxed));
        let text = parent_tally.text(offset, len, &mut text);
        if let Some(offset) = tally.intern(text) {
            into.0.store(offset, Ordering::Relaxed);
            into.1.store(text.len() as u32, Ordering::Relaxed);
        }
    };
    copy((&parent.image_path, &parent.image_path_len), (&header.image_path, &header.image_path_len));
    copy(
        (&parent.allocator_path, &parent.allocator_path_len),
        (&header.allocator_path, &header.allocator_path_len),
    );
    copy((&parent.foreign_path, &parent.foreign_path_len), (&header.foreign_path, &header.foreign_path_len));
}
