//! Benchmarks that CodSpeed's library brackets, as windows: what its functions, patched, tell.
//!
//! ```text
//! instrument_hooks_start_benchmark(hooks)                     a benchmark begins: set-up and warm-up are over
//! instrument_hooks_stop_benchmark(hooks)                      it ends
//! instrument_hooks_set_executed_benchmark(hooks, pid, uri)    the one that ended is called so
//! ```
//!
//! So a window has its name when it is over. Until then, and where none comes, it is [`UNNAMED`].
#![expect(unsafe_code, reason = "reads the harness's text")]

use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{ACTION_BRACKET_BEGIN, ACTION_BRACKET_END, ACTION_BRACKET_NAME};

use crate::recorder::Recorder;

/// The window of what is not named.
const UNNAMED: &[u8] = b"codspeed";
/// A name's most bytes; a longer one is cut, and ends with [`CUT`].
const NAME_BYTES: usize = 1024;
const CUT: &[u8] = "…".as_bytes();

/// By which number the one that ended last can be named; 0: not.
static ENDED: AtomicU32 = AtomicU32::new(0);

/// What a function tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A benchmark begins.
    Begin,
    /// It ends.
    End,
    /// It is named.
    Name,
}

impl Step {
    /// The step that an action of a patched entry is.
    pub(crate) fn of_action(kind: u32) -> Option<Self> {
        Some(match kind {
            ACTION_BRACKET_BEGIN => Self::Begin,
            ACTION_BRACKET_END => Self::End,
            ACTION_BRACKET_NAME => Self::Name,
            _ => return None,
        })
    }

    /// Tells what a patched function was called for. The thread is in the recorder.
    ///
    /// # Safety
    /// It is this step's function, and `third` is its third argument, where it has one.
    pub(crate) unsafe fn take(self, recorder: &'static Recorder, third: usize) {
        let tally = &recorder.tally;
        match self {
            Self::Begin => {
                // One before that was left without an end is over, and will not be named.
                tally.unnamed_end(UNNAMED);
                ENDED.store(0, Ordering::Relaxed);
                tally.window_begin(UNNAMED);
            }
            Self::End => {
                let ended = tally.unnamed_end(UNNAMED);
                if ended != 0 {
                    ENDED.store(ended, Ordering::Relaxed);
                }
            }
            Self::Name if third != 0 => {
                let mut name = [0; NAME_BYTES];
                // SAFETY: by the caller it is a C string.
                let name = unsafe { copy(third as *const u8, &mut name) };
                if !name.is_empty() {
                    tally.name_ended(ENDED.load(Ordering::Relaxed), name);
                }
            }
            Self::Name => {}
        }
    }
}

/// A C string, as much of it as fits.
///
/// # Safety
/// `text` is the address of one.
unsafe fn copy(text: *const u8, into: &mut [u8; NAME_BYTES]) -> &[u8] {
    for at in 0..NAME_BYTES {
        // SAFETY: there was no end before this byte.
        match unsafe { text.add(at).read() } {
            0 => return into.get(..at).unwrap_or_default(),
            byte => into[at] = byte,
        }
    }
    // SAFETY: as above.
    if unsafe { text.add(NAME_BYTES).read() } != 0 {
        let end = into.iter_mut().rev().zip(CUT.iter().rev());
        end.for_each(|(place, byte)| *place = *byte);
    }
    into
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_copied_and_cut_visibly() {
        let name = |text: &[u8]| {
            let mut bytes = [0; NAME_BYTES];
            let text = std::ffi::CString::new(text).unwrap();
            // SAFETY: it is one.
            unsafe { copy(text.as_ptr().cast(), &mut bytes) }.to_vec()
        };
        assert_eq!(name(b""), b"");
        assert_eq!(name(b"a.rs::b"), b"a.rs::b");
        assert_eq!(name(&[b'a'; NAME_BYTES]), [b'a'; NAME_BYTES]);
        let cut = name(&[b'a'; NAME_BYTES + 1]);
        assert_eq!((cut.len(), &cut[NAME_BYTES - 4..]), (NAME_BYTES, "a…".as_bytes()));
    }
}
