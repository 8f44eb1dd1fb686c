//! What depends on the processor: register numbers, the 32-bit rule, and asking the kernel whether memory is there.

mod readable;
mod registers;
mod rule;

pub use readable::is_readable;
pub(crate) use registers::registers;
pub(crate) use rule::{Kind, Rule};

/// rbx's DWARF number; the loader's late binding finds its frame's end by it.
pub(crate) const BX: u64 = 3;
/// r14's; Swift's calling convention has the async context in it.
pub(crate) const R14: u64 = 14;
/// rbp's DWARF number (System V psABI, AMD64, 3.6.2).
pub(crate) const BP: u64 = 6;
/// rsp's.
pub(crate) const SP: u64 = 7;
/// The return address's column.
pub(crate) const RA: u64 = 16;

/// One past the highest address of a program (47 bits; programs that ask for 57 bits are not known).
pub(crate) const ADDRESS_END: u64 = 1 << 47;
/// Linux maps nothing below this (`vm.mmap_min_addr`), unless told to.
pub(crate) const ADDRESS_MIN: u64 = 1 << 16;
/// What a leaf function may use below its stack pointer, and signals leave alone.
pub(crate) const RED_ZONE: u64 = 128;
