//! What a walk asks about the program's code and stacks.

use crate::x86_64;

/// The unwind sections of one loaded module. All are addresses in this process (AVMA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleSections {
    /// The lowest address of the module's segments.
    pub start: u64,
    /// One past the highest.
    pub end: u64,
    /// The lowest address of its executable segments.
    pub text_start: u64,
    /// One past the highest.
    pub text_end: u64,
    /// Where `.eh_frame_hdr` is (`PT_GNU_EH_FRAME`).
    pub eh_frame_hdr: u64,
    /// Its length in bytes; 0 if the module has none.
    pub eh_frame_hdr_len: u64,
    /// One past the last readable byte of the segment that holds `.eh_frame_hdr` and `.eh_frame`. What lies between
    /// `start` and here is readable where unwind information refers to it.
    pub mapped_end: u64,
}

/// What the walker asks about code and stacks.
///
/// All of these run inside the program's `malloc`: they must not block, allocate or fault, and for as long as the
/// generation stays the same, `find` and `is_coroutine_start` must not change what they say of a loaded module.
pub trait CodeMap {
    /// The module that holds `pc`, if it is loaded.
    fn find(&self, pc: u64) -> Option<ModuleSections>;

    /// Whether `pc` lies in executable memory outside of modules: code made at run time.
    fn is_other_code(&self, pc: u64) -> bool;

    /// The stack of the calling thread that holds `sp`, as (lowest address, one past the highest), if it is known.
    fn stack_bounds(&self, sp: u64) -> Option<(u64, u64)>;

    /// Whether `pc` is where a coroutine's first function returns to (`makecontext`'s start routine).
    fn is_coroutine_start(&self, pc: u64) -> bool;

    /// What code at run time stands for, if `pc` lies where instructions of a module were moved to: the address of the
    /// instruction in its module, and how many words the moved code has pushed beyond it. Asked where a signal interrupted
    /// a frame; by default nothing was moved.
    fn moved(&self, _pc: u64) -> Option<(u64, u64)> {
        None
    }

    /// Whether the 8 bytes at `address` can be read. Asked only before the walk goes to a stack of which nothing is
    /// known; by default the kernel is asked, by a system call that changes nothing.
    fn is_readable(&self, address: u64) -> bool {
        x86_64::is_readable(address)
    }
}
