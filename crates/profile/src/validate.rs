//! The check that every index leads somewhere.

use crate::Error;
use crate::model::Profile;

impl Profile {
    /// Checks that every index leads to an entry of its table.
    ///
    /// # Errors
    /// [`Error::Index`] for the first one that does not.
    pub fn validate(&self) -> Result<(), Error> {
        for (at, location) in self.locations.iter().enumerate() {
            if let Some(module) = location.module {
                index(("location", at), "module", module, self.modules.len())?;
            }
            for line in &location.lines {
                index(("location", at), "function", line.function, self.functions.len())?;
            }
        }
        for (at, stack) in self.stacks.iter().enumerate() {
            for &location in &stack.locations {
                index(("stack", at), "location", location, self.locations.len())?;
            }
        }
        for (at, window) in self.windows.iter().enumerate() {
            index(("window", at), "image", window.image, self.images.len())?;
        }
        for (at, row) in self.rows.iter().enumerate() {
            index(("row", at), "window", row.window, self.windows.len())?;
            index(("row", at), "stack", row.stack, self.stacks.len())?;
        }
        for (at, thread) in self.threads.iter().enumerate() {
            index(("thread", at), "image", thread.image, self.images.len())?;
            if let Some(start) = thread.start {
                index(("thread", at), "location", start, self.locations.len())?;
            }
            for &window in thread.totals.keys() {
                index(("thread", at), "window", window, self.windows.len())?;
            }
        }
        Ok(())
    }
}

/// Checks one index: of `referrer` (table, own index) into `target`.
pub(crate) fn index(
    referrer: (&'static str, usize),
    target: &'static str,
    index: usize,
    len: usize,
) -> Result<(), Error> {
    if index < len {
        return Ok(());
    }
    Err(Error::Index { table: referrer.0, row: referrer.1, target, index: index as u64, len })
}
