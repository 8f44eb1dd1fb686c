//! A debug mode: each remembered walk is compared with a full walk, and with that of libgcc's unwinder.
//!
//! Both are slow, and libgcc's takes locks and a good part of the stack. Counts and the first difference stand in the
//! area's header.
#![expect(unsafe_code, reason = "calls libgcc's unwinder")]

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use heaptally_segment::layout::{FLAG_ORACLE, OPTION_ORACLE, OracleSkip};
use heaptally_tally::Spin;
use heaptally_unwind::{ADDRESS_MASK, End, Entry, FRAME_POINTER, FRAMES_MAX, FrameState, WalkMemory};

use crate::local::{QUIET, local};
use crate::recorder::{CodeView, Recorder};

type Trace = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Backtrace = unsafe extern "C" fn(Trace, *mut c_void) -> c_int;
type Get = unsafe extern "C" fn(*mut c_void) -> u64;

static BACKTRACE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static GET_IP: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static GET_CFA: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Place for one walk: leaf first.
struct Frames {
    addresses: [u64; FRAMES_MAX + 1],
    len: usize,
}

static FULL: Spin<Frames> = Spin::new(Frames { addresses: [0; FRAMES_MAX + 1], len: 0 });
static LIBGCC: Spin<Frames> = Spin::new(Frames { addresses: [0; FRAMES_MAX + 1], len: 0 });

/// Looks libgcc's unwinder up, if the mode is on. Called from the library's constructor.
pub(crate) fn start(recorder: &Recorder) {
    if recorder.options & OPTION_ORACLE == 0 {
        return;
    }
    recorder.tally.header().flags.fetch_or(FLAG_ORACLE, Ordering::Relaxed);
    let local = local();
    let before = core::mem::replace(&mut local.busy, QUIET);
    // SAFETY: loads a library of the compiler's, which stays.
    let handle = unsafe { libc::dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_LAZY) };
    if !handle.is_null() {
        // SAFETY: a look-up by a C string.
        let find = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
        GET_IP.store(find(c"_Unwind_GetIP"), Ordering::Relaxed);
        GET_CFA.store(find(c"_Unwind_GetCFA"), Ordering::Relaxed);
        BACKTRACE.store(find(c"_Unwind_Backtrace"), Ordering::Release);
    }
    local.busy = before;
}

/// Compares the walk that `memory` holds with the others.
#[cold]
#[inline(never)]
pub(crate) fn compare(
    recorder: &'static Recorder,
    code: &CodeView<'_>,
    memory: &mut WalkMemory,
    state: FrameState,
    end: End,
) {
    if recorder.options & OPTION_ORACLE == 0 {
        return;
    }
    let header = recorder.tally.header();
    let count = |counter: &AtomicU64| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    {
        let mut full = FULL.lock();
        let Frames { addresses, len } = &mut *full;
        // SAFETY: the state is that of the event whose walk is compared.
        let (walked, full_end) = unsafe { recorder.unwinder(code).walk_full(memory, state, addresses) };
        *len = walked;
        count(&header.oracle_full);
        if full_end != end || !is_equal(memory.entries(), &addresses[..walked], u64::MAX) {
            count(&header.oracle_full_differs);
            keep_first(recorder, memory.entries(), &addresses[..walked]);
        }
    }
    let skip = |reason: OracleSkip| count(&header.oracle_skips[reason as usize]);
    if BACKTRACE.load(Ordering::Acquire).is_null() {
        return skip(OracleSkip::NoUnwinder);
    }
    if end == End::CutDepth {
        return skip(OracleSkip::TooDeep);
    }
    if memory.entries().iter().any(|entry| entry.address & FRAME_POINTER != 0) {
        return skip(OracleSkip::FramePointer);
    }
    let Some(mut libgcc) = LIBGCC.try_lock() else { return skip(OracleSkip::Nested) };
    libgcc.len = 0;
    let mut walk = Libgcc { state, is_found: false, is_at_end: false, frames: &mut libgcc };
    // SAFETY: the address is that of libgcc's function of this type.
    let backtrace = unsafe { transmute::<*mut c_void, Backtrace>(BACKTRACE.load(Ordering::Acquire)) };
    // SAFETY: the callback has the right form, and `walk` outlives the call.
    unsafe { backtrace(trace, (&raw mut walk).cast()) };
    if !walk.is_found {
        return skip(OracleSkip::NotFound);
    }
    // Where both stop for want of information there is nothing to compare; but what libgcc knows to be an end is one.
    if end != End::Complete && !walk.is_at_end {
        return skip(OracleSkip::Cut);
    }
    count(&header.oracle_libgcc);
    let found = libgcc.addresses.get(..libgcc.len).unwrap_or(&[]);
    if end != End::Complete || !is_equal(memory.entries(), found, ADDRESS_MASK) {
        count(&header.oracle_libgcc_differs);
        keep_first(recorder, memory.entries(), found);
    }
}

struct Libgcc<'a> {
    state: FrameState,
    is_found: bool,
    /// libgcc's walk came to a return address that is undefined or 0: to the start.
    is_at_end: bool,
    frames: &'a mut Frames,
}

unsafe extern "C" fn trace(context: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the `Libgcc` that `compare` passed.
    let walk = unsafe { &mut *data.cast::<Libgcc<'_>>() };
    let get = |function: &AtomicPtr<c_void>| {
        // SAFETY: the address is that of libgcc's function of this type.
        let function = unsafe { transmute::<*mut c_void, Get>(function.load(Ordering::Relaxed)) };
        // SAFETY: libgcc passed the context.
        unsafe { function(context) }
    };
    let address = get(&GET_IP);
    walk.is_found |= address == walk.state.pc && get(&GET_CFA) == walk.state.sp;
    walk.is_at_end |= walk.is_found && address == 0;
    if walk.is_found && address != 0 {
        let len = walk.frames.len;
        if let Some(place) = walk.frames.addresses.get_mut(len) {
            *place = address;
            walk.frames.len += 1;
        }
    }
    0
}

/// Whether remembered frames (root first) are those of another walk (leaf first), in the bits of the mask.
fn is_equal(entries: &[Entry], others: &[u64], mask: u64) -> bool {
    entries.len() == others.len()
        && entries.iter().rev().zip(others).all(|(entry, other)| entry.address & mask == other & mask)
}

fn keep_first(recorder: &Recorder, entries: &[Entry], others: &[u64]) {
    let [ours, theirs] = &recorder.tally.header().oracle_first;
    if ours[0].load(Ordering::Relaxed) != 0 {
        return;
    }
    for (place, entry) in ours.iter().zip(entries.iter().rev()) {
        place.store(entry.address, Ordering::Relaxed);
    }
    for (place, other) in theirs.iter().zip(others) {
        place.store(*other, Ordering::Relaxed);
    }
}
