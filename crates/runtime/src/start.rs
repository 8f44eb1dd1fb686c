//! The recorder's start in a process: finds the segment, takes an area, lays the tables over it.
#![expect(unsafe_code, reason = "maps the segment")]

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use heaptally_segment::layout::{
    AREA_BYTES, ATTEMPTS, AreaHeader, COUNTERS, DIRECTORIES, FIRST_AREA, FLAG_CHILD, FLAG_FORK_SAFE,
    FLAG_LIBC_ALLOCATOR, FLAG_LOADER_WATCHED, FLAG_MALLOC_IS_OURS, FLAG_NEW_IS_ALLOCATOR,
    FLAG_NEW_IS_RUNTIME, FLAG_SMALL_TABLES, FileHeader, HEADER, MAGIC, MODULES, NAMES_BYTES, NODES,
    OPTION_FOLLOW_BENCHMARKS, OPTION_NAMED_WINDOWS, OPTION_NO_LIFETIMES, OPTION_TASK_ORIGINS, PAGE, PLANS,
    RANGES, ROWS, Region, STATE_ATTACHED, STATE_ATTACHING, STRINGS, THREADS, TOTALS, VERSION, WINDOWS,
};
use heaptally_tally::{AreaMap, Options, Os, Pages, Spin, TableMap, Tally};
use heaptally_unwind::RuleCache;

use crate::environment::Segment;
use crate::module_table::ModuleTable;
pub use crate::object::{Scope, is_defined};
use crate::operator_new::Definer;
use crate::patch::Plans;
use crate::recorder::{Late, OtherCode, Recorder, recorder, set};
use crate::resumer::{self, Resumers};
use crate::task_origin::Origins;
use crate::thread::{FreeThreads, ThreadEnd, end_thread};
use crate::{
    armed, async_chain, child, environment, loader, namespace, object, package_benchmark, patch, sys,
};

/// Nobody has tried yet.
const UNTRIED: u32 = 0;
/// A thread is starting the recorder.
const STARTING: u32 = 1;
/// The recorder was started, or there is nothing to record into.
const DONE: u32 = 2;

static WAITING: heaptally_tally::Waiting =
    heaptally_tally::Waiting { wait: sys::wait_for, wake: sys::wake_one };

/// The file's first page, mapped and closed to all access: a child that cannot open the file any more (it changed its
/// user, or its root folder) finds the file by it. Null: there is none.
static FIRST_PAGE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

static STAGE: AtomicU32 = AtomicU32::new(UNTRIED);

/// The functions behind the recorder's own, as far as the start has to know them.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The `malloc` behind the recorder's.
    pub next_malloc: usize,
    /// The `operator new` behind the recorder's; 0: none is loaded.
    pub next_new: usize,
    /// Allocations that were served before the real functions were known.
    pub early_allocations: u64,
}

