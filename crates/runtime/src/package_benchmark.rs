//! Swift's package-benchmark: which benchmark a process runs, and what its counters' own functions tell.
//!
//! The window of its measurements lies between two functions that the command finds and has patched, as any window at
//! functions does ([`patch`](crate::patch)). Here is what that does not know:
//!
//! ```text
//! Probe --input-fd 9 --output-fd 8 --quiet false      as its tool starts it: a process for each benchmark
//! 9 ◀── 8 bytes, little-endian: a length; JSON: {"run":{"benchmark":{"name": …}}}, or another request
//!
//! set_malloc_hook(f) … set_malloc_hook(NULL)          around all iterations: where nothing better is there, the window
//! malloc_interposer_enable() … _disable()             around all iterations
//! malloc_interposer_get_stats() … _get_stats()        around one: the window
//! ```
//!
//! The request is looked at before the program reads it, and left in its pipe. The recorder does not read JSON: it keeps the
//! bytes, and the command finds the name in them.
#![expect(unsafe_code, reason = "a buffer of mapped memory")]

use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{
    FLAG_REQUEST_UNSEEN, OPTION_BENCHMARK_NAMES, PACKAGE_BENCHMARK, PACKAGE_BENCHMARK_LOOP, REQUEST_LIMIT,
};

use crate::child;
use crate::harness::in_recorder;
use crate::local::{IDLE, QUIET, local};
use crate::recorder::Recorder;
use crate::sys::{self, Peek};

/// How long the tool may take to send its first request to a process that it has started. It sends it at once.
const REQUEST_SECONDS: usize = 10;
/// How much of a command line is looked at.
const COMMAND_BYTES: usize = 1 << 21;
/// The bytes of a request's length.
const LENGTH: usize = 8;

/// Not 0: the functions around a measurement are patched here, so the counters' functions have nothing to tell.
static EDGES: AtomicU32 = AtomicU32::new(0);
/// Not 0: the counters' functions are there.
static COUNTERS: AtomicU32 = AtomicU32::new(0);
/// Not 0: the window is open by what these functions told.
static OPEN: AtomicU32 = AtomicU32::new(0);
/// Not 0: so is the one around all iterations.
static LOOP: AtomicU32 = AtomicU32::new(0);

/// What one of the counters' functions was called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A hook is set: the iterations begin.
    Hooked,
    /// It is taken away: they end.
    Unhooked,
    /// Counting begins: so do the iterations.
    Enabled,
    /// It ends.
    Disabled,
    /// The counters are read: an iteration begins, or ends.
    Read,
}

/// Says that the program has the counters' functions.
pub fn set_counters_there() {
    COUNTERS.store(1, Ordering::Release);
}

/// The functions around a measurement are patched in this process.
pub(crate) fn set_edges_patched() {
    EDGES.store(1, Ordering::Release);
}

/// Tells what a function was called for.
pub fn tell(step: Step) {
    if EDGES.load(Ordering::Acquire) != 0 {
        return;
    }
    in_recorder(|recorder, _| take(recorder, step));
}

fn take(recorder: &Recorder, step: Step) {
    let begin = |place: &AtomicU32, name: &str| {
        if place.swap(1, Ordering::AcqRel) == 0 {
            recorder.look_around();
            recorder.tally.window_begin(name.as_bytes());
        }
    };
    let end = |place: &AtomicU32, name: &str| {
        if place.swap(0, Ordering::AcqRel) != 0 {
            recorder.tally.window_end(name.as_bytes());
        }
    };
    match step {
        Step::Hooked => begin(&OPEN, PACKAGE_BENCHMARK),
        Step::Unhooked => end(&OPEN, PACKAGE_BENCHMARK),
        Step::Enabled => begin(&LOOP, PACKAGE_BENCHMARK_LOOP),
        Step::Disabled => {
            end(&OPEN, PACKAGE_BENCHMARK);
            end(&LOOP, PACKAGE_BENCHMARK_LOOP);
        }
        Step::Read if LOOP.load(Ordering::Acquire) == 0 => {}
        Step::Read if OPEN.load(Ordering::Acquire) == 0 => begin(&OPEN, PACKAGE_BENCHMARK),
        Step::Read => end(&OPEN, PACKAGE_BENCHMARK),
    }
}

