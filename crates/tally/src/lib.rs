//! The tables of the recorder: which stacks allocate how much in which window.
//!
//! It takes events (an allocation with its frames, a free, a window's begin or end) and keeps the counts in a
//! segment (`heaptally-segment`), lock-free but for rare growth. It does *not* walk stacks, call the allocator or
//! know the loader; the operating system reaches it through [`Os`], so that its tables are tested without a process
//! that is recorded.
//!
//! The caller owes: one [`ThreadTally`] per thread, used by one thread at a time; no call into these tables from
//! inside a call (a signal handler) with the same [`ThreadTally`].
//!
//! ```text
//! frames ──stack_table──> node ──row_table──> row (window, node, entry point) ──counter_shard──> counters
//! block  ──block_map────> row, size                                     (a free is charged to the row that allocated)
//! ```
#![cfg_attr(not(test), no_std)]

mod async_caller;
mod attempt;
mod block_map;
mod counter_shard;
mod function_range;
mod index;
mod known_window;
mod loop_window;
mod nesting;
mod os;
mod row_table;
mod spin;
mod stack_table;
mod table;
mod tally;
mod thread_table;
mod window_call;
mod window_table;

pub use block_map::{Block, BlockMap};
pub use function_range::FunctionRange;
pub use loop_window::LoopScope;
pub use nesting::Entered;
pub use os::{AreaMap, Os, TableMap};
pub use spin::{Spin, SpinGuard, Waiting, set_waiting};
pub use table::Pages;
pub use tally::{Allocation, Event, FreeKind, Options, Tally};
pub use thread_table::{Life, ThreadTally};
