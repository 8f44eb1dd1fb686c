//! Child processes: counted and named while they are not recorded, and recorded where that was asked for.
//!
//! A child is seen where it begins: by a fork handler; where the kernel wiped the armed word, by its first hook (raw
//! `clone`); by the hooks of the functions that start programs. What is seen is one more of a program's name in the
//! segment's table, and one less when it records after all or could not be started.
#![expect(unsafe_code, reason = "the file's head lies in the segment")]

use core::ffi::{CStr, c_char};
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use heaptally_segment::layout::{
    CHILD_NAME_BYTES, CHILD_NAME_TAKEN, CHILD_NAME_WRITTEN, CHILDREN_OFFSET, ChildName, Children, FileHeader,
    OPTION_FOLLOW_BENCHMARKS, OPTION_FOLLOW_CHILDREN,
};

use crate::local::{CANCELLABLE, IDLE, local};
use crate::recorder::{Recorder, recorder};
use crate::{armed, environment, fork, sys};

/// The file's first pages, mapped and open; null: there is no segment.
static HEAD: AtomicPtr<FileHeader> = AtomicPtr::new(core::ptr::null_mut());
/// The process that this memory belongs to: the one that started the recorder, or a forked child that was noticed.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The entry of this image's own program, plus one; 0: not known.
static OWN_NAME: AtomicU32 = AtomicU32::new(0);
/// Whether this process is counted under that.
static IS_COUNTED: AtomicU32 = AtomicU32::new(0);

/// A place in the table: an entry's number plus one, or 0 for children without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

/// What the calling process is to the recorder.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Process {
    /// It has nothing to do with it.
    Foreign,
    /// It is recorded.
    Recorded(&'static Recorder),
    /// It is a child that is not recorded, in memory of its own.
    Forked,
    /// It is a child in its parent's memory (vfork).
    Borrowing,
}

/// The table of children, and with it the file's options; `None`: there is no segment.
pub(crate) fn head() -> Option<&'static FileHeader> {
    let head = HEAD.load(Ordering::Acquire);
    // SAFETY: `set_head` was given pages that stay mapped and open; all that changes in them is atomic.
    (!head.is_null()).then(|| unsafe { &*head })
}

/// Remembers the file's first pages. To be called before the recorder is armed.
pub(crate) fn set_head(head: &'static FileHeader) {
    OWNER.store(sys::pid(), Ordering::Release);
    HEAD.store(core::ptr::from_ref(head).cast_mut(), Ordering::Release);
}

/// Remembers which program this image is.
pub(crate) fn set_own_program(path: &[u8]) {
    if let Some(Place(number)) = place_of(path) {
        OWN_NAME.store(number, Ordering::Release);
    }
}

/// Whether programs that are started as children get the recorder.
pub(crate) fn is_followed() -> bool {
    const FOLLOW: u32 = OPTION_FOLLOW_CHILDREN | OPTION_FOLLOW_BENCHMARKS;
    head().is_some_and(|head| head.options & FOLLOW != 0)
}

/// Whether forked children are to be recorded.
fn are_forks_followed() -> bool {
    head().is_some_and(|head| head.options & OPTION_FOLLOW_CHILDREN != 0)
}

/// This image is a child that only hands the recorder on to those that it starts. It stays counted at its place.
pub(crate) fn hand_on(place: Place) {
    OWN_NAME.store(place.0, Ordering::Release);
    IS_COUNTED.store(1, Ordering::Relaxed);
}

fn table() -> Option<&'static Children> {
    let head = head()?;
    // SAFETY: the table lies behind the first page, in the same mapping.
    Some(unsafe { &*core::ptr::from_ref(head).byte_add(CHILDREN_OFFSET as usize).cast::<Children>() })
}

/// One more child that runs the program of that path.
pub(crate) fn add(path: &[u8]) -> Place {
    let place = place_of(path).unwrap_or(Place(0));
    change(place, 1);
    place
}

/// One less: it is recorded after all, or was not started.
pub(crate) fn remove(place: Place) {
    change(place, u64::MAX);
}

/// Adds, with a wrap, to the count of a place.
fn change(place: Place, amount: u64) {
    let Some(table) = table() else { return };
    let entry = place.0.checked_sub(1).and_then(|number| table.names.get(number as usize));
    entry.map_or(&table.unnamed, |entry| &entry.count).fetch_add(amount, Ordering::Relaxed);
}

/// The place of a program, by the end of its path; `None`: the table is full.
fn place_of(path: &[u8]) -> Option<Place> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let name = name.get(..CHILD_NAME_BYTES).unwrap_or(name);
    let mut words = [0_u64; CHILD_NAME_BYTES / 8];
    for (at, byte) in name.iter().enumerate() {
        words[at / 8] |= u64::from(*byte) << (at % 8 * 8);
    }
    for (number, entry) in (1..).zip(&table()?.names) {
        let taken =
            entry.state.compare_exchange(0, CHILD_NAME_TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if taken {
            write(entry, name.len() as u32, words);
        }
        // NOTE: an entry that another process is writing is passed by, never waited for: its writer may be dead.
        if taken || is(entry, name.len() as u32, words) {
            return Some(Place(number));
        }
    }
    None
}