/// Whether this process was started by the tool, by its command line.
pub(crate) fn is_asked_by_tool() -> bool {
    with_command(|command| input_of(command).is_some()).unwrap_or(false)
}

/// Keeps the command line, in which the benchmarks to run may be chosen.
pub(crate) fn note_command(recorder: &Recorder) {
    if are_names_wanted() {
        with_command(|command| {
            let place = (&recorder.tally.header().command, &recorder.tally.header().command_len);
            keep(recorder, command, place);
        });
    }
}

/// Keeps the tool's first request, where one comes. Not inside of an allocation.
pub(crate) fn note_request(recorder: &Recorder) {
    if !are_names_wanted() {
        return;
    }
    let Some(Some(input)) = with_command(input_of) else { return };
    let header = recorder.tally.header();
    let is_kept = with_memory(REQUEST_LIMIT as usize, |buffer| match first_request(input, buffer) {
        Some(request) => {
            keep(recorder, request, (&header.request, &header.request_len));
            true
        }
        None => false,
    });
    if is_kept != Some(true) {
        header.flags.fetch_or(FLAG_REQUEST_UNSEEN, Ordering::Relaxed);
    }
}

/// Whether this program has benchmarks, as far as that is known, and the command wants their names.
fn are_names_wanted() -> bool {
    let is_known = EDGES.load(Ordering::Acquire) | COUNTERS.load(Ordering::Acquire) != 0;
    is_known && child::head().is_some_and(|head| head.options & OPTION_BENCHMARK_NAMES != 0)
}

/// Copies text to the segment, unless it is longer than what is read there.
fn keep(recorder: &Recorder, text: &[u8], (offset, len): (&AtomicU32, &AtomicU32)) {
    // A signal handler that interrupted the recorder may hold what a text is written under.
    if text.len() > REQUEST_LIMIT as usize || !matches!(local().busy, IDLE | QUIET) {
        return;
    }
    if let Some(at) = recorder.tally.intern(text) {
        offset.store(at, Ordering::Relaxed);
        len.store(text.len() as u32, Ordering::Relaxed);
    }
}

/// Waits for the first request in a pipe, and leaves it there; `None`: none came, or it is no whole one.
fn first_request(input: i32, buffer: &mut [u8]) -> Option<&[u8]> {
    const STEP: usize = 10;
    let pipe = sys::Pipe::new()?;
    let mut whole = None;
    for _ in 0..REQUEST_SECONDS * 1000 / STEP {
        match pipe.peek(input, buffer) {
            Peek::Over => return None,
            Peek::Empty => sys::wait_readable(input, STEP),
            Peek::Bytes(count) => {
                whole = request(buffer.get(..count).unwrap_or_default());
                if whole.is_some() || count == buffer.len() {
                    break;
                }
                // The rest of it comes.
                sys::wait_milliseconds(STEP);
            }
        }
    }
    buffer.get(whole?)
}

/// Where the first request of what lies in a pipe is; `None`: not all of it is there.
fn request(bytes: &[u8]) -> Option<core::ops::Range<usize>> {
    let len = usize::try_from(u64::from_le_bytes(*bytes.first_chunk::<LENGTH>()?)).ok()?;
    let end = LENGTH.checked_add(len)?;
    (end <= bytes.len()).then_some(LENGTH..end)
}

/// The descriptor from which a process reads the tool's requests; `None`: its command line has not both, that and one to answer.
fn input_of(command: &[u8]) -> Option<i32> {
    value_of(command, b"--output-fd")?;
    value_of(command, b"--input-fd")
}

