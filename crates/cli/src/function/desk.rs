//! Answers recorders that ask which entries to patch, while the program runs.
#![expect(unsafe_code, reason = "waits at words in the segment")]

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use heaptally_segment::layout::{FileHeader, PAGE};
use heaptally_segment::read::{answer, requests, see};
use memmap2::{MmapMut, MmapOptions};
use rustix::thread::futex;

use super::finder::Finder;
use crate::process;

/// A word of the segment, which another process changes.
struct Word {
    map: MmapMut,
    offset: usize,
}

impl Word {
    /// The word at an offset in the file.
    fn at(file: &File, offset: u64) -> io::Result<Self> {
        let page = offset & !(PAGE - 1);
        // SAFETY: only atomic words of the mapping are used.
        let map = unsafe { MmapOptions::new().offset(page).len(PAGE as usize).map_mut(file) }?;
        Ok(Self { map, offset: (offset - page) as usize })
    }

    fn get(&self) -> &AtomicU32 {
        // SAFETY: a word that is aligned and lies inside of the page; all sides use it as an atomic.
        unsafe { &*self.map.as_ptr().add(self.offset & !3).cast::<AtomicU32>() }
    }

    fn wake(&self) {
        // Nobody may wait there.
        let _woken = futex::wake(self.get(), futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// The thread that answers.
#[derive(Debug)]
pub(crate) struct Desk {
    thread: JoinHandle<Finder>,
    file: File,
    is_over: Arc<AtomicBool>,
}

impl Desk {
    /// Starts it. `ahead`: what the program is likely to load.
    pub(crate) fn open(file: &File, finder: Finder, ahead: Vec<PathBuf>) -> io::Result<Self> {
        let file = file.try_clone()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (own, over) = (file.try_clone()?, Arc::clone(&is_over));
        let words = (
            Word::at(&file, offset_of!(FileHeader, requests) as u64)?,
            Word::at(&file, offset_of!(FileHeader, answering) as u64)?,
        );
        words.1.get().store(1, Ordering::Release);
        let thread = process::spawn_without_signals(move || {
            let mut finder = finder;
            finder.read_ahead(&ahead);
            serve(&own, &mut finder, &words.0, &over);
            words.1.get().store(0, Ordering::Release);
            finder
        })?;
        Ok(Self { thread, file, is_over })
    }

    /// Ends it, when the program has ended: what was found. `None`: it failed.
    pub(crate) fn close(self) -> Option<Finder> {
        self.is_over.store(true, Ordering::Release);
        if let Ok(requests) = Word::at(&self.file, offset_of!(FileHeader, requests) as u64) {
            requests.get().fetch_add(1, Ordering::AcqRel);
            requests.wake();
        }
        self.thread.join().ok()
    }
}

fn serve(file: &File, finder: &mut Finder, count: &Word, is_over: &AtomicBool) {
    loop {
        let seen = count.get().load(Ordering::Acquire);
        if is_over.load(Ordering::Acquire) {
            return;
        }
        // What cannot be read now is not answered: the recorder does not wait for ever, and says so.
        for request in requests(file).unwrap_or_default() {
            let answered = see(file, &request)
                .and_then(|()| answer(file, &request, &finder.answer(&request)))
                .and_then(|at| Word::at(file, at));
            if let Ok(word) = answered {
                word.wake();
            }
        }
        // It may have changed meanwhile, which is no error.
        let _changed = futex::wait(count.get(), futex::Flags::empty(), seen, None);
    }
}
