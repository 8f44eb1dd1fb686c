//! The one place where the configuration becomes clap's defaults.
//!
//! The words are parsed twice. The first time says which command is called and which of its options are given; then what
//! is configured for the others becomes their defaults. A configured option gives way to every given one that clap, or
//! [`GIVES_WAY`], does not let stand beside it. Since a switch cannot be given as off, each configurable one has
//! a hidden opposite, `--no-strict` to `--strict`, which takes the configured value away.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches};

use super::key::{CONFIGURABLE, GIVES_WAY, options};
use super::{Config, ConfigArgs, set};
use crate::exit::Failure;

/// Commands that use nothing of it, and have to work with a file that is broken.
const WITHOUT: [&str; 4] = ["completions", "man", "options", "help"];

/// Why there are no arguments.
#[derive(Debug)]
pub(crate) enum Error {
    /// Also help and versions.
    Usage(Box<clap::Error>),
    Config(Failure),
}

impl From<clap::Error> for Error {
    fn from(error: clap::Error) -> Self {
        Self::Usage(Box::new(error))
    }
}

/// Parses the words, with what is configured for options that they do not give. Returns the command, for errors that
/// come later, and the matches.
pub(crate) fn parse(
    command: clap::Command,
    words: &[OsString],
) -> Result<(clap::Command, ArgMatches), Error> {
    let fresh = with_opposites(command);
    let mut command = fresh.clone();
    let first = command.try_get_matches_from_mut(words)?;
    let (path, given) = leaf(&first);
    if WITHOUT.iter().any(|name| path.first() == Some(name)) {
        return Ok((command, first));
    }
    // Global options are in the matches of every command.
    let choice = ConfigArgs::from_arg_matches(given)?;
    let config = Config::load(&choice, &command).map_err(Error::Config)?;
    let name = path.join(" ");
    let defaults: Vec<(String, Vec<OsString>)> = match of_path(&command, &path) {
        Some(tree) => defaults(&config, tree, &name, given),
        None => Vec::new(),
    };
    set(config);
    if defaults.is_empty() {
        return Ok((command, first));
    }
    // NOTE: not the one that the first parse built: what clap makes of an option then is not made anew.
    let mut command = at(fresh, &path, |command| with_defaults(command, defaults));
    let matches = command.try_get_matches_from_mut(words)?;
    Ok((command, matches))
}

/// The words of the command that was called, and its own matches.
fn leaf(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut path, mut matches) = (Vec::new(), matches);
    while let Some((name, inner)) = matches.subcommand() {
        path.push(name);
        matches = inner;
    }
    (path, matches)
}

fn of_path<'c>(command: &'c clap::Command, path: &[&str]) -> Option<&'c clap::Command> {
    path.iter().try_fold(command, |command, word| command.find_subcommand(word))
}

/// Changes a command below another.
fn at(
    command: clap::Command,
    path: &[&str],
    change: impl FnOnce(clap::Command) -> clap::Command,
) -> clap::Command {
    match path.split_first() {
        None => change(command),
        Some((first, rest)) => command.mut_subcommand(*first, |inner| at(inner, rest, change)),
    }
}

fn opposite(option: &str) -> String {
    format!("no-{option}")
}

/// Adds to every configurable switch its hidden opposite.
fn with_opposites(mut command: clap::Command) -> clap::Command {
    for (name, options) in CONFIGURABLE {
        let path: Vec<&str> = name.split(' ').collect();
        command = at(command, &path, |mut command| {
            for option in *options {
                let found = command.get_arguments().find(|argument| argument.get_long() == Some(option));
                let Some(switch) = found.filter(|found| matches!(found.get_action(), ArgAction::SetTrue))
                else {
                    continue;
                };
                let id = switch.get_id().to_string();
                let name = opposite(option);
                let arg = Arg::new(name.clone()).long(name).action(ArgAction::SetTrue).hide(true);
                command = command.arg(arg.overrides_with(id));
            }
            command
        });
    }
    command
}

/// The ids of the options that are to have other defaults, with these.
fn defaults(
    config: &Config,
    command: &clap::Command,
    name: &str,
    given: &ArgMatches,
) -> Vec<(String, Vec<OsString>)> {
    let is_given = |argument: &Arg| {
        let id = argument.get_id().as_str();
        given.try_contains_id(id).unwrap_or(false) && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    let arguments: Vec<&Arg> = command.get_arguments().collect();
    let given_options: Vec<&&Arg> = arguments.iter().filter(|argument| is_given(argument)).collect();
    let is_among_given = |option: &str| {
        given_options.iter().any(|one| one.get_long().unwrap_or(one.get_id().as_str()) == option)
    };
    let mut found = Vec::new();
    for option in options(name).unwrap_or_default() {
        let (Some(value), Some(argument)) = (
            config.value(name, option),
            arguments.iter().find(|argument| argument.get_long() == Some(option)),
        ) else {
            continue;
        };
        let is_off = value.words.iter().all(|word| word == "false")
            && matches!(argument.get_action(), ArgAction::SetTrue);
        let conflicts = |one: &Arg, other: &Arg| {
            command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
        };
        let yields =
            given_options.iter().any(|given| conflicts(argument, given) || conflicts(given, argument))
                || GIVES_WAY.iter().any(|(of, way, given)| {
                    *of == name && way == option && given.iter().any(|given| is_among_given(given))
                });
        if is_off || yields || is_given(argument) || is_among_given(&opposite(option)) {
            continue;
        }
        found.push((argument.get_id().to_string(), value.words.clone()));
    }
    found
}

fn with_defaults(mut command: clap::Command, defaults: Vec<(String, Vec<OsString>)>) -> clap::Command {
    for (id, words) in defaults {
        command = command.mut_arg(id, |argument| argument.required(false).default_values(words));
    }
    command
}