/// The number behind an option, or behind it and `=`.
fn value_of(command: &[u8], option: &[u8]) -> Option<i32> {
    let mut words = command.split(|byte| *byte == 0).skip(1);
    let value = loop {
        match words.next()?.strip_prefix(option) {
            Some([]) => break words.next()?,
            Some([b'=', value @ ..]) => break value,
            _ => {}
        }
    };
    core::str::from_utf8(value).ok()?.parse().ok().filter(|number| *number >= 0)
}

/// Runs with this process's command line: its words, each ended by a NUL.
fn with_command<R>(run: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let file = sys::File::open(c"/proc/self/cmdline", false)?;
    with_memory(COMMAND_BYTES, |buffer| {
        let len = file.read(buffer);
        run(buffer.get(..len).unwrap_or_default())
    })
}

/// Runs with so many bytes of memory.
fn with_memory<R>(bytes: usize, run: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
    let memory = sys::map_private(bytes);
    if memory.is_null() {
        return None;
    }
    // SAFETY: the mapping is new, zeroed and this function's own.
    let result = run(unsafe { core::slice::from_raw_parts_mut(memory, bytes) });
    sys::unmap(memory, bytes);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_processes_are_known_by_both_descriptors() {
        assert_eq!(input_of(b"Probe\0--input-fd\09\0--output-fd\08\0--quiet\0false\0"), Some(9));
        assert_eq!(input_of(b"Probe\0--output-fd=8\0--input-fd=12\0"), Some(12));
        for other in [
            &b"Probe\0--input-fd\09\0"[..],
            b"Probe\0--output-fd\08\0",
            b"--input-fd\09\0--output-fd\08\0",
            b"Probe\0--input-fd\0-1\0--output-fd\08\0",
            b"Probe\0--input-fd\0x\0--output-fd\08\0",
            b"Probe\0--input-fd",
            b"",
        ] {
            assert_eq!(input_of(other), None);
        }
    }

    #[test]
    fn a_request_is_whole_or_not_there() {
        assert_eq!(request(b"\x02\0\0\0\0\0\0\0{}"), Some(8..10));
        assert_eq!(request(b"\x02\0\0\0\0\0\0\0{}\x05\0"), Some(8..10));
        assert_eq!(request(b"\x03\0\0\0\0\0\0\0{}"), None);
        assert_eq!(request(b"\xff\xff\xff\xff\xff\xff\xff\xff{}"), None);
        assert_eq!(request(b"\x02\0\0"), None);
    }

    fn write(to: &sys::Pipe, bytes: &[u8]) {
        // SAFETY: the bytes are readable.
        let written = unsafe { libc::write(to.ends().1, bytes.as_ptr().cast(), bytes.len()) };
        assert_eq!(written, bytes.len() as isize);
    }

    /// The length and the request come by two writes, and both stay for the program to read.
    #[test]
    fn what_was_looked_at_stays_in_the_pipe() {
        let pipe = sys::Pipe::new().unwrap();
        write(&pipe, b"\x0b\0\0\0\0\0\0\0");
        let mut buffer = [0; 256];
        let seen = std::thread::scope(|scope| {
            let reader = scope.spawn(|| first_request(pipe.ends().0, &mut buffer).map(<[u8]>::to_vec));
            sys::wait_milliseconds(30);
            write(&pipe, b"{\"list\":{}}{");
            reader.join().unwrap()
        });
        assert_eq!(seen.unwrap(), b"{\"list\":{}}");
        let mut left = [0; 64];
        // SAFETY: the buffer is writable.
        let count = unsafe { libc::read(pipe.ends().0, left.as_mut_ptr().cast(), left.len()) };
        assert_eq!(&left[..count as usize], b"\x0b\0\0\0\0\0\0\0{\"list\":{}}{");
        let file = sys::File::open(c"/dev/null", false).unwrap();
        assert_eq!(first_request(file.number(), &mut buffer), None);
    }
}
