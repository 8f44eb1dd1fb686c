//! A thread with a large stack, for what recurses as deeply as a profile's names are nested.

use rustix::process::{Resource, getrlimit};

use crate::exit::Failure;
use crate::process;

/// The least stack that does for everything but names.
const ENOUGH_BYTES: u64 = 1 << 20;

/// Runs on a stack of its own: names can be nested deeply, and the user may have limited this command's (ulimit -s).
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    const STACK_BYTES: usize = 64 << 20;
    const SMALL_STACK_BYTES: usize = 8 << 20;
    let is_limited = process::make_do_with_limited_address_space();
    let (stack_bytes, advice) = if is_limited {
        (SMALL_STACK_BYTES, "raise the limit of the address space (ulimit -v)")
    } else {
        (STACK_BYTES, "free memory, or see which limit or sandbox is in the way of threads")
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack_bytes).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| {
            Failure::recorder(format!("cannot start a thread to read what was recorded: {error}\n{advice}"))
        })?;
        thread.join().map_err(|_| Failure::new(crate::exit::INTERNAL, "a fault in heaptally, see above"))
    })
}

/// Runs here, or where the user left less than [`ENOUGH_BYTES`] of stack (ulimit -s) as [`on_large_stack`] does: to make
/// the list of all options takes some.
pub(crate) fn on_enough_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let limit = getrlimit(Resource::Stack).current;
    if limit.is_some_and(|bytes| bytes < ENOUGH_BYTES) { on_large_stack(work) } else { Ok(work()) }
}
