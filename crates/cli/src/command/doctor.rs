//! `heaptally doctor`: says whether this machine and a program can be recorded.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use clap::Args;

use crate::doctor::{self, Diagnosis};
use crate::exit::UNREADABLE;
use crate::terminal::{color, print};

/// Says whether programs can be recorded on this machine, and one program in particular, and how well.
///
/// Records a small program of its own to see that all works. PROGRAM is found as `heaptally run` finds it; its file is
/// read, and it is not started.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 it can be recorded, perhaps with warnings; 4 it cannot, or was not found; 2 wrong usage."
)]
pub(crate) struct Doctor {
    /// The program that is to be recorded.
    program: Option<OsString>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Looks and prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let diagnosis = Diagnosis::of(self.program.as_deref());
        let text = if self.json {
            doctor::json(&diagnosis)
        } else {
            doctor::text(&diagnosis, io::stdout().is_terminal() && color())
        };
        print(&text)?;
        Ok(if diagnosis.is_recordable() { 0 } else { UNREADABLE })
    }
}
