//! A thread with a large stack, for what recurses as deeply as a profile's names are nested.

use crate::exit::Failure;

/// Runs on a stack of its own: names can be nested deeply, and the user may have limited this command's (ulimit -s).
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    const STACK_BYTES: usize = 64 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| {
            Failure::recorder(format!(
                "cannot start a thread to read what was recorded: {error}\nfree memory"
            ))
        })?;
        thread.join().map_err(|_| Failure::new(crate::exit::INTERNAL, "a fault in heaptally, see above"))
    })
}
