//! `heaptally options`, which no help names: every option of every command, for the tests that go through them.
//!
//! ```text
//! heaptally<TAB>--help
//! run<TAB>--output
//! run<TAB>PROGRAM
//! ```
//!
//! An option stands there by its long name, or the short one if it has no other; an argument by its value's name.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory};

use crate::Arguments;
use crate::terminal::print;

/// The command's name.
pub(crate) const NAME: &str = "options";

/// The command, which is no part of [`Arguments`]: what is made from those does not hold it.
pub(crate) fn command() -> clap::Command {
    clap::Command::new(NAME).about("Lists every option of every command").hide(true)
}

/// Prints the list.
pub(crate) fn run() -> anyhow::Result<u8> {
    let mut tree = Arguments::command().disable_help_subcommand(true);
    tree.build();
    let mut list = String::new();
    add(&mut list, &tree, tree.get_name());
    for command in tree.get_subcommands() {
        add_all(&mut list, command, command.get_name());
    }
    print(&list)?;
    Ok(0)
}

/// Adds a command and those below it.
fn add_all(list: &mut String, command: &clap::Command, path: &str) {
    add(list, command, path);
    for inner in command.get_subcommands() {
        add_all(list, inner, &format!("{path} {}", inner.get_name()));
    }
}

fn add(list: &mut String, command: &clap::Command, path: &str) {
    for argument in command.get_arguments() {
        // Writing to a String does not fail.
        let _ = writeln!(list, "{path}\t{}", name(argument));
    }
}

fn name(argument: &Arg) -> String {
    match (argument.get_long(), argument.get_short(), argument.get_value_names()) {
        (Some(long), ..) => format!("--{long}"),
        (None, Some(short), _) => format!("-{short}"),
        (None, None, Some([value, ..])) => value.to_string(),
        (None, None, _) => argument.get_id().as_str().to_uppercase(),
    }
}
