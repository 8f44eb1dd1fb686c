//! The program that `heaptally check -- PROGRAM` records, and the baseline that its profile may become.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptally_profile::model::Profile;
use heaptally_profile::pprof;
use heaptally_report::child::sentences;
use heaptally_report::ending;
use heaptally_report::summary::summary;

use crate::baseline::{Saving, clear, mark_failed, path_of};
use crate::config::{Settings, settings};
use crate::exit::{Failure, IMPROVEMENT, UNREADABLE, USAGE};
use crate::file_role::{Role, roles};
use crate::large_stack::on_large_stack;
use crate::message;
use crate::output::{Content, Output};
use crate::recording::{Recorded, Recording, RecordingArgs, record};

/// How a program is recorded that is checked: as `heaptally run` does.
#[derive(Args, Debug, Default)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Write the profile of the program to FILE.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Save the profile of the program as the baseline NAME if the check passes.
    ///
    /// If the program fails, or a limit is broken, an older baseline of that name stays as it is. It is then refused as
    /// stale until a run replaces it, unless it is what the check compared with (--baseline NAME --save-baseline NAME).
    #[arg(long, value_name = "NAME", conflicts_with = "self_test")]
    save_baseline: Option<String>,
}

/// What there is to check.
pub(crate) enum Checked {
    Profile(Box<Profile>),
    /// The program failed, with this code.
    Failed(u8),
}

/// A baseline that waits for the check.
pub(crate) struct Waiting {
    saving: Saving,
    profile: Vec<u8>,
}

impl Waiting {
    /// A profile that is saved if the check passes.
    pub(crate) fn new(saving: Saving, profile: Vec<u8>) -> Self {
        Self { saving, profile }
    }

    /// After the check, with its code: saves the profile if it passed, else leaves what there is.
    pub(crate) fn end(self, code: &anyhow::Result<u8>) -> Result<(), Failure> {
        let said = match code {
            Ok(0 | IMPROVEMENT) => self.saving.save(&self.profile).map_err(unmeasured)?,
            Ok(_) => self.saving.give_up("the check failed"),
            Err(error) => self.saving.give_up(&error.to_string()),
        };
        message::print(&said);
        Ok(())
    }
}

/// Where a command has no codes of a recorder's: what was not recorded was not measured.
pub(crate) fn unmeasured(failure: Failure) -> Failure {
    Failure::new(UNREADABLE, failure.message)
}

impl RecordArgs {
    /// Whether any of it is stated.
    pub(crate) fn is_stated(&self) -> bool {
        self.recording.is_stated() || self.output.is_some() || self.save_baseline.is_some()
    }

    /// The files that are written beside the reports, and the baseline.
    pub(crate) fn outputs(&self) -> (Vec<Role>, Vec<Role>) {
        let baseline = self.save_baseline.as_ref().and_then(|name| path_of(name, settings()).ok());
        (roles("-o", &self.output).collect(), roles("--save-baseline", baseline).collect())
    }

    /// Records. `bases` are the files that the check compares with.
    pub(crate) fn record(
        &self,
        program: &[OsString],
        bases: &[PathBuf],
        accepts_failed: bool,
    ) -> Result<(Checked, Option<Waiting>), Failure> {
        let output = self.output.as_deref().map(|file| Output::prepare(file, Content::Profile));
        let output = output.transpose().map_err(unmeasured)?;
        let begin = |name: &String| begin_saving(name, program, bases, settings());
        let saving = self.save_baseline.as_ref().map(begin).transpose()?;
        match (self.record_and_write(program, output, accepts_failed), saving) {
            (recorded, None) => recorded.map(|(checked, _)| (checked, None)),
            (Ok((checked @ Checked::Profile(_), profile)), Some(saving)) => {
                Ok((checked, Some(Waiting::new(saving, profile))))
            }
            (Ok((checked @ Checked::Failed(code), _)), Some(saving)) => {
                message::print(
                    &saving.give_up(&format!("the program ended with {}", ending::code(i32::from(code)))),
                );
                Ok((checked, None))
            }
            (Err(failure), Some(saving)) => {
                message::print(&saving.give_up(&failure.message));
                Err(failure)
            }
        }
    }

    /// Returns the profile's bytes, too.
    fn record_and_write(
        &self,
        program: &[OsString],
        output: Option<Output>,
        accepts_failed: bool,
    ) -> Result<(Checked, Vec<u8>), Failure> {
        let recording = Recording { shows_progress: true, ..self.recording.recording(program) };
        let recorded = record(&recording).and_then(|mut recorded| match recorded.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(recorded),
        });
        let file = output.as_ref().filter(|output| output.is_file()).map(|output| output.path().to_owned());
        let recorded = recorded.map_err(|mut failure| {
            // What stands there is of an earlier run.
            if let Some(file) = &file {
                mark_failed(file, program, &mut failure);
            }
            unmeasured(failure)
        })?;
        let Recorded { end, interrupted, mut profile, warnings, .. } = recorded;
        profile.merge_children().map_err(|error| {
            Failure::new(
                UNREADABLE,
                format!("the processes cannot be put together: {error}\nleave out --follow-children"),
            )
        })?;
        let (line, bytes) = on_large_stack(|| (summary(&profile), pprof::write(&profile)))?;
        if let Some(output) = output {
            output.write(&bytes).map_err(unmeasured)?;
            file.as_deref().map_or(Ok(()), clear).map_err(unmeasured)?;
        }
        let warnings: String = warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        let children = sentences(&profile.children);
        let children: String = children.iter().map(|sentence| format!("\n{sentence}")).collect();
        message::print(&format!("{line}{warnings}{children}"));
        let code = end.code_of_runs(interrupted);
        if code != 0 && !(accepts_failed && interrupted.is_none()) {
            message::print(&format!(
                "the program ended with {}, so nothing was checked\n--accept-failed checks it all the same",
                ending::code(i32::from(code))
            ));
            return Ok((Checked::Failed(code), bytes));
        }
        Ok((Checked::Profile(Box::new(profile)), bytes))
    }
}

/// Before the program starts: a baseline that its profile may become. `bases` are the files that the check compares with.
pub(crate) fn begin_saving(
    name: &str,
    program: &[OsString],
    bases: &[PathBuf],
    settings: &Settings,
) -> Result<Saving, Failure> {
    let place = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let own = place(&path_of(name, settings)?);
    let is_compared = bases.iter().any(|base| place(base) == own);
    Saving::begin(name, program, is_compared, settings).map_err(|failure| match failure.code {
        USAGE => failure,
        _ => unmeasured(failure),
    })
}
