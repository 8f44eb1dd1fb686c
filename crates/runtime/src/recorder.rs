//! The recorder of this process: all tables and caches, made once.
#![expect(unsafe_code, reason = "a static that is written once, before it is armed")]

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use heaptally_tally::{Spin, Tally};
use heaptally_unwind::{CodeMap, ModuleSections, RuleCache, Unwinder};

use crate::armed;
use crate::memory_map;
use crate::module_table::ModuleTable;
use crate::patch::{self, Plans};
use crate::resumer::{self, Resumers};
use crate::task_origin::Origins;
use crate::thread::{FreeThreads, ThreadEnd, ThreadState};

/// Everything that recording needs.
pub(crate) struct Recorder {
    pub(crate) tally: Tally,
    pub(crate) cache: &'static RuleCache,
    pub(crate) modules: ModuleTable,
    /// What is to be done at functions' entries.
    pub(crate) plans: Plans,
    pub(crate) resumers: Resumers,
    pub(crate) origins: Origins,
    /// Raised when code goes away: what is remembered of older generations is not used.
    pub(crate) generation: AtomicU32,
    /// Where `makecontext` lets a coroutine's first function return to; 0: not learnt.
    pub(crate) coroutine_start: u64,
    /// Where the loader's own start begins, which calls the constructors of libraries; 0: unknown.
    pub(crate) loader_start: u64,
    pub(crate) other_code: OtherCode,
    pub(crate) thread_end: Option<ThreadEnd>,
    pub(crate) free_threads: Spin<FreeThreads>,
    /// The `malloc` behind the recorder's.
    pub(crate) real_malloc: u64,
    /// Whether that is the C library's.
    pub(crate) has_libc_malloc: bool,
    /// What threads record with that have given back their own; null until it is needed.
    pub(crate) late: Spin<Late>,
    /// `OPTION_*` bits of the file's header.
    #[cfg(feature = "oracle")]
    pub(crate) options: u32,
    /// Whether loads and unloads are seen through the loader's own hook.
    pub(crate) is_loader_watched: AtomicU32,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("tally", &self.tally).finish_non_exhaustive()
    }
}

/// The state that all ended threads share.
#[derive(Debug)]
pub(crate) struct Late(pub(crate) *mut ThreadState);

// SAFETY: whoever holds the lock around it uses the state alone.
unsafe impl Send for Late {}

struct Place(UnsafeCell<MaybeUninit<Recorder>>);

// SAFETY: written once by `set`, before the armed word tells others to look.
unsafe impl Sync for Place {}

static RECORDER: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));

/// The recorder, if this process records.
#[inline(always)]
pub(crate) fn recorder() -> Option<&'static Recorder> {
    // SAFETY: the armed word is set, with release order, after the recorder was written, and it is not written again in this process.
    armed::is_armed().then(|| unsafe { (*RECORDER.0.get()).assume_init_ref() })
}

/// Whether a recorder was ever put in its place, in this process or one that it was forked from.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// In a forked child: its copy of its parent's recorder, if that recorded.
///
/// # Safety
/// The caller is the only thread of a forked child, and does not use the result after [`set`].
pub(crate) unsafe fn inherited() -> Option<&'static Recorder> {
    // SAFETY: it was written; by the caller nobody writes it while the result is used.
    IS_SET.load(Ordering::Acquire).then(|| unsafe { (*RECORDER.0.get()).assume_init_ref() })
}

/// Puts the recorder in its place. To be called once in a process, before arming.
pub(crate) fn set(recorder: Recorder) -> &'static Recorder {
    // SAFETY: nobody looks before the armed word is set, and only one thread starts the recorder.
    let recorder = unsafe { (*RECORDER.0.get()).write(recorder) };
    IS_SET.store(true, Ordering::Release);
    recorder
}

impl Recorder {
    /// Code came or went. `is_new`: no thread can be in what came.
    pub(crate) fn update_modules(&self, is_new: bool) {
        let changes = self.modules.update(&self.tally);
        if changes.unloaded > 0 {
            self.generation.fetch_add(1, Ordering::AcqRel);
            self.cache.flush(0, u64::MAX);
            self.tally.forget_stacks();
            crate::operator_new::forget_searched();
            patch::forget(self);
        }
        self.other_code.forget();
        if changes.loaded > 0 {
            resumer::look(self);
            patch::ask(self, is_new);
        }
    }

    /// What is to be known of libraries beside where their code lies. Not inside of an allocation.
    pub(crate) fn look_around(&self) {
        if self.is_loader_watched.load(Ordering::Relaxed) == 0 && self.modules.is_stale() {
            self.update_modules(false);
        }
        self.modules.note_bypasses();
    }

