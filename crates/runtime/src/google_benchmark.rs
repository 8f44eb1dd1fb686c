//! Google Benchmark's loops as windows: what its own functions tell, interposed or patched.
//!
//! ```text
//! BenchmarkName::str()            names the benchmark that runs next: the runner logs it before each run, whatever is logged
//! State::StartKeepRunning(this)   the loop begins: set-up is over
//! State::PauseTiming, Resume…     called by the benchmark, and from inside of Start and Finish
//! State::FinishKeepRunning(this)  it ends: tear-down is to come
//! State::SkipWithError, …Message  the benchmark is given up; the loop may be left without Finish
//! ```
//!
//! All is told before the function itself runs: then what Start and Finish do themselves finds the window not paused, or closed.
//! A `State` begins with three integers of 64 bits, which the loop in every benchmark's code uses: those that are left, those
//! that the last batch did too many, those to be done. Its name and its number of threads are looked at only where
//! `BenchmarkName::str` was not seen.
#![expect(unsafe_code, reason = "reads the harness's objects")]

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use heaptally_segment::layout::{
    ACTION_LOOP_BEGIN, ACTION_LOOP_END, ACTION_LOOP_NAME, ACTION_LOOP_PAUSE, ACTION_LOOP_RESUME,
    ACTION_LOOP_SKIP, FLAG_LOOPS_UNNAMED,
};
use heaptally_tally::LoopScope;

use crate::elf;
use crate::harness::in_recorder;
use crate::local::Local;
use crate::object::ask_objects;
use crate::recorder::Recorder;

/// What a function of the harness tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Which benchmark runs next.
    Name,
    /// Its loop begins.
    Begin,
    /// It ends.
    End,
    /// It is paused.
    Pause,
    /// It goes on.
    Resume,
    /// The benchmark is given up.
    Skip,
}

/// A name's most bytes.
const NAME_BYTES: usize = 1024;
/// What longer ones end with.
const CUT: &[u8] = "…".as_bytes();
/// The window of a benchmark whose name is not to be had.
const UNNAMED: &[u8] = b"google-benchmark";
/// A `BenchmarkName` is strings side by side, this many since 1.7 and one less before.
const NAME_PARTS: usize = 8;

/// The name that was told last.
static NAME: [AtomicU8; NAME_BYTES] = [const { AtomicU8::new(0) }; NAME_BYTES];
/// How many bytes it has; 0: none was told.
static NAME_LEN: AtomicUsize = AtomicUsize::new(0);
/// How often one was told.
static NAMED: AtomicU32 = AtomicU32::new(0);
/// A bit for each step that comes by interposed functions: behind those the patched ones are run, which are not to tell it again.
static INTERPOSED: AtomicU32 = AtomicU32::new(0);