/// Starts the recorder, if that was not tried. Whoever comes meanwhile goes on without it.
///
/// Only to be called when this library has been relocated.
pub fn start(surroundings: impl FnOnce() -> Surroundings) {
    if STAGE.compare_exchange(UNTRIED, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    if let Some(segment) = environment::segment() {
        attach(segment, &surroundings());
    }
    // Without a recorder there is nothing to decide at any hook.
    armed::claim();
    STAGE.store(DONE, Ordering::Release);
}

/// Whether the start is over, with or without a recorder.
#[inline]
pub fn is_started() -> bool {
    STAGE.load(Ordering::Acquire) == DONE
}

/// What has to wait for the program's own start-up: called once, from the library's constructor.
pub fn settle() {
    environment::restore();
    let Some(recorder) = recorder() else { return };
    if namespace::prepare().is_some_and(loader::watch) {
        recorder.is_loader_watched.store(1, Ordering::Release);
        recorder.tally.header().flags.fetch_or(FLAG_LOADER_WATCHED, Ordering::Release);
    }
    #[cfg(feature = "oracle")]
    crate::oracle::start(recorder);
    if let Some(place) = look_up(c"__curbrk") {
        async_chain::set_heap_end(place.cast());
    }
    // What was loaded between the first hook and here.
    recorder.update_modules(false);
    package_benchmark::note_request(recorder);
}

fn attach(segment: Segment, surroundings: &Surroundings) {
    let Some(head) = map_head(segment.path) else { return };
    child::set_head(head);
    let mut path = [0; 1024];
    let text = object::ask_objects(|program| Some(program.sections.text_start)).unwrap_or(0);
    let len = object::program_path(text, &mut path);
    let path = &path[..len];
    child::set_own_program(path);
    if let Some(place) = segment.place
        && head.options & OPTION_FOLLOW_BENCHMARKS != 0
        && !package_benchmark::is_asked_by_tool()
    {
        return child::hand_on(place);
    }
    let flag = if segment.place.is_some() { FLAG_CHILD } else { 0 };
    let Some(Area { map, plans, header, is_small }) = take_area(head, segment.path, sys::pid(), flag) else {
        return;
    };
    // It was counted as a child that is not recorded when it was started.
    if let Some(place) = segment.place {
        child::remove(place);
    }
    if is_small {
        header.flags.fetch_or(FLAG_SMALL_TABLES, Ordering::Relaxed);
    }
    heaptally_tally::set_waiting(&WAITING);
    let cache = sys::map_private(RuleCache::BYTES);
    if cache.is_null() {
        head.refused.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the memory is new, zeroed, large enough and stays.
    let cache = unsafe { RuleCache::from_memory(cache) };
    let has_libc_malloc = object::is_in_libc(surroundings.next_malloc as u64);
    let options = options(head, has_libc_malloc);
    let os = os();
    // SAFETY: the area was taken by an atomic counter, so it is ours; its mappings stay.
    let tally = unsafe { Tally::new(&map, os, options) };
    let recorder = set(Recorder {
        tally,
        cache,
        modules: ModuleTable::new(Pages::new(map.modules, os)),
        plans: Plans::new(plans, os),
        resumers: Resumers::new(),
        origins: Origins::new(),
        generation: AtomicU32::new(1),
        coroutine_start: coroutine_start(),
        loader_start: loader_start(),
        other_code: OtherCode::new(),
        thread_end: thread_end(),
        free_threads: Spin::new(FreeThreads::new()),
        real_malloc: surroundings.next_malloc as u64,
        has_libc_malloc,
        late: Spin::new(Late(core::ptr::null_mut())),
        #[cfg(feature = "oracle")]
        options: head.options,
        is_loader_watched: AtomicU32::new(0),
    });
    recorder.modules.update(&recorder.tally);
    if head.options & OPTION_TASK_ORIGINS != 0 {
        recorder.tally.want_every_stack();
        recorder.origins.turn_on();
    }
    resumer::look(recorder);
    describe(recorder, header, surroundings, path);
    watch_forks();
    if armed::arm() {
        header.flags.fetch_or(FLAG_FORK_SAFE, Ordering::Relaxed);
    }
    header.state.store(STATE_ATTACHED, Ordering::Release);
    patch::ask(recorder, false);
    package_benchmark::note_command(recorder);
}

/// Maps and opens the file's first pages; `None`: it is not there, or it is not such a file.
fn map_head(path: &CStr) -> Option<&'static FileHeader> {
    let file = sys::File::open(path, true)?;
    let first = sys::map_shared(file.number(), 0, FIRST_AREA);
    if first.is_null() || !sys::open_pages(first, FIRST_AREA as usize) {
        return None;
    }
    // Closed, for a second mapping that is made of it is closed as it is.
    let page = sys::map_shared(file.number(), 0, PAGE);
    if !page.is_null() {
        FIRST_PAGE.store(page, Ordering::Release);
    }
    // SAFETY: the pages are mapped for good; the command wrote them before the program started.
    let head: &'static FileHeader = unsafe { &*first.cast::<FileHeader>() };
    let is_known = head.magic == MAGIC && head.version == VERSION && head.area_bytes == AREA_BYTES;
    is_known.then_some(head)
}

/// An area that this process has taken.
pub(crate) struct Area {
    pub(crate) map: AreaMap,
    /// The tables of plans and of ranges.
    pub(crate) plans: [TableMap; 2],
    pub(crate) header: &'static AreaHeader,
    /// Whether the tables are smaller than the layout's.
    pub(crate) is_small: bool,
}

/// Takes the file's next area and maps it; `None`: there is none, or it cannot be mapped, which is counted.
pub(crate) fn take_area(head: &FileHeader, path: &CStr, pid: u32, flags: u32) -> Option<Area> {
    let file = sys::File::open(path, true);
    let ordinal = head.areas_taken.fetch_add(1, Ordering::AcqRel);
    if ordinal >= head.area_limit {
        return None;
    }
    let area = FIRST_AREA + u64::from(ordinal) * AREA_BYTES;
    let map = map_area(|offset, bytes| match &file {
        Some(file) => sys::map_shared(file.number(), area + offset, bytes),
        None => match FIRST_PAGE.load(Ordering::Acquire) {
            page if page.is_null() => page,
            page => sys::map_shared_again(page, 0, area + offset, bytes),
        },
    });
    let Some((map, plans, is_small)) = map else {
        head.refused.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    // SAFETY: `map_area` opened the header's page.
    let header = unsafe { &*map.header.base.cast::<AreaHeader>() };
    header.pid.store(pid, Ordering::Relaxed);
    header.ordinal.store(ordinal, Ordering::Relaxed);
    header.flags.store(flags, Ordering::Relaxed);
    header.state.store(STATE_ATTACHING, Ordering::Release);
    Some(Area { map, plans, header, is_small })
}

/// What the tables keep, as the command asked for it.
pub(crate) fn options(head: &'static FileHeader, has_libc_malloc: bool) -> Options {
    let names = head.names.get(..head.names_len as usize).unwrap_or(&head.names[..NAMES_BYTES]);
    Options {
        lifetimes: head.options & OPTION_NO_LIFETIMES == 0,
        only: (head.options & OPTION_NAMED_WINDOWS != 0).then_some(names),
        restartable: first_names(names, head.restartable),
        spacing: if has_libc_malloc { 4 } else { 3 },
    }
}

/// So many of the names, from the first on.
fn first_names(names: &[u8], count: u32) -> &[u8] {
    let ends = names.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at + 1);
    let end = (count as usize).checked_sub(1).and_then(|last| ends.into_iter().nth(last));
    names.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The operating system, for the tables.
pub(crate) fn os() -> Os {
    Os { map: sys::map_private, open: sys::open_pages, thread: sys::thread }
}

/// Maps each of an area's tables, smaller ones where the address space is limited. `map` maps bytes from an offset of the
/// area on, or returns null.
fn map_area(map: impl Fn(u64, u64) -> *mut u8) -> Option<(AreaMap, [TableMap; 2], bool)> {
    // With a limit the program needs the room itself: the tables together take a sixteenth of it.
    let limit = sys::address_space_limit();
    let table = |region: Region| {
        let share = limit.map_or(region.bytes, |limit| {
            let scaled = u128::from(region.bytes) * u128::from(limit / 16) / u128::from(AREA_BYTES);
            // NOTE: no clamp, whose least must not be above its most: a header is smaller than 16 pages.
            (scaled as u64).next_multiple_of(PAGE).max(16 * PAGE).min(region.bytes)
        });
        // A table is at least one page; a mapping as large as the layout may be refused for other reasons.
        let mut bytes = share.min(region.bytes);
        loop {
            let base = map(region.offset, bytes);
            if !base.is_null() {
                return Some(TableMap { base, bytes });
            }
            bytes = (bytes / 4).next_multiple_of(PAGE);
            if bytes <= PAGE {
                return None;
            }
        }
    };
    let map = AreaMap {
        header: table(HEADER)?,
        windows: table(WINDOWS)?,
        rows: table(ROWS)?,
        nodes: table(NODES)?,
        modules: table(MODULES)?,
        strings: table(STRINGS)?,
        threads: table(THREADS)?,
        totals: table(TOTALS)?,
        directories: table(DIRECTORIES)?,
        counters: table(COUNTERS)?,
        attempts: table(ATTEMPTS)?,
    };
    let plans = [table(PLANS)?, table(RANGES)?];
    sys::open_pages(map.header.base, PAGE as usize).then_some((map, plans, limit.is_some()))
}

/// Writes what the report says of the image.
fn describe(recorder: &Recorder, header: &AreaHeader, surroundings: &Surroundings, image_path: &[u8]) {
    let mut flags = 0;
    let reached = object::first_definition(c"malloc");
    if object::is_own(reached) {
        flags |= FLAG_MALLOC_IS_OURS;
    } else if let Some((offset, len)) = recorder.modules.path_of(reached) {
        header.foreign_path.store(offset, Ordering::Relaxed);
        header.foreign_path_len.store(len, Ordering::Relaxed);
    }
    if recorder.has_libc_malloc {
        flags |= FLAG_LIBC_ALLOCATOR;
    }
    if let Some((offset, len)) = recorder.modules.path_of(surroundings.next_malloc as u64) {
        header.allocator_path.store(offset, Ordering::Relaxed);
        header.allocator_path_len.store(len, Ordering::Relaxed);
    }
    if surroundings.next_new != 0 {
        flags |= match recorder.definer_of_new(surroundings.next_new) {
            Definer::Runtime => FLAG_NEW_IS_RUNTIME,
            Definer::Allocator => FLAG_NEW_IS_ALLOCATOR,
            Definer::Library => 0,
        };
    }
    header.bootstrap_allocations.store(surroundings.early_allocations, Ordering::Relaxed);
    if let Some(offset) = recorder.tally.intern(image_path) {
        header.image_path.store(offset, Ordering::Relaxed);
        header.image_path_len.store(image_path.len() as u32, Ordering::Relaxed);
    }
    // SAFETY: the function has no arguments and returns a constant string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_bytes();
    for (at, byte) in version.iter().take(header.libc_version_words.len() * 4).enumerate() {
        let word = &header.libc_version_words[at / 4];
        word.store(word.load(Ordering::Relaxed) | (u32::from(*byte) << (at % 4 * 8)), Ordering::Relaxed);
    }
    header.flags.fetch_or(flags, Ordering::Release);
}

/// The C library's functions for a destructor per thread; absent in old programs that are not linked to threads.
fn thread_end() -> Option<ThreadEnd> {
    type Create = unsafe extern "C" fn(*mut u32, Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
    type Set = unsafe extern "C" fn(u32, *const c_void) -> i32;
    let create = look_up(c"pthread_key_create")?;
    let set = look_up(c"pthread_setspecific")?;
    // SAFETY: the C library's function of that name has this type.
    let create = unsafe { core::mem::transmute::<*mut c_void, Create>(create) };
    let mut key = 0;
    // SAFETY: writes the key, and keeps the address of a function that stays.
    if unsafe { create(&raw mut key, Some(end_thread)) } != 0 {
        return None;
    }
    // SAFETY: as above.
    Some(ThreadEnd { key, set: unsafe { core::mem::transmute::<*mut c_void, Set>(set) } })
}

fn look_up(name: &CStr) -> Option<*mut c_void> {
    if !is_defined(name, Scope::Elsewhere) {
        return None;
    }
    // SAFETY: a look-up by a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast::<c_char>()) };
    (!found.is_null()).then_some(found)
}

/// Where `makecontext` lets a coroutine's first function return to: learnt from a context that is never run.
fn coroutine_start() -> u64 {
    type Get = unsafe extern "C" fn(*mut libc::ucontext_t) -> i32;
    type Make = unsafe extern "C" fn(*mut libc::ucontext_t, extern "C" fn(), i32, ...);
    extern "C" fn never() {}
    let (Some(get), Some(make)) = (look_up(c"getcontext"), look_up(c"makecontext")) else { return 0 };
    // SAFETY: the C library's function of that name has this type.
    let get = unsafe { core::mem::transmute::<*mut c_void, Get>(get) };
    // SAFETY: the same.
    let make = unsafe { core::mem::transmute::<*mut c_void, Make>(make) };
    let bytes = 4 * sys::PAGE;
    let stack = sys::map_private(bytes);
    if stack.is_null() {
        return 0;
    }
    let mut context = MaybeUninit::<libc::ucontext_t>::zeroed();
    let context = context.as_mut_ptr();
    // SAFETY: the context is a valid place, its stack is ours, and nobody switches to it.
    let start = unsafe {
        get(context);
        (*context).uc_stack.ss_sp = stack.cast();
        (*context).uc_stack.ss_size = bytes;
        (*context).uc_link = core::ptr::null_mut();
        make(context, never, 0);
        let sp = (*context).uc_mcontext.gregs[libc::REG_RSP as usize] as u64;
        let range = stack as u64..stack as u64 + bytes as u64;
        if range.contains(&sp) { (sp as *const u64).read() } else { 0 }
    };
    sys::unmap(stack, bytes);
    start
}

/// Where the loader begins: the code there calls the constructors of libraries, and has no unwind information.
fn loader_start() -> u64 {
    /// `e_entry` in an ELF header.
    const ENTRY: usize = 24;
    let base = object::loader_base();
    if base == 0 {
        return 0;
    }
    // SAFETY: the loader is mapped there, its ELF header first.
    base + unsafe { ((base as usize + ENTRY) as *const u64).read_unaligned() }
}

/// Has forked children noticed before they go on.
///
/// Those of `fork` only, and of what calls it inside the C library; the others are noticed at their first hook.
fn watch_forks() {
    type AtFork = unsafe extern "C" fn(
        Option<extern "C" fn()>,
        Option<extern "C" fn()>,
        Option<extern "C" fn()>,
        *const c_void,
    ) -> i32;
    if let Some(register) = look_up(c"__register_atfork").or_else(|| look_up(c"pthread_atfork")) {
        // SAFETY: the C library's function of the former name takes these four, of the latter the first three. The last
        // says whose handler it is: nobody's who goes away.
        let register = unsafe { core::mem::transmute::<*mut c_void, AtFork>(register) };
        // SAFETY: the handler stays.
        unsafe { register(None, None, Some(child::after_fork), (&raw const STAGE).cast()) };
    }
}

/// The bytes of a C string.
///
/// # Safety
/// The pointer is null or points to a C string that outlives the result.
pub(crate) unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    // SAFETY: the length is the string's own.
    Some(unsafe { slice::from_raw_parts(text.as_ptr().cast(), text.count_bytes()) })
}
