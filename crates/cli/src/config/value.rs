//! The values of all options, with where each comes from.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ValueHint};

use super::document::{Document, Entry, Given, dotted, find, shown};
use super::key::{CONFIGURABLE, OTHER_VARIABLES, SETTINGS, variable};
use super::place::Place;
use super::{ConfigArgs, Settings};
use crate::exit::{Failure, USAGE};
use crate::message::quote;

/// Names another file.
const FILE_VARIABLE: &str = "HEAPTALLY_CONFIG";

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File(Place),
    Variable(String),
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// As the command line would have them; of a switch `true` or `false`.
    pub(crate) words: Vec<OsString>,
    pub(crate) source: Source,
}

/// All that is configured.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The file, as it is shown.
    pub(crate) file: Option<String>,
    /// By the command's words and the option.
    pub(crate) options: BTreeMap<(&'static str, &'static str), Value>,
    /// By the key.
    pub(crate) setting_values: BTreeMap<&'static str, Value>,
    /// Keys of rules for call sites, and where they stand.
    pub(crate) rule_keys: Vec<(String, Place)>,
    pub(crate) settings: Settings,
    /// Variables with heaptally's prefix that are no keys.
    pub(crate) unknown_variables: Vec<String>,
}

impl Config {
    /// Reads the file and the environment, and checks both. `tree` is the built command.
    pub(crate) fn load(choice: &ConfigArgs, tree: &clap::Command) -> Result<Self, Failure> {
        let document = file(choice)?.map(|path| Document::read(&path)).transpose()?;
        let mut config = Self::default();
        if let Some(document) = document {
            config.add_file(document, tree)?;
        }
        config.add_environment(tree)?;
        let path = |key| {
            let value: Option<&Value> = config.setting_values.get(key);
            value.and_then(|value| value.words.first()).map(PathBuf::from)
        };
        config.settings.baseline_folder = path("baseline-folder");
        config.settings.cache_folder = path("cache-folder");
        Ok(config)
    }

    /// The value of an option of a command.
    pub(crate) fn value(&self, command: &str, option: &str) -> Option<&Value> {
        self.options.iter().find(|((of, name), _)| *of == command && *name == option).map(|(_, value)| value)
    }

    fn add_file(&mut self, document: Document, tree: &clap::Command) -> Result<(), Failure> {
        // What stands in a command's table is more than what stands at the top.
        let mut entries: Vec<&Entry> = document.entries.iter().collect();
        entries.sort_by_key(|entry| !entry.command.is_empty());
        for entry in entries {
            let source = Source::File(entry.place);
            if let Some((key, _)) =
                SETTINGS.iter().find(|(key, _)| entry.command.is_empty() && *key == entry.key)
            {
                let Given::One(word) = &entry.given else {
                    let what = format!("{} is one path, not {}", quote(key), entry.given.shown());
                    return Err(document.refuse(entry.place, &what, "write it as a string"));
                };
                let words = vec![document.folder.join(word).into_os_string()];
                self.setting_values.insert(key, Value { words, source });
                continue;
            }
            for (command, options) in CONFIGURABLE {
                if !entry.command.is_empty() && entry.command != *command {
                    continue;
                }
                let Some(option) = options.iter().find(|option| **option == entry.key) else { continue };
                let refuse = |why: String| {
                    let next = if entry.command.is_empty() {
                        format!(
                            "it stands for every command; [{}] can have its own, or see `heaptally {command} --help`",
                            dotted(command)
                        )
                    } else {
                        format!("see `heaptally {command} --help`")
                    };
                    document.refuse(entry.place, &why, &next)
                };
                let words = words(tree, command, option, &entry.given, &document.folder).map_err(refuse)?;
                self.options.insert((command, option), Value { words, source: source.clone() });
            }
        }
        self.file = Some(document.shown);
        self.settings.rules = document.rules;
        self.rule_keys = document.rule_keys;
        Ok(())
    }

    fn add_environment(&mut self, tree: &clap::Command) -> Result<(), Failure> {
        let mut known: Vec<String> = OTHER_VARIABLES.iter().map(|name| (*name).to_owned()).collect();
        let refuse = |name: &str, why: &str, next: &str| {
            Failure::new(USAGE, format!("the environment variable {name}: {why}\n{next}"))
        };
        for (key, _) in SETTINGS {
            let name = variable("", key);
            if let Some(value) = set(&name) {
                let path = std::path::absolute(&value).map_err(|error| {
                    refuse(&name, &format!("{} is no path: {error}", quote(&value)), "unset it")
                })?;
                let words = vec![path.into_os_string()];
                self.setting_values.insert(key, Value { words, source: Source::Variable(name.clone()) });
            }
            known.push(name);
        }
        for (command, options) in CONFIGURABLE {
            for option in *options {
                let names = [variable("", option), variable(command, option)];
                for name in &names {
                    let Some(value) = set(name) else { continue };
                    let words = words_of_variable(tree, command, option, value)
                        .map_err(|why| refuse(name, &why, "set it to another value, or unset it"))?;
                    let source = Source::Variable(name.clone());
                    self.options.insert((command, option), Value { words, source });
                }
                known.extend(names);
            }
        }
        let ours = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        self.unknown_variables =
            ours.filter(|name| name.starts_with("HEAPTALLY_") && !known.contains(name)).collect();
        self.unknown_variables.sort();
        Ok(())
    }
}

