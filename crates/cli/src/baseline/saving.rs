//! A run whose profile is to become a baseline.

use std::ffi::OsString;

use super::{Replacement, folder, prepare};
use crate::config::Settings;
use crate::exit::Failure;
use crate::message::quote;
use crate::output::{Content, Output};

/// A baseline that is about to be saved. If it is dropped, the run counts as one that was killed.
#[derive(Debug)]
pub(crate) struct Saving {
    name: String,
    folder: String,
    output: Output,
    replacement: Replacement,
}

impl Saving {
    /// Before the program starts: makes sure that the baseline can be written, and marks the old one. `is_compared`:
    /// the same command compares with the old one, which then stays good if the run fails.
    pub(crate) fn begin(
        name: &str,
        program: &[OsString],
        is_compared: bool,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let path = prepare(name, settings)?;
        let output = Output::prepare(&path, Content::Baseline)?;
        let replacement = Replacement::begin(&path, program, is_compared)?;
        Ok(Self { name: name.to_owned(), folder: quote(folder(settings)), output, replacement })
    }

    /// After all went well: puts the profile in the place of the old one. Returns what to say.
    pub(crate) fn save(self, profile: &[u8]) -> Result<String, Failure> {
        let Self { name, folder, output, replacement } = self;
        if let Err(failure) = output.write(profile) {
            replacement.fail(&failure.message);
            return Err(failure);
        }
        replacement.succeed().map_err(|error| {
            Failure::recorder(format!(
                "the baseline {} was saved, and its mark cannot be removed: {error}\n\
                 remove it with `heaptally baseline keep {name}`",
                quote(&name)
            ))
        })?;
        Ok(format!("saved as the baseline {} in {folder}", quote(&name)))
    }

    /// After a run that failed: leaves the old one. Returns what to say.
    pub(crate) fn give_up(self, why: &str) -> String {
        self.replacement.fail(why);
        format!(
            "the baseline {} was not replaced: {}",
            quote(&self.name),
            why.lines().next().unwrap_or_default()
        )
    }
}