    /// A walker for one event.
    #[inline]
    pub(crate) fn unwinder<'a>(&'a self, code: &'a CodeView<'a>) -> Unwinder<'a, CodeView<'a>> {
        Unwinder {
            cache: self.cache,
            map: code,
            generation: self.generation.load(Ordering::Acquire),
            live_generation: &self.generation,
            #[cfg(feature = "oracle")]
            mutation: (self.options >> heaptally_segment::layout::OPTION_MUTATION_SHIFT) as u8,
        }
    }
}

/// The walker's view of code and stacks, for one thread's event.
#[derive(Debug)]
pub(crate) struct CodeView<'a> {
    pub(crate) recorder: &'a Recorder,
    /// The thread's own state, which the walk does not use otherwise.
    pub(crate) thread: *mut ThreadState,
}

impl CodeMap for CodeView<'_> {
    fn find(&self, pc: u64) -> Option<ModuleSections> {
        let modules = &self.recorder.modules;
        modules.find(pc).or_else(|| {
            let is_watched = self.recorder.is_loader_watched.load(Ordering::Relaxed) != 0;
            if is_watched { None } else { modules.find_unwatched(pc, &self.recorder.tally) }
        })
    }

    fn is_other_code(&self, pc: u64) -> bool {
        // SAFETY: the state is the calling thread's, and nobody holds a reference to these fields during a walk.
        let buffer = unsafe { &mut (*self.thread).buffer };
        self.recorder.other_code.holds(pc, buffer)
    }

    fn stack_bounds(&self, sp: u64) -> Option<(u64, u64)> {
        // SAFETY: as above.
        let (known, buffer) = unsafe { (&mut (*self.thread).stack, &mut (*self.thread).buffer) };
        // The main thread's stack grows down: an address below the known bounds is looked up again.
        if !(known.0 <= sp && sp < known.1) {
            let mapping = memory_map::find(sp, buffer)?;
            *known = (mapping.start, mapping.end);
        }
        Some(*known)
    }

    fn moved(&self, pc: u64) -> Option<(u64, u64)> {
        patch::moved(self.recorder, pc)
    }

    fn is_coroutine_start(&self, pc: u64) -> bool {
        let start = self.recorder.loader_start;
        let is_in_loader = start != 0 && (start..start + LOADER_START_BYTES).contains(&pc);
        is_in_loader || (self.recorder.coroutine_start != 0 && pc == self.recorder.coroutine_start)
    }
}

/// How long the loader's start is at the most: a few dozen instructions of assembly.
const LOADER_START_BYTES: u64 = 128;

const RANGES: usize = 64;
const MISSES: usize = 256;

/// Code outside of loaded objects (made at run time), as far as it was asked for.
#[derive(Debug)]
pub(crate) struct OtherCode {
    /// Start and end of ranges known to be code; an end of 0: unused.
    ranges: [(AtomicU64, AtomicU64); RANGES],
    next: AtomicU32,
    /// Pages known not to be code, by the low bits of their number.
    misses: [AtomicU64; MISSES],
}

impl OtherCode {
    pub(crate) const fn new() -> Self {
        Self {
            ranges: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; RANGES],
            next: AtomicU32::new(0),
            misses: [const { AtomicU64::new(0) }; MISSES],
        }
    }

    fn holds(&self, pc: u64, buffer: &mut [u8; memory_map::BUFFER_BYTES]) -> bool {
        let page = pc >> 12;
        // No code is mapped in the first page, nor in the kernel's half.
        if page == 0 || page >> 35 != 0 {
            return false;
        }
        if self
            .ranges
            .iter()
            .any(|(start, end)| start.load(Ordering::Relaxed) <= pc && pc < end.load(Ordering::Acquire))
        {
            return true;
        }
        let miss = &self.misses[page as usize % MISSES];
        if miss.load(Ordering::Relaxed) == page {
            return false;
        }
        match memory_map::find(pc, buffer) {
            Some(mapping) if mapping.is_code => {
                let (start, end) = &self.ranges[self.next.fetch_add(1, Ordering::Relaxed) as usize % RANGES];
                end.store(0, Ordering::Release);
                start.store(mapping.start, Ordering::Relaxed);
                end.store(mapping.end, Ordering::Release);
                true
            }
            _ => {
                miss.store(page, Ordering::Relaxed);
                false
            }
        }
    }

    fn forget(&self) {
        for (_, end) in &self.ranges {
            end.store(0, Ordering::Release);
        }
        for miss in &self.misses {
            miss.store(0, Ordering::Relaxed);
        }
    }
}
