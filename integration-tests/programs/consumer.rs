//! Allocations for the tests of other tools: two windows, names with generics, traits and closures, blocks that stay,
//! are freed and grow. With an argument `more` one function allocates more.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::hint::black_box;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Calls a function of the recorder's, where there is a recorder.
fn recorder(function: &CStr, window: &CStr) {
    // SAFETY: the handle 0 stands for all loaded objects, and the name is a C string.
    let found = unsafe { dlsym(std::ptr::null_mut(), function.as_ptr()) };
    // SAFETY: a function pointer is as large as a pointer, and null is None; the header states the type.
    let found = unsafe { std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(*const c_char)>>(found) };
    if let Some(function) = found {
        // SAFETY: the name is a C string.
        unsafe { function(window.as_ptr()) };
    }
}

fn window<T>(name: &CStr, work: impl FnOnce() -> T) -> T {
    recorder(c"heaptally_window_begin", name);
    let result = work();
    recorder(c"heaptally_window_end", name);
    result
}

trait Encode {
    fn encode(&self) -> Vec<u8>;
}

impl Encode for [u8; 4] {
    #[inline(never)]
    fn encode(&self) -> Vec<u8> {
        black_box(self.to_vec())
    }
}

impl<K: ToString, V: Copy> Encode for BTreeMap<K, V> {
    #[inline(never)]
    fn encode(&self) -> Vec<u8> {
        black_box(self.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ").into_bytes())
    }
}

#[inline(never)]
fn grow<T: Clone>(value: T, count: usize) -> Vec<T> {
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(black_box(value.clone()));
    }
    values
}

#[inline(never)]
fn more(count: usize) {
    for i in 0..count {
        black_box(Box::new(i));
    }
}

#[inline(never)]
fn parse(extra: usize) {
    black_box([1, 2, 3, 4].encode());
    black_box((0..20).map(|i| (i, ())).collect::<BTreeMap<u32, ()>>().encode());
    more(5 + extra);
}

fn main() {
    let extra = if std::env::args().nth(1).as_deref() == Some("more") { 6 } else { 0 };
    for _ in 0..4 {
        window(c"parse", || parse(extra));
    }
    window(c"draw <b>; all 100% of it", || {
        let make: Box<dyn Fn(usize) -> Vec<[u16; 3]>> = Box::new(|count| grow([1_u16; 3], count));
        std::mem::forget(black_box(make)(100));
        black_box(grow(String::from("a text; of two <parts>"), 9));
    });
}
