//! Windows and pauses as guards, which end when they are dropped.

use crate::name::{Held, Name};
use crate::table::{self, Table};
use std::marker::PhantomData;

/// Opens a window of all threads; it is open until the guard is dropped.
///
/// Windows nest: an allocation belongs to the innermost, the one opened last. Opening an open window again only raises
/// its depth. The guard may be dropped by another thread.
pub fn window<'name>(name: impl Into<Name<'name>>) -> WindowGuard<'name> {
    let open = table::find().map(|table| (Held::new(name.into(), table), table));
    if let Some((name, table)) = &open {
        name.with(|name| table.window_begin(name));
    }
    WindowGuard { open }
}

/// Opens a window of the calling thread; it is open until the guard is dropped.
///
/// It goes before a window of all threads: what this thread allocates belongs here, also while a [`window`] that was
/// opened later is open.
pub fn thread_window<'name>(name: impl Into<Name<'name>>) -> ThreadWindowGuard<'name> {
    let open = table::find().map(|table| (Held::new(name.into(), table), table));
    if let Some((name, table)) = &open {
        name.with(|name| table.thread_window_begin(name));
    }
    ThreadWindowGuard { open, same_thread: PhantomData }
}

/// Leaves out what the calling thread allocates until the guard is dropped. Nests.
///
/// ```
/// let _window = heaptally::window(c"insert");
/// let _pause = heaptally::pause();
/// let input: Vec<u32> = (0..1_000).collect(); // not counted
/// drop(_pause);
/// let copy = input.clone(); // counted
/// # drop(copy);
/// ```
pub fn pause() -> PauseGuard {
    let paused = table::find();
    if let Some(table) = paused {
        table.pause();
    }
    PauseGuard { paused, same_thread: PhantomData }
}

/// An open [`window`].
#[derive(Debug)]
#[must_use = "the window is closed when the guard is dropped"]
pub struct WindowGuard<'name> {
    open: Option<(Held<'name>, Table)>,
}

impl Drop for WindowGuard<'_> {
    fn drop(&mut self) {
        if let Some((name, table)) = &self.open {
            name.with(|name| table.window_end(name));
        }
    }
}

/// An open [`thread_window`]; it stays on its thread.
#[derive(Debug)]
#[must_use = "the window is closed when the guard is dropped"]
pub struct ThreadWindowGuard<'name> {
    open: Option<(Held<'name>, Table)>,
    /// A raw pointer is neither `Send` nor `Sync`.
    same_thread: PhantomData<*const ()>,
}

impl Drop for ThreadWindowGuard<'_> {
    fn drop(&mut self) {
        if let Some((name, table)) = &self.open {
            name.with(|name| table.thread_window_end(name));
        }
    }
}

/// A [`pause`] of one thread; it stays on that thread.
#[derive(Debug)]
#[must_use = "recording resumes when the guard is dropped"]
pub struct PauseGuard {
    paused: Option<Table>,
    /// A raw pointer is neither `Send` nor `Sync`.
    same_thread: PhantomData<*const ()>,
}

impl Drop for PauseGuard {
    fn drop(&mut self) {
        if let Some(table) = self.paused {
            table.resume();
        }
    }
}