impl Step {
    /// The step that an action of a patched entry is.
    pub(crate) fn of_action(kind: u32) -> Option<Self> {
        Some(match kind {
            ACTION_LOOP_NAME => Self::Name,
            ACTION_LOOP_BEGIN => Self::Begin,
            ACTION_LOOP_END => Self::End,
            ACTION_LOOP_PAUSE => Self::Pause,
            ACTION_LOOP_RESUME => Self::Resume,
            ACTION_LOOP_SKIP => Self::Skip,
            _ => return None,
        })
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Tells what a patched function was called for. The thread is in the recorder.
    ///
    /// # Safety
    /// It is this step's function, and `first` and `second` are its arguments.
    pub(crate) unsafe fn take_patched(
        self,
        recorder: &'static Recorder,
        local: &mut Local,
        first: usize,
        second: usize,
    ) {
        if INTERPOSED.load(Ordering::Relaxed) & self.bit() != 0 {
            return;
        }
        if self == Self::Name {
            let mut name = Text::new();
            // SAFETY: behind the place for the result the argument is a `BenchmarkName`.
            unsafe { name.join(second) };
            set_name(recorder, local, &name);
        } else {
            // SAFETY: by the caller the first argument is a `State`.
            unsafe { self.take(recorder, local, first) };
        }
    }

    /// # Safety
    /// `state` is the address of a `State`.
    unsafe fn take(self, recorder: &'static Recorder, local: &mut Local, state: usize) {
        let run = NAMED.load(Ordering::Relaxed);
        let Some(thread) = recorder.thread(local) else { return recorder.tally.lose_window() };
        // SAFETY: by the caller.
        let (name, scope) = unsafe { current(recorder, state) };
        let name = name.bytes();
        // SAFETY: the three are its first members.
        let [left, more, all] = unsafe { (state as *const [i64; 3]).read() };
        let tally = &recorder.tally;
        match self {
            Self::Name => {}
            Self::Begin => {
                if core::mem::take(&mut thread.given_up) != (state, run) {
                    tally.loop_begin(thread.tally(), scope, name);
                }
            }
            // A loop by iterators never changes how many are left.
            Self::End => {
                tally.loop_end(thread.tally(), scope, name, u64::try_from(all.saturating_add(more)).ok());
            }
            Self::Pause | Self::Resume => {
                tally.loop_pause(thread.tally(), scope, name, self == Self::Pause);
            }
            Self::Skip => {
                let done = all.saturating_sub(left).saturating_add(more);
                let done = u64::try_from(done).ok().filter(|done| *done > 0);
                // Without names one run is not told from the next.
                if !tally.loop_end(thread.tally(), scope, name, done) && run != 0 {
                    thread.given_up = (state, run);
                }
            }
        }
    }
}

/// An interposed function is going to run.
///
/// # Safety
/// It is this step's function; `state` is the address of its `State`, and of no account for [`Step::Name`].
pub unsafe fn tell(step: Step, state: usize) {
    INTERPOSED.fetch_or(step.bit(), Ordering::Relaxed);
    if step != Step::Name {
        in_recorder(|recorder, local| {
            if step == Step::Begin {
                recorder.look_around();
            }
            // SAFETY: by the caller.
            unsafe { step.take(recorder, local, state) };
        });
    }
}

/// `BenchmarkName::str` has returned a string.
///
/// # Safety
/// `text` is the address of a string of libstdc++ (with the C++11 ABI).
pub unsafe fn tell_name(text: usize) {
    in_recorder(|recorder, local| {
        let mut name = Text::new();
        // SAFETY: by the caller.
        if let Some(text) = unsafe { string(text) } {
            name.add(text);
        }
        set_name(recorder, local, &name);
    });
}

/// The function of that name that a call from `near` means, where the loader's look-up knows none: the calling object brings the
/// harness along, and is not in the global scope. 0: there is none.
#[cold]
pub fn definition(name: &CStr, near: u64) -> usize {
    let define = |only_near: bool| {
        ask_objects(|object| match object.is_own() || (only_near && !object.holds(near)) {
            true => None,
            false => elf::definition(object.bias, object.dynamic, name),
        })
    };
    define(true).or_else(|| define(false)).unwrap_or(0) as usize
}

/// The name of the benchmark that runs next. A loop of the one before that is still open was left by a `break`.
fn set_name(recorder: &'static Recorder, local: &mut Local, name: &Text) {
    let name = name.bytes();
    let mut before = Text::new();
    before.load();
    if !before.bytes().is_empty()
        && let Some(thread) = recorder.thread(local)
    {
        let scope = scope_of_name(before.bytes());
        recorder.tally.loop_end(thread.tally(), scope, before.bytes(), None);
    }
    for (place, byte) in NAME.iter().zip(name) {
        place.store(*byte, Ordering::Relaxed);
    }
    NAME_LEN.store(name.len(), Ordering::Release);
    NAMED.fetch_add(1, Ordering::Relaxed);
}

/// The window of a state's loop.
///
/// # Safety
/// `state` is the address of a `State`.
unsafe fn current(recorder: &'static Recorder, state: usize) -> (Text, LoopScope) {
    let mut name = Text::new();
    name.load();
    if !name.bytes().is_empty() {
        let scope = scope_of_name(name.bytes());
        return (name, scope);
    }
    recorder.tally.header().flags.fetch_or(FLAG_LOOPS_UNNAMED, Ordering::Relaxed);
    /// Where the members are that are read here: the name since 1.8, without arguments, the thread's number, and behind it how
    /// many there are.
    const STATE_NAME: usize = 112;
    const THREAD: usize = 144;
    const THREAD_WITHOUT_NAME: usize = 112;
    const MOST_THREADS: u32 = 1 << 16;
    // SAFETY: the object is longer than that in every version.
    let text = unsafe { string(state + STATE_NAME) };
    let thread = if text.is_some() { THREAD } else { THREAD_WITHOUT_NAME };
    name.add(text.unwrap_or(UNNAMED));
    // SAFETY: as above.
    let [thread, threads] = unsafe { ((state + thread) as *const [u32; 2]).read() };
    let is_on_several = thread < threads && (2..=MOST_THREADS).contains(&threads);
    (name, if is_on_several { LoopScope::Thread } else { LoopScope::Process })
}

/// A benchmark on several threads says so at the end of its name, `/threads:N`.
fn scope_of_name(name: &[u8]) -> LoopScope {
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match last.strip_prefix(b"threads:") {
        Some(count) if count != b"1" && count.iter().all(u8::is_ascii_digit) => LoopScope::Thread,
        _ => LoopScope::Process,
    }
}

/// The bytes of a string of libstdc++, if it is one: address, length, and its own bytes or its capacity.
///
/// # Safety
/// The 32 bytes at `place` can be read; if they are a string, so can its bytes.
unsafe fn string<'a>(place: usize) -> Option<&'a [u8]> {
    /// Strings up to this length lie in the object.
    const OWN: usize = 15;
    const LONGEST: usize = 1 << 20;
    // SAFETY: by the caller.
    let [data, len, capacity] = unsafe { (place as *const [usize; 3]).read_unaligned() };
    let is_own = data == place + 16 && len <= OWN;
    let is_elsewhere =
        data != place + 16 && data > OWN && capacity > OWN && capacity <= LONGEST && len <= capacity;
    // SAFETY: by the caller, since it is a string.
    (is_own || is_elsewhere).then(|| unsafe { core::slice::from_raw_parts(data as *const u8, len) })
}

/// A name while it is put together.
struct Text {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

impl Text {
    fn new() -> Self {
        Self { bytes: [0; NAME_BYTES], len: 0 }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn add(&mut self, text: &[u8]) {
        for byte in text {
            match self.bytes.get_mut(self.len) {
                Some(place) => *place = *byte,
                None => {
                    let end = self.bytes.iter_mut().rev().zip(CUT.iter().rev());
                    end.for_each(|(place, byte)| *place = *byte);
                    return;
                }
            }
            self.len += 1;
        }
    }

    /// The name that was told last.
    fn load(&mut self) {
        self.len = NAME_LEN.load(Ordering::Acquire).min(NAME_BYTES);
        for (place, byte) in self.bytes.iter_mut().zip(&NAME).take(self.len) {
            *place = byte.load(Ordering::Relaxed);
        }
    }

    /// The parts of a `BenchmarkName`, as its `str` joins them.
    ///
    /// # Safety
    /// `name` is the address of a `BenchmarkName`. Behind one with a part less there are as many more bytes.
    unsafe fn join(&mut self, name: usize) {
        for part in 0..NAME_PARTS {
            // SAFETY: by the caller.
            let Some(text) = (unsafe { string(name + part * 32) }) else { return };
            if self.len > 0 && !text.is_empty() {
                self.add(b"/");
            }
            self.add(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Parts([[usize; 4]; NAME_PARTS]);

    fn put(parts: &mut Parts, part: usize, text: &'static str) {
        let place = (&raw const parts.0[part]) as usize;
        let words = &mut parts.0[part];
        *words = if text.len() < 16 {
            let mut own = [0; 16];
            own[..text.len()].copy_from_slice(text.as_bytes());
            let word = |at: usize| usize::from_ne_bytes(own[at..at + 8].try_into().unwrap());
            [place + 16, text.len(), word(0), word(8)]
        } else {
            [text.as_ptr() as usize, text.len(), text.len(), 0]
        };
    }

    fn joined(parts: &Parts) -> String {
        let mut text = Text::new();
        // SAFETY: it is laid out like one.
        unsafe { text.join((&raw const *parts) as usize) };
        String::from_utf8(text.bytes().to_vec()).unwrap()
    }

    #[test]
    fn names_are_joined_as_the_harness_does() {
        let mut parts = Parts([[0; 4]; NAME_PARTS]);
        for part in 0..NAME_PARTS {
            put(&mut parts, part, "");
        }
        put(&mut parts, 0, "BM_a_name_of_more_than_fifteen<int>");
        put(&mut parts, 1, "8/64");
        put(&mut parts, 7, "threads:2");
        assert_eq!(joined(&parts), "BM_a_name_of_more_than_fifteen<int>/8/64/threads:2");
        // Before 1.7 there are seven, and something else behind them.
        put(&mut parts, 6, "threads:2");
        parts.0[7] = [0x7fff_0000, 3, 0, 5];
        assert_eq!(joined(&parts), "BM_a_name_of_more_than_fifteen<int>/8/64/threads:2");
        parts.0[7] = [0x7fff_0000, 3, 2, 5];
        assert_eq!(joined(&parts), "BM_a_name_of_more_than_fifteen<int>/8/64/threads:2");
    }

    #[test]
    fn long_names_are_cut_visibly() {
        let mut text = Text::new();
        text.add(&[b'a'; NAME_BYTES]);
        assert_eq!(text.bytes(), [b'a'; NAME_BYTES]);
        text.add(b"b");
        assert_eq!((text.len, &text.bytes()[NAME_BYTES - 4..]), (NAME_BYTES, "a…".as_bytes()));
    }

    #[test]
    fn benchmarks_on_several_threads_are_known_by_their_names() {
        for (name, scope) in [
            ("BM", LoopScope::Process),
            ("BM/threads:1", LoopScope::Process),
            ("BM/8/threads:2", LoopScope::Thread),
            ("BM/real_time/threads:16", LoopScope::Thread),
            ("BM/threads:all", LoopScope::Process),
            ("BM/threads:2/8", LoopScope::Process),
        ] {
            assert_eq!(scope_of_name(name.as_bytes()), scope, "{name}");
        }
    }
}
