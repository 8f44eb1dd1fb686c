//! The crate against a table that notes how it is called.

#![expect(unsafe_code, reason = "stands in for the recorder's C functions")]

use crate::table::{Table, install};
use heaptally_runtime::abi::AbiV1;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::mem::offset_of;

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

static WHOLE: AbiV1 = table(size_of::<AbiV1>());
/// An older recorder's, which ends before the windows of threads.
static SMALL: AbiV1 = table(offset_of!(AbiV1, thread_window_begin));

const fn table(size_bytes: usize) -> AbiV1 {
    AbiV1 {
        size: size_bytes as u64,
        window_begin,
        window_end,
        thread_window_begin,
        thread_window_end,
        window_iterations,
        pause,
        resume,
    }
}

fn note(call: &str, name: *const c_char) {
    // SAFETY: the crate gives C strings to the table's functions.
    let name = unsafe { CStr::from_ptr(name) };
    CALLS.with_borrow_mut(|calls| calls.push(format!("{call} {}", name.to_string_lossy())));
}

unsafe extern "C" fn window_begin(name: *const c_char) {
    note("begin", name);
}
unsafe extern "C" fn window_end(name: *const c_char) {
    note("end", name);
}
unsafe extern "C" fn thread_window_begin(name: *const c_char) {
    note("thread begin", name);
}
unsafe extern "C" fn thread_window_end(name: *const c_char) {
    note("thread end", name);
}
unsafe extern "C" fn window_iterations(name: *const c_char, count: u64) {
    note(&format!("iterations {count}"), name);
}
unsafe extern "C" fn pause() {
    note("pause", c"".as_ptr());
}
unsafe extern "C" fn resume() {
    note("resume", c"".as_ptr());
}

/// What the calling thread's `action` called.
fn calls(action: impl FnOnce(Table)) -> Vec<String> {
    CALLS.take();
    action(install(&WHOLE));
    CALLS.take()
}

#[test]
fn guards_begin_at_once_and_end_when_dropped() {
    let calls = calls(|_| {
        let _outer = crate::window(c"outer");
        {
            let _inner = crate::thread_window("inner");
            crate::iterations("inner", u64::MAX);
            let _pause = crate::pause();
        }
        assert!(crate::is_recording());
    });
    let expected = [
        "begin outer",
        "thread begin inner",
        "iterations 18446744073709551615 inner",
        "pause ",
        "resume ",
        "thread end inner",
        "end outer",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn a_name_of_any_length_arrives_whole() {
    for length in [0, 1, 254, 255, 256, 257, 100_000] {
        let name = "n".repeat(length);
        let calls = calls(|_| drop(crate::window(&name)));
        let calls: Vec<_> = calls.into_iter().filter(|call| !call.ends_with(' ') || length == 0).collect();
        assert_eq!(calls, [format!("begin {name}"), format!("end {name}")], "{length} bytes");
    }
}

#[test]
fn a_long_name_is_copied_and_dropped_unrecorded() {
    let name = "n".repeat(256);
    let calls = calls(|_| drop(crate::window(&name)));
    let expected =
        ["pause ", "resume ", &format!("begin {name}"), &format!("end {name}"), "pause ", "resume "];
    assert_eq!(calls, expected);
}

#[test]
fn a_name_ends_at_its_first_nul() {
    let long = format!("{}\0tail", "n".repeat(300));
    for (name, seen) in [("a\0b", "a"), ("\0", ""), (&long, &long[..300])] {
        let calls = calls(|_| crate::iterations(name, 3));
        assert!(calls.contains(&format!("iterations 3 {seen}")), "{calls:?}");
    }
}

#[test]
fn a_function_beyond_the_tables_end_is_not_called() {
    let calls = calls(|_| {
        let small = Table::new(&SMALL);
        small.window_begin(c"w");
        small.thread_window_begin(c"t");
        small.thread_window_end(c"t");
        small.window_iterations(c"w", 1);
        small.pause();
        small.resume();
        small.window_end(c"w");
    });
    assert_eq!(calls, ["begin w", "end w"]);
}