fn write(entry: &ChildName, len: u32, words: [u64; CHILD_NAME_BYTES / 8]) {
    for (into, word) in entry.words.iter().zip(words) {
        into.store(word, Ordering::Relaxed);
    }
    entry.len.store(len, Ordering::Relaxed);
    entry.state.store(CHILD_NAME_WRITTEN, Ordering::Release);
}

fn is(entry: &ChildName, len: u32, words: [u64; CHILD_NAME_BYTES / 8]) -> bool {
    entry.state.load(Ordering::Acquire) == CHILD_NAME_WRITTEN
        && entry.len.load(Ordering::Relaxed) == len
        && entry.words.iter().zip(words).all(|(known, word)| known.load(Ordering::Relaxed) == word)
}

/// In the child of a `fork`, before `fork` returns there.
///
/// The forking thread is the only one: what another one held, it holds for good, and is not waited for.
pub(crate) extern "C" fn after_fork() {
    if head().is_none() {
        return;
    }
    armed::disarm();
    notice(sys::pid());
    if are_forks_followed() {
        armed::defer();
    } else if armed::claim() {
        count_self();
    }
}

/// This process is a forked child, with memory of its own.
fn notice(pid: u32) {
    OWNER.store(pid, Ordering::Release);
    IS_COUNTED.store(0, Ordering::Relaxed);
    environment::after_fork();
}

/// This process is a child that is not recorded.
fn count_self() {
    change(Place(OWN_NAME.load(Ordering::Acquire)), 1);
    IS_COUNTED.store(1, Ordering::Relaxed);
}

/// It goes on to another program, or records.
fn uncount_self() {
    if IS_COUNTED.swap(0, Ordering::Relaxed) != 0 {
        remove(Place(OWN_NAME.load(Ordering::Acquire)));
    }
}

/// A hook found the recorder off. Where this is a child that nobody has noticed, it is noticed; where it is to be
/// recorded, it is from here on.
#[cold]
#[inline(never)]
pub(crate) fn decide() -> Option<&'static Recorder> {
    head()?;
    // A handler that forked inside the recorder returns to it: not now.
    if !matches!(local().busy, IDLE | CANCELLABLE) {
        return None;
    }
    if !armed::is_pending() {
        let pid = sys::pid();
        if OWNER.load(Ordering::Acquire) == pid {
            // The recorder is just starting here.
            return None;
        }
        notice(pid);
    }
    if !armed::claim() {
        return None;
    }
    if are_forks_followed() {
        // SAFETY: this is a forked child, whose one thread is outside of the recorder and has claimed the start.
        if let Some(recorder) = unsafe { fork::attach(head()?, OWNER.load(Ordering::Acquire)) } {
            return Some(recorder);
        }
    }
    count_self();
    None
}

/// What the calling process is.
pub(crate) fn process() -> Process {
    if head().is_none() {
        return Process::Foreign;
    }
    let pid = sys::pid();
    if let Some(recorder) = recorder() {
        let is_own = recorder.tally.header().pid.load(Ordering::Relaxed) == pid;
        return if is_own { Process::Recorded(recorder) } else { Process::Borrowing };
    }
    if armed::is_undecided() && !armed::is_pending() {
        if OWNER.load(Ordering::Acquire) == pid {
            return Process::Foreign;
        }
        // A child by raw clone that starts a program before it allocates.
        notice(pid);
        if are_forks_followed() {
            armed::defer();
        } else if armed::claim() {
            count_self();
        }
    }
    if OWNER.load(Ordering::Acquire) == pid { Process::Forked } else { Process::Borrowing }
}

/// One more child of that program, started by this process; `None`: this process has nothing to do with the recorder.
///
/// # Safety
/// `program` is null or a C string.
pub(crate) unsafe fn begin(program: *const c_char) -> Option<Place> {
    if matches!(process(), Process::Foreign) {
        return None;
    }
    // SAFETY: by the caller.
    Some(add(unsafe { path_bytes(program) }))
}

/// This process, a forked child, goes on to another program: it counts as that one. [`stay`] undoes it.
///
/// # Safety
/// `program` is null or a C string.
pub(crate) unsafe fn leave(program: *const c_char) -> (Place, bool) {
    let was_counted = IS_COUNTED.load(Ordering::Relaxed) != 0;
    uncount_self();
    // SAFETY: by the caller.
    (add(unsafe { path_bytes(program) }), was_counted)
}

/// It did not go on.
pub(crate) fn stay((place, was_counted): (Place, bool)) {
    remove(place);
    if was_counted {
        count_self();
    }
}

/// # Safety
/// The pointer is null or a C string that outlives the result.
pub(crate) unsafe fn path_bytes<'a>(path: *const c_char) -> &'a [u8] {
    if path.is_null() {
        return b"";
    }
    // SAFETY: by the caller.
    let path = unsafe { CStr::from_ptr(path) };
    // SAFETY: the length is the string's own.
    unsafe { slice::from_raw_parts(path.as_ptr().cast(), path.count_bytes()) }
}
