//! The operating system: the one place for raw system calls. None of them touches `errno`.
#![expect(unsafe_code, reason = "system calls")]

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::AtomicU32;

use crate::x86_64::syscall::{
    CLOSE, FUTEX, GETEUID, GETPID, GETTID, IOCTL, MADVISE, MMAP, MPROTECT, MREMAP, MUNMAP, OPEN, OPENAT,
    PIPE2, POLL, PRCTL, PREAD64, PRLIMIT64, PROCESS_VM_READV, PROCESS_VM_WRITEV, READ, READLINK,
    RT_SIGPROCMASK, TEE, TGKILL, call,
};

pub(crate) const PAGE: usize = 4096;

const PROT_NONE: usize = 0;
const PROT_READ_WRITE: usize = 1 | 2;
const PROT_READ_EXEC: usize = 1 | 4;
const PROT_ALL: usize = 1 | 2 | 4;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MADV_DONTDUMP: usize = 16;
const MADV_WIPEONFORK: usize = 18;
const MADV_POPULATE_WRITE: usize = 23;
const ESRCH: isize = -3;
const EPERM: isize = -1;
const EACCES: isize = -13;
const EINVAL: isize = -22;
const ENOSYS: isize = -38;
const EINTR: isize = -4;
const EAGAIN: isize = -11;
const PR_GET_NAME: usize = 16;
const RLIMIT_AS: usize = 9;

