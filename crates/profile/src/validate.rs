//! The check that every index leads somewhere, and that what is kept by run is there for every run.

use crate::Error;
use crate::model::Profile;

impl Profile {
    /// Checks that every index leads to an entry of its table, and that windows and rows have one value for each run, or
    /// none where there is one run.
    ///
    /// # Errors
    /// [`Error::Index`] for the first index that leads nowhere, [`Error::Value`] for the first wrong number of values.
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
        for (at, executor) in self.executors.iter().enumerate() {
            index(("executor", at), "stack", executor.stack, self.stacks.len())?;
            for &location in &executor.locations {
                index(("executor", at), "location", location, self.locations.len())?;
            }
        }
        let runs = self.environment.runs();
        for (at, window) in self.windows.iter().enumerate() {
            repeats(("window", at), window.iterations_per_repeat.len(), runs)?;
            index(("window", at), "image", window.image, self.images.len())?;
        }
        for (at, row) in self.rows.iter().enumerate() {
            repeats(("row", at), row.repeats.len(), runs)?;
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

/// Checks how many values by run there are.
fn repeats(referrer: (&'static str, usize), found: usize, runs: u64) -> Result<(), Error> {
    let expected = if runs > 1 { runs } else { 0 };
    if found as u64 == expected {
        return Ok(());
    }
    let (table, row) = referrer;
    Err(Error::Value { table, row, reason: format!("{found} values by run, expected {expected}") })
}
