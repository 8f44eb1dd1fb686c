//! The options that say which stacks are looked at, for every command that reads profiles.

use std::borrow::Cow;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptally_profile::call_site::Rules;
use heaptally_profile::check::{Unmeasured, Why};
use heaptally_profile::model::Profile;
use heaptally_profile::path_text::escape_path;
use heaptally_profile::short_name;
use heaptally_profile::view::Selection;
use regex::Regex;

use crate::config::settings;
use crate::exit::{Failure, UNREADABLE, USAGE};
use crate::function::near::nearest_names;
use crate::message::{quote, text};

/// More than any file of rules holds.
const MAX_RULES_BYTES: u64 = 1 << 20;
/// So many windows are listed.
const MAX_LISTED: usize = 10;

/// Which stacks of which windows.
#[derive(Args, Debug)]
#[command(next_help_heading = "Which stacks")]
pub(crate) struct SelectionArgs {
    /// This window only; can be given several times.
    #[arg(long, value_name = "NAME")]
    window: Vec<String>,
    /// Only stacks with a frame that fits, without the callers of the outermost one. A frame fits by its function's
    /// name (whole, or as reports print it) or its source file, in any part; of several patterns one has to fit.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    under: Vec<Regex>,
    /// Only stacks with a frame that fits.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    filter: Vec<Regex>,
    /// Only stacks without a frame that fits.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    exclude: Vec<Regex>,
    /// Only stacks of threads whose outermost function fits, that of start-up code aside.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    root: Vec<Regex>,
    /// More rules for call sites: frames that this file lists are folded too. heaptally's own list explains its form:
    /// crates/profile/rules/call_site.txt.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rules: Vec<PathBuf>,
}

/// A pattern of the command line.
pub(crate) fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

impl SelectionArgs {
    /// The selection of a profile of `file`; every window that is asked for must be there.
    pub(crate) fn selection(&self, profile: &Profile, file: &Path) -> Result<Selection, Failure> {
        self.selection_of([(profile, file)])
    }

    /// The selection of several profiles with their files; every window that is asked for must be in one of them.
    pub(crate) fn selection_of<const N: usize>(
        &self,
        profiles: [(&Profile, &Path); N],
    ) -> Result<Selection, Failure> {
        let is_there = |name: &str| {
            profiles.iter().any(|(profile, _)| profile.windows.iter().any(|window| window.name == name))
        };
        // As profiles show it, or as the program and `run --window` name it: a backslash stands for two.
        let shown = |name: &String| {
            let escaped = escape_path(name.as_bytes());
            if !is_there(name) && is_there(&escaped) { escaped } else { name.clone() }
        };
        let selection = Selection {
            windows: self.window.iter().map(shown).collect(),
            under: self.under.clone(),
            filter: self.filter.clone(),
            exclude: self.exclude.clone(),
            root: self.root.clone(),
        };
        let lacks = |name: &&String| !is_there(name);
        let Some(name) = selection.windows.iter().find(lacks) else { return Ok(selection) };
        let (name, mut lines) = (quote(name), Vec::new());
        for (profile, file) in profiles {
            let mut known: Vec<String> =
                profile.windows.iter().take(MAX_LISTED).map(|window| quote(&window.name)).collect();
            if profile.windows.len() > MAX_LISTED {
                known.push(format!("{} more", profile.windows.len() - MAX_LISTED));
            }
            lines.push(format!("{} has no window {name}\nit has {}", quote(file), known.join(", ")));
        }
        Err(Failure::new(UNREADABLE, lines.join("\n")))
    }

    /// The files of rules.
    pub(crate) fn rule_files(&self) -> &[PathBuf] {
        &self.rules
    }

    /// The embedded rules and those of the user's files.
    pub(crate) fn rules(&self) -> Result<Rules, Failure> {
        let mut rules = Rules::embedded().clone();
        rules.extend(&settings().rules);
        for file in &self.rules {
            let refuse =
                |why: String| Failure::new(USAGE, format!("cannot use the rules {}: {why}", quote(file)));
            let mut bytes = Vec::new();
            let read =
                File::open(file).and_then(|file| file.take(MAX_RULES_BYTES + 1).read_to_end(&mut bytes));
            read.map_err(|error| refuse(error.to_string()))?;
            if bytes.len() as u64 > MAX_RULES_BYTES {
                return Err(refuse(format!(
                    "it is larger than {MAX_RULES_BYTES} bytes\nname a file of rules"
                )));
            }
            let text =
                text(&bytes).map_err(|line| refuse(format!("line {line}: not UTF-8\nsave it as UTF-8")))?;
            rules.extend(&Rules::parse(text).map_err(|error| refuse(error.to_string()))?);
        }
        Ok(rules)
    }
}

/// What to do where no stack of the profiles fits patterns, each given with its kind (as [`Selection::patterns`] has it).
/// `fit_in_background`: stacks do of windows that are not looked at unless they are asked for.
pub(crate) fn advice<'p>(
    patterns: impl IntoIterator<Item = (&'p str, &'p str)>,
    profiles: &[&Profile],
    fit_in_background: bool,
) -> String {
    if fit_in_background {
        return "stacks of a window do that is not compared unless it is asked for: --window process"
            .to_owned();
    }
    let functions = profiles.iter().flat_map(|profile| &profile.functions);
    let names: Vec<Cow<'_, str>> = functions
        .map(|function| {
            let [name, _] = short_name::shown(&function.name, short_name::Language::of(function));
            name
        })
        .collect();
    let near: Vec<String> = patterns
        .into_iter()
        .filter(|(kind, _)| *kind != "exclude")
        .flat_map(|(_, pattern)| nearest_names(&literal(pattern), names.iter().map(Cow::as_ref)))
        .map(quote)
        .collect();
    match near.is_empty() {
        true => {
            "no function has a name that is like it; `heaptally report --by function` lists them".to_owned()
        }
        false => format!("functions with names like it: {}", near.join(", ")),
    }
}

/// As [`advice`], if that is why something was not measured.
pub(crate) fn unfit_advice(found: &[Unmeasured], profiles: &[&Profile]) -> Option<String> {
    found.iter().find_map(|unmeasured| match &unmeasured.why {
        Why::NothingFits { patterns, fit_in_background } => {
            let patterns = patterns.iter().map(|(kind, pattern)| (*kind, pattern.as_str()));
            Some(advice(patterns, profiles, *fit_in_background))
        }
        _ => None,
    })
}

/// What a pattern says without its marks.
fn literal(pattern: &str) -> String {
    pattern.replace("\\b", "").replace(['^', '$', '\\'], "").replace(".*", "")
}

/// The folder of the user's sources: the repository that holds the working folder, or else that folder.
pub(crate) fn project() -> Option<String> {
    let folder = env::current_dir().ok()?;
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists());
    let project = repository.unwrap_or(&folder).to_str()?.trim_end_matches('/');
    (!project.is_empty()).then(|| project.to_owned())
}