/// The file that is used, if there is one.
fn file(choice: &ConfigArgs) -> Result<Option<PathBuf>, Failure> {
    if choice.no_config {
        return Ok(None);
    }
    if let Some(path) = &choice.config {
        return Ok(Some(path.clone()));
    }
    if let Some(path) = set(FILE_VARIABLE) {
        return Ok(Some(path.into()));
    }
    // A working folder that is gone has no configuration.
    Ok(env::current_dir().ok().and_then(|folder| find(&folder)))
}

/// A variable that is set; an empty one is not.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The argument of an option.
pub(crate) fn argument<'c>(tree: &'c clap::Command, command: &str, option: &str) -> Option<&'c Arg> {
    let command = command.split(' ').try_fold(tree, |tree, word| tree.find_subcommand(word))?;
    command.get_arguments().find(|argument| argument.get_long() == Some(option))
}

fn is_switch(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

fn is_list(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
}

/// A value of the file as words of the command line, checked.
fn words(
    tree: &clap::Command,
    command: &str,
    option: &str,
    given: &Given,
    folder: &Path,
) -> Result<Vec<OsString>, String> {
    let Some(argument) = argument(tree, command, option) else {
        return Err(format!("`{command}` has no option {}", quote(option)));
    };
    let words = match given {
        Given::Switch(value) if is_switch(argument) => return Ok(vec![value.to_string().into()]),
        _ if is_switch(argument) => {
            return Err(format!("{} is true or false, not {}", quote(option), given.shown()));
        }
        Given::Switch(_) => {
            return Err(format!("{} takes a value, not {}", quote(option), given.shown()));
        }
        Given::One(word) => std::slice::from_ref(word),
        Given::Many(words) if is_list(argument) => words,
        Given::Many(_) => {
            return Err(format!("{} takes one value, not a list", quote(option)));
        }
    };
    let words = words.iter().map(|word| in_folder(argument, folder, word)).collect();
    check(tree, command, option, words)
}

/// A path in the file is relative to the folder of the configuration.
fn in_folder(argument: &Arg, folder: &Path, word: &str) -> OsString {
    let is_path =
        matches!(argument.get_value_hint(), ValueHint::FilePath | ValueHint::DirPath | ValueHint::AnyPath);
    // What may be a saved name is one where it does not look like a file.
    let is_name = argument.get_long() == Some("baseline") && !crate::baseline::names_file(word.as_ref());
    if is_path && !is_name { folder.join(word).into_os_string() } else { word.into() }
}

/// A variable's value as words of the command line, checked: of a list each line is one.
fn words_of_variable(
    tree: &clap::Command,
    command: &str,
    option: &str,
    value: OsString,
) -> Result<Vec<OsString>, String> {
    let Some(argument) = argument(tree, command, option) else {
        return Err(format!("`{command}` has no option {}", quote(option)));
    };
    if is_switch(argument) {
        return match value.as_bytes() {
            b"1" | b"true" => Ok(vec!["true".into()]),
            b"0" | b"false" => Ok(vec!["false".into()]),
            _ => Err(format!("it is 1 or true, 0 or false, not {}", quote(&value))),
        };
    }
    let words = if is_list(argument) {
        let lines = value.as_bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| OsString::from_vec(line.to_vec())).collect()
    } else {
        vec![value]
    };
    check(tree, command, option, words)
}

/// Has clap judge the words as it would on the command line.
fn check(
    tree: &clap::Command,
    command: &str,
    option: &str,
    words: Vec<OsString>,
) -> Result<Vec<OsString>, String> {
    for word in &words {
        let mut line: Vec<OsString> =
            ["heaptally"].into_iter().chain(command.split(' ')).map(Into::into).collect();
        let mut argument = OsString::from(format!("--{option}="));
        argument.push(word);
        line.push(argument);
        // That other words are missing here is no fault of this one.
        let Err(error) = tree.clone().try_get_matches_from(line) else { continue };
        if matches!(
            error.kind(),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::InvalidUtf8
        ) {
            let text = error.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let lines = text.split("\n\n").next().unwrap_or_default().lines().map(str::trim);
            return Err(lines.collect::<Vec<_>>().join("; "));
        }
    }
    Ok(words)
}

/// For people: where a value comes from.
pub(crate) fn source_text(config: &Config, source: &Source) -> String {
    match source {
        Source::File(place) => format!("{}:{}", config.file.as_deref().unwrap_or_default(), place.line),
        Source::Variable(name) => name.clone(),
    }
}

/// For people: a path that is configured.
pub(crate) fn word_text(word: &std::ffi::OsStr) -> String {
    shown(Path::new(word))
}
