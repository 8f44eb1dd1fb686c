//! The `LD_PRELOAD` library: stands in for the C library's allocation functions and tells the recorder.
//!
//! It holds the hooks, the real functions behind them, the C functions for windows, and the library's constructor. It
//! does *not* record: that is `heaptally-runtime`. It is not linked to but loaded; as a Rust library it has nothing to
//! offer.
//!
//! What it exports is listed in `exports.txt`, what it needs of others in `imports.txt`; a test compares both.
#![no_std]

mod allocation;
mod arena;
mod exec;
mod google_benchmark;
mod libc_name;
mod library;
mod malloc_counter;
mod operator;
mod real;
mod spawn;
mod swift_task;
mod unmap;
mod window;
