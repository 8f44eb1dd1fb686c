//! The standard output: printing to it, and what a terminal behind it can show.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::io::Errno;

use crate::exit::{Failure, UNREADABLE};
use crate::process;

/// What is narrower has no room for any table.
pub(crate) const LEAST_COLUMNS: usize = 20;

/// Prints a report. A reader that has seen enough is no error: it ends this command as it ends others.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    process::restore_broken_pipe();
    let written = if process::is_output_closed() {
        Err(Errno::BADF.into())
    } else {
        // NOTE: not by io::stdout(), which takes a descriptor that cannot be written to for a success.
        io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .and_then(|output| File::from(output).write_all(text.as_bytes()))
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            UNREADABLE,
            format!("cannot print: {error}\nsee where the standard output goes"),
        )
        .into()),
        _ => Ok(()),
    }
}

/// Whether a terminal is to be coloured: <https://no-color.org>, and a terminal that can.
pub(crate) fn color() -> bool {
    let is_plain = env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_plain && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How many columns a stream's terminal has; `None` where it is none. `COLUMNS` says more than the terminal, as it
/// does to other programs.
pub(crate) fn width(stream: impl AsFd + IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let told = env::var("COLUMNS").ok().and_then(|value| value.parse().ok());
    let asked = || rustix::termios::tcgetwinsize(stream.as_fd()).ok().map(|size| usize::from(size.ws_col));
    let columns = told.or_else(asked).filter(|columns| *columns > 0)?;
    Some(columns.max(LEAST_COLUMNS))
}