fn is_error(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// Private, zeroed, writable memory; null when refused. Not in core dumps.
pub(crate) fn map_private(bytes: usize) -> *mut u8 {
    // SAFETY: a new mapping wherever the kernel likes touches nothing that exists.
    let result = unsafe {
        call(MMAP, [0, bytes, PROT_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, usize::MAX, 0])
    };
    if is_error(result) {
        return ptr::null_mut();
    }
    advise(result as *mut u8, bytes, MADV_DONTDUMP);
    result as *mut u8
}

/// A part of a file, shared, closed to all access at first; null when refused. Not in core dumps.
pub(crate) fn map_shared(file: i32, offset: u64, bytes: u64) -> *mut u8 {
    // SAFETY: as in `map_private`.
    let result = unsafe {
        call(MMAP, [0, bytes as usize, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file as usize, offset as usize])
    };
    if is_error(result) {
        return ptr::null_mut();
    }
    advise(result as *mut u8, bytes as usize, MADV_DONTDUMP);
    result as *mut u8
}

/// Another part of the file that a page of a shared mapping shows, without a descriptor of it; closed to all access as
/// that page has to be; null when refused.
///
/// A shared mapping of which nothing is moved is made a second time (`mremap` of length 0), and may be longer than the
/// first. A file is longer than the address space, so it is gone through in steps of which only the last page stays.
pub(crate) fn map_shared_again(page: *mut u8, at: u64, offset: u64, bytes: u64) -> *mut u8 {
    const MREMAP_MAYMOVE: usize = 1;
    const STEP: u64 = 1 << 44;
    let again = |page: *mut u8, bytes: u64| {
        // SAFETY: makes a new mapping where there is none; the old one stays.
        let result = unsafe { call(MREMAP, [page as usize, 0, bytes as usize, MREMAP_MAYMOVE, 0, 0]) };
        (!is_error(result)).then_some(result as *mut u8)
    };
    let (mut seed, mut at) = (page, at);
    let map = loop {
        let distance = (offset - at).min(STEP);
        let is_there = at + distance == offset;
        let length = distance + if is_there { bytes } else { PAGE as u64 };
        let map = again(seed, length);
        if seed != page {
            unmap(seed, PAGE);
        }
        let Some(map) = map else { return ptr::null_mut() };
        if distance > 0 {
            unmap(map, distance as usize);
        }
        // The address lies inside of the new mapping.
        let map = map.wrapping_add(distance as usize);
        if is_there {
            break map;
        }
        (seed, at) = (map, at + distance);
    };
    advise(map, bytes as usize, MADV_DONTDUMP);
    map
}

/// Gives a mapping back.
pub(crate) fn unmap(memory: *mut u8, bytes: usize) {
    // SAFETY: callers pass a mapping of their own that nothing refers to any more.
    unsafe { call(MUNMAP, [memory as usize, bytes, 0, 0, 0, 0]) };
}

/// Makes pages of a shared mapping writable and resident: afterwards a store there cannot fault.
///
/// A store into a shared page that the file cannot get would raise SIGBUS; these calls return an error instead.
pub(crate) fn open_pages(memory: *mut u8, bytes: usize) -> bool {
    // SAFETY: callers pass pages of a mapping of the recorder's own.
    let result = unsafe { call(MPROTECT, [memory as usize, bytes, PROT_READ_WRITE, 0, 0, 0]) };
    if is_error(result) {
        return false;
    }
    loop {
        match advise(memory, bytes, MADV_POPULATE_WRITE) {
            EINTR | EAGAIN => {}
            // A sandbox refuses advice that it does not know in its own way.
            EINVAL | EPERM | EACCES | ENOSYS => return populate_by_copy(memory, bytes),
            result => return !is_error(result),
        }
    }
}

/// What `MADV_POPULATE_WRITE` does, for kernels before 5.14: one byte of each page is copied onto itself by a system
/// call, which fails where a store would kill.
fn populate_by_copy(memory: *mut u8, bytes: usize) -> bool {
    let pid = pid() as usize;
    (0..bytes).step_by(PAGE).all(|offset| {
        let mut byte = 0_u8;
        let local = [&raw mut byte as usize, 1];
        let remote = [memory as usize + offset, 1];
        let args = [pid, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
        // SAFETY: reads one byte of the recorder's own page into a local, or fails.
        let read = unsafe { call(PROCESS_VM_READV, args) };
        // SAFETY: writes that byte back where it was; nobody else uses a page that is being opened.
        read == 1 && unsafe { call(PROCESS_VM_WRITEV, args) } == 1
    })
}

fn advise(memory: *mut u8, bytes: usize, advice: usize) -> isize {
    // SAFETY: the kinds of advice used here do not change what memory holds in this process.
    unsafe { call(MADVISE, [memory as usize, bytes, advice, 0, 0, 0]) }
}

/// Asks that a page reads as zero in forked children.
pub(crate) fn wipe_on_fork(page: *const u8) -> bool {
    advise(page.cast_mut(), PAGE, MADV_WIPEONFORK) == 0
}

/// Makes code writable, or executable only again. False: refused.
pub(crate) fn set_code_writable(from: usize, bytes: usize, writable: bool) -> bool {
    let protection = if writable { PROT_ALL } else { PROT_READ_EXEC };
    // SAFETY: the pages stay executable throughout, so code that runs there goes on.
    !is_error(unsafe { call(MPROTECT, [from, bytes, protection, 0, 0, 0]) })
}

/// An open file, closed when dropped. Never inherited by an exec.
#[derive(Debug)]
pub(crate) struct File(i32);

impl File {
    pub(crate) fn open(path: &CStr, writable: bool) -> Option<Self> {
        const O_CLOEXEC: usize = 0o2_000_000;
        let flags = O_CLOEXEC | if writable { 2 } else { 0 };
        // SAFETY: the path is a C string.
        let result = unsafe { call(OPEN, [path.as_ptr() as usize, flags, 0, 0, 0, 0]) };
        (!is_error(result)).then_some(Self(result as i32))
    }

    /// Opens a file to look what it is, by the call that the loader uses too: a pipe is not waited for.
    pub(crate) fn open_to_look(path: &CStr) -> Option<Self> {
        const AT_FDCWD: usize = -100_isize as usize;
        const FLAGS: usize = 0o2_000_000 | 0o4000 | 0o400;
        // SAFETY: the path is a C string.
        let result = unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, FLAGS, 0, 0, 0]) };
        (!is_error(result)).then_some(Self(result as i32))
    }

    /// Whether a file cannot be opened since it is not there or not allowed; not for want of a free descriptor.
    pub(crate) fn is_out_of_reach(path: &CStr, writable: bool) -> bool {
        const AT_FDCWD: usize = -100_isize as usize;
        const ENOENT: isize = -2;
        const ENOTDIR: isize = -20;
        let flags = 0o2_000_000 | if writable { 2 } else { 0 };
        // SAFETY: the path is a C string.
        let result = unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, flags, 0, 0, 0]) };
        if !is_error(result) {
            drop(Self(result as i32));
        }
        matches!(result, EPERM | EACCES | ENOENT | ENOTDIR)
    }

    pub(crate) fn number(&self) -> i32 {
        self.0
    }

    /// Reads from an offset as much as there is, or as fits; what is behind it stays as it was.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset.wrapping_add(filled as u64) as usize;
            // SAFETY: the kernel writes into the buffer's own bytes.
            let result =
                unsafe { call(PREAD64, [self.0 as usize, rest.as_mut_ptr() as usize, rest.len(), at, 0, 0]) };
            match result {
                EINTR => {}
                result if result <= 0 => break,
                result => filled += result as usize,
            }
        }
        filled
    }

    /// Reads as much as there is, or as fits.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            // SAFETY: the kernel writes into the buffer's own bytes.
            let result =
                unsafe { call(READ, [self.0 as usize, rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0]) };
            match result {
                EINTR => {}
                result if result <= 0 => break,
                result => filled += result as usize,
            }
        }
        filled
    }
}

