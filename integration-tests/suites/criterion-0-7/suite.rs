//! What the benchmarks of all versions use, of this one.

pub use heaptally::criterion_0_7::Windowed;
