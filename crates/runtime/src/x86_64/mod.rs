//! What depends on the processor.

pub(crate) mod local;
pub(crate) mod syscall;
pub(crate) mod trampoline;
