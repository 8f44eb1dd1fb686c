//! The recorder inside a process: what the hooks of `heaptally-preload` call.
//!
//! It joins the walker (`heaptally-unwind`) and the tables (`heaptally-tally`), and keeps what belongs to the process:
//! the start, the guard against being entered twice, threads, loaded modules, forks. It does *not* define `malloc` or
//! any other C symbol, nor know the real functions behind the hooks.
//!
//! The caller owes: [`start::start`] from the first hook or the library's constructor, whichever comes first, and only
//! once the library is relocated; [`start::settle`] from the constructor; the program's own registers at the hook's
//! first instruction.
#![cfg_attr(not(test), no_std)]

mod armed;
mod async_chain;
mod bypass;
mod child;
mod codspeed;
mod elf;
mod environment;
mod fork;
mod harness;
mod loader;
mod local;
mod memory_map;
mod module_table;
mod namespace;
mod next_image;
mod object;
#[cfg(feature = "oracle")]
mod oracle;
mod patch;
mod recorder;
mod resumer;
mod sys;
mod thread;
mod x86_64;

pub mod abi;
pub mod event;
pub mod exec;
pub mod google_benchmark;
pub mod operator_new;
pub mod package_benchmark;
pub mod start;
pub mod task_origin;
pub mod window;

pub use heaptally_segment::layout::EntryPoint;
pub use heaptally_tally::{Allocation, FreeKind};
