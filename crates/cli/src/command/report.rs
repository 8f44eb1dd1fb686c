//! `heaptally report`: prints a profile.

use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use heaptally_profile::model::Profile;
use heaptally_profile::pprof;
use heaptally_report::{Options, json, text};

use crate::exit::{Failure, UNREADABLE};
use crate::message::quote;
use crate::process;

/// Prints a profile: per window a head line, and its stacks sorted by count.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A profile that `heaptally run` wrote.
    file: PathBuf,
    /// How many stacks to print of each window; 0: all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print this window only; can be given several times.
    #[arg(long, value_name = "NAME")]
    window: Vec<String>,
    /// Print one JSON object, with every stack.
    #[arg(long)]
    json: bool,
}

impl Report {
    /// Prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let profile = read(&self.file)?;
        let options = Options {
            limit: self.limit,
            windows: self.window,
            color: !self.json && io::stdout().is_terminal() && color(),
        };
        let missing = options.missing_windows(&profile);
        if let Some(name) = missing.first() {
            let known: Vec<String> = profile.windows.iter().map(|window| quote(&window.name)).collect();
            return Err(Failure::new(
                UNREADABLE,
                format!("{} has no window {}\nit has {}", quote(&self.file), quote(name), known.join(", ")),
            )
            .into());
        }
        let text = if self.json { json::json(&profile, &options) } else { text::text(&profile, &options) };
        print(&text)?;
        Ok(0)
    }
}

/// Reads a profile's file.
pub(crate) fn read(file: &PathBuf) -> Result<Profile, Failure> {
    let refuse = |why: String| Failure::new(UNREADABLE, format!("cannot read {}: {why}", quote(file)));
    let bytes =
        fs::read(file).map_err(|error| refuse(format!("{error}\nname a file that `heaptally run` wrote")))?;
    pprof::read(&bytes).map_err(|error| refuse(error.to_string()))
}

/// Prints a report. A reader that has seen enough is no error: it ends this command as it ends others.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    process::restore_broken_pipe();
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether a terminal is to be coloured: <https://no-color.org>, and a terminal that can.
pub(crate) fn color() -> bool {
    let is_plain = env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_plain && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