/// What the kernel says of the mapping at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// There is one.
    Found {
        /// Its first address.
        start: u64,
        /// One past its last.
        end: u64,
        /// Whether what lies there can run.
        is_code: bool,
    },
    /// There is none.
    None,
    /// The kernel does not know the question.
    Unknown,
}

/// `struct procmap_query` of `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
struct MapQuery {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    /// Page size, offset, inode, device, sizes and addresses of name and build-id: not asked for.
    rest: [u64; 7],
}

impl File {
    /// Asks for the mapping at an address; this file is `/proc/self/maps`.
    pub(crate) fn query_map(&self, address: u64) -> Query {
        const PROCMAP_QUERY: usize = 0xc068_6611;
        const EXECUTABLE: u64 = 4;
        const ENOENT: isize = -2;
        let mut query = MapQuery { size: size_of::<MapQuery>() as u64, address, ..MapQuery::default() };
        // SAFETY: the kernel reads and writes as many bytes as the size says, or refuses.
        let result =
            unsafe { call(IOCTL, [self.0 as usize, PROCMAP_QUERY, &raw mut query as usize, 0, 0, 0]) };
        match result {
            0 => Query::Found {
                start: query.start,
                end: query.end,
                is_code: query.vma_flags & EXECUTABLE != 0,
            },
            ENOENT => Query::None,
            _ => Query::Unknown,
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { call(CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Reads a symbolic link: how many bytes it has.
pub(crate) fn read_link(path: &CStr, buffer: &mut [u8]) -> usize {
    // SAFETY: the path is a C string, and the kernel writes into the buffer's own bytes.
    let result = unsafe {
        call(READLINK, [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0])
    };
    usize::try_from(result).unwrap_or(0)
}

/// The user in whose name files are opened.
pub(crate) fn user() -> u32 {
    // SAFETY: has no arguments and no effect.
    unsafe { call(GETEUID, [0; 6]) as u32 }
}

pub(crate) fn pid() -> u32 {
    // SAFETY: has no arguments and no effect.
    unsafe { call(GETPID, [0; 6]) as u32 }
}

/// The calling thread's kernel id, and its name.
pub(crate) fn thread(name: &mut [u8; 16]) -> u32 {
    // SAFETY: the kernel writes up to 16 bytes to the buffer.
    unsafe { call(PRCTL, [PR_GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    // SAFETY: has no arguments and no effect.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// The calling thread's kernel id.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: has no arguments and no effect.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// Whether a thread of this process is no more: it will never run again.
pub(crate) fn is_gone(thread: u32) -> bool {
    // SAFETY: signal 0 is none: only whether the thread exists is looked up.
    unsafe { call(TGKILL, [pid() as usize, thread as usize, 0, 0, 0, 0]) == ESRCH }
}

/// The signal by which the C library cancels a thread that may be cancelled at any instruction. A program can neither
/// block nor handle it.
const SIGCANCEL: u32 = 32;

/// From here on the calling thread is not cancelled by a signal.
#[cold]
#[inline(never)]
pub(crate) fn hold_cancellation() {
    const SIG_BLOCK: usize = 0;
    mask_cancellation(SIG_BLOCK);
}

/// From here on it is, perhaps at once.
#[cold]
#[inline(never)]
pub(crate) fn release_cancellation() {
    const SIG_UNBLOCK: usize = 1;
    mask_cancellation(SIG_UNBLOCK);
}

fn mask_cancellation(how: usize) {
    let set = 1_u64 << (SIGCANCEL - 1);
    // SAFETY: the kernel reads 8 bytes, and writes none.
    unsafe { call(RT_SIGPROCMASK, [how, &raw const set as usize, 0, size_of::<u64>(), 0, 0]) };
}

const FUTEX_WAIT_PRIVATE: usize = 128;
const FUTEX_WAKE_PRIVATE: usize = 1 | 128;

/// Sleeps until the word is woken, unless it is not `value`. May return at any time.
pub(crate) fn wait_for(word: &AtomicU32, value: u32) {
    // SAFETY: the kernel reads the word.
    unsafe { call(FUTEX, [word.as_ptr() as usize, FUTEX_WAIT_PRIVATE, value as usize, 0, 0, 0]) };
}

/// Wakes one thread that sleeps on the word.
pub(crate) fn wake_one(word: &AtomicU32) {
    // SAFETY: the word's address is looked up only.
    unsafe { call(FUTEX, [word.as_ptr() as usize, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0]) };
}

const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;

/// Sleeps until a word that other processes know is woken, unless it is not `value`, for so long at the most. May return
/// at any time.
pub(crate) fn wait_shared(word: &AtomicU32, value: u32, milliseconds: u64) {
    let time = [milliseconds / 1000, milliseconds % 1000 * 1_000_000];
    // SAFETY: the kernel reads the word and the time.
    unsafe {
        call(FUTEX, [word.as_ptr() as usize, FUTEX_WAIT, value as usize, time.as_ptr() as usize, 0, 0])
    };
}

/// Wakes who sleeps on a word that other processes know.
pub(crate) fn wake_shared(word: &AtomicU32) {
    // SAFETY: the word's address is looked up only.
    unsafe { call(FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, i32::MAX as usize, 0, 0, 0]) };
}

/// Whether the calling thread is the only one of its process; false also where that cannot be read.
pub(crate) fn is_single_threaded() -> bool {
    const FIELD: &[u8] = b"\nThreads:\t";
    let Some(file) = File::open(c"/proc/self/status", false) else { return false };
    let mut text = [0; 2048];
    let len = file.read(&mut text);
    let text = text.get(..len).unwrap_or_default();
    let at = text.windows(FIELD.len()).position(|part| part == FIELD);
    at.and_then(|at| text.get(at + FIELD.len()..)).is_some_and(|rest| rest.starts_with(b"1\n"))
}

/// Private, zeroed, writable memory at an address at which nothing is. False: there is something.
pub(crate) fn map_exactly(at: usize, bytes: usize) -> bool {
    const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping that replaces nothing.
    let result = unsafe { call(MMAP, [at, bytes, PROT_READ_WRITE, flags, usize::MAX, 0]) };
    if is_error(result) {
        return false;
    }
    // A kernel before 4.17 takes the address as a wish.
    if result as usize != at {
        unmap(result as *mut u8, bytes);
    }
    result as usize == at
}

/// The limit of the address space in bytes, if there is one.
pub(crate) fn address_space_limit() -> Option<u64> {
    let mut limit = [u64::MAX; 2];
    // SAFETY: the kernel writes two words to the buffer.
    unsafe { call(PRLIMIT64, [0, RLIMIT_AS, 0, limit.as_mut_ptr() as usize, 0, 0]) };
    (limit[0] != u64::MAX).then_some(limit[0])
}

/// A pipe of the recorder's own, into which another one's contents can be copied without taking them out. Never inherited by an
/// exec.
#[derive(Debug)]
pub(crate) struct Pipe {
    end: File,
    start: File,
}

/// What a look into a pipe showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peek {
    /// So many bytes lie in it; as many of them as fit were copied.
    Bytes(usize),
    /// Nothing, and somebody may write.
    Empty,
    /// Nothing, and nothing will come; or it is no pipe.
    Over,
}

impl Pipe {
    pub(crate) fn new() -> Option<Self> {
        const FLAGS: usize = 0o2_000_000 | 0o4000;
        let mut ends = [0_i32; 2];
        // SAFETY: the kernel writes two numbers.
        let result = unsafe { call(PIPE2, [ends.as_mut_ptr() as usize, FLAGS, 0, 0, 0, 0]) };
        (!is_error(result)).then_some(Self { end: File(ends[0]), start: File(ends[1]) })
    }

    /// The descriptors that it is read from and written to.
    #[cfg(test)]
    pub(crate) fn ends(&self) -> (i32, i32) {
        (self.end.number(), self.start.number())
    }

    /// Looks what lies in the pipe of that number.
    pub(crate) fn peek(&self, of: i32, buffer: &mut [u8]) -> Peek {
        const SPLICE_F_NONBLOCK: usize = 2;
        let start = self.start.number() as usize;
        // SAFETY: copies from one pipe to the other, which is this value's own.
        let result = unsafe { call(TEE, [of as usize, start, buffer.len(), SPLICE_F_NONBLOCK, 0, 0]) };
        match result {
            EAGAIN | EINTR => Peek::Empty,
            result if result <= 0 => Peek::Over,
            _ => Peek::Bytes(self.end.read(buffer)),
        }
    }
}

/// Waits until there is something to read from a descriptor, or nothing will be; for so long at the most.
pub(crate) fn wait_readable(number: i32, milliseconds: usize) {
    const POLLIN: u64 = 1;
    // `struct pollfd`: the descriptor, what is waited for, what came.
    let mut waited = u64::from(number as u32) | POLLIN << 32;
    // SAFETY: the kernel reads and writes the eight bytes.
    unsafe { call(POLL, [(&raw mut waited) as usize, 1, milliseconds, 0, 0, 0]) };
}

/// Waits.
pub(crate) fn wait_milliseconds(milliseconds: usize) {
    // SAFETY: no descriptor is given.
    unsafe { call(POLL, [0, 0, milliseconds, 0, 0, 0]) };
}
