//! `heaptally demo`: records a small program that comes with the command, before and after a change, and prints the
//! report and what the change added.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use clap::Args;
use heaptally_profile::diff::{DiffOptions, diff};
use heaptally_report::text::diff::Show;
use heaptally_report::{Options, text};

use crate::library;
use crate::recording::{Recording, record};
use crate::terminal::{color, print, width};

/// What stands between the report and the diff.
const TITLE: &str = "and after a change, which `heaptally diff` compares with it:";

/// Records a small program that comes with the command, prints the report, and shows what a change to it added.
#[derive(Args, Debug)]
pub(crate) struct Demo {}

impl Demo {
    /// Records and prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let program = library::demo()?;
        let program = program.into_os_string();
        let recording = |words: Vec<OsString>| Recording { program: words, ..Recording::default() };
        let base = record(&recording(vec![program.clone()]))?;
        let change = record(&recording(vec![program, "change".into()]))?;
        let options = Options {
            color: io::stdout().is_terminal() && color(),
            width: width(io::stdout()),
            ..Options::default()
        };
        let diff = diff(&base.profile, &change.profile, &DiffOptions::default());
        print(&format!(
            "{}\n{TITLE}\n\n{}",
            text::text(&base.profile, &options),
            text::diff::text(&diff, &options, Show::Entries)
        ))?;
        Ok(match base.end.code() {
            0 => change.end.code(),
            code => code,
        })
    }
}
