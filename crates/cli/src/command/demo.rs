//! `heaptally demo`: records a small program that comes with the command, and prints the report.

use std::io::{self, IsTerminal};

use clap::Args;
use heaptally_report::{Options, text};

use crate::library;
use crate::recording::{Recording, record};
use crate::terminal::{color, print, width};

/// Records a small program that comes with the command, and prints the report.
#[derive(Args, Debug)]
pub(crate) struct Demo {}

impl Demo {
    /// Records and prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let program = library::demo()?;
        let recording = Recording { program: vec![program.into_os_string()], ..Recording::default() };
        let recorded = record(&recording)?;
        let options = Options {
            color: io::stdout().is_terminal() && color(),
            width: width(io::stdout()),
            ..Options::default()
        };
        print(&text::text(&recorded.profile, &options))?;
        Ok(recorded.end.code())
    }
}
