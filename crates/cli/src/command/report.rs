//! `heaptally report`: prints a profile.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use heaptally_profile::model::Profile;
use heaptally_profile::pprof;
use heaptally_profile::view::Sort;
use heaptally_report::{Layout, Options, csv, folded, json, text};

use crate::convert::is_complete;
use crate::exit::{Failure, UNREADABLE};
use crate::message::quote;
use crate::selection::{SelectionArgs, project};
use crate::terminal::{color, print, width};

/// Prints a profile: per window a head line, and its stacks sorted by count.
///
/// The first line of a stack is its call site: the innermost frame that is not an allocator's, the C library's, or a
/// language's standard library's. Below it stands what it called, and from where it was called.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A profile that `heaptally run` wrote.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    /// What to sort by, most first.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = SortBy::Count)]
    sort: SortBy,
    /// What a line stands for.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = By::Stack)]
    by: By,
    /// Print a tree of functions with their counts carried up, from where threads begin or, bottom-up, from call
    /// sites.
    #[arg(long, value_name = "DIRECTION", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "top-down", conflicts_with = "by")]
    tree: Option<Tree>,
    /// How many lines to print of each window; 0: all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Sum up what has fewer allocations per iteration.
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    min: f64,
    /// Show every frame, on a line of its own; nothing is folded.
    #[arg(long)]
    full: bool,
    /// Cut names so that what stands behind the numbers ends at this column; 0: never [default: the terminal's width;
    /// never in a pipe].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// In which form to print. json, folded and csv hold all stacks; folded has the values that are sorted by.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Exit with 4 if anything was lost or not seen, or any stack was cut.
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortBy {
    /// Allocations.
    Count,
    /// Allocated bytes.
    Bytes,
    /// Blocks not freed while the window was open.
    Live,
    /// Blocks freed by their thread before its next allocation.
    Temporary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// A call stack.
    Stack,
    /// A call site, all of its stacks together.
    Site,
    /// A function: what it allocates itself, and with all that it calls.
    Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tree {
    /// From where threads begin.
    TopDown,
    /// From call sites.
    BottomUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object, which crates/report/schema describes.
    Json,
    /// For flamegraph.pl and inferno.
    Folded,
    /// For spreadsheets.
    Csv,
}

impl Report {
    /// Prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let profile = read(&self.file)?;
        let options = self.options(&profile)?;
        let text = match if self.json { Format::Json } else { self.format } {
            Format::Text => text::text(&profile, &options),
            Format::Json => json::json(&profile, &options),
            Format::Folded => folded::folded(&profile, &options),
            Format::Csv => csv::csv(&profile, &options),
        };
        print(&text)?;
        let is_complete = is_complete(&profile);
        // PERF: a large profile is many small parts, and the process ends anyway: 10 % of the time for 65,536 stacks.
        std::mem::forget(profile);
        if self.strict && !is_complete {
            return Err(Failure::new(
                UNREADABLE,
                "--strict: stacks were cut, or something was lost or not seen: the report says what\n\
                 leave --strict out to accept that",
            )
            .into());
        }
        Ok(0)
    }

    fn options(&self, profile: &Profile) -> Result<Options, Failure> {
        let layout = match (self.tree, self.by) {
            (Some(Tree::TopDown), _) => Layout::TopDown,
            (Some(Tree::BottomUp), _) => Layout::BottomUp,
            (None, By::Stack) => Layout::Stack,
            (None, By::Site) => Layout::Site,
            (None, By::Function) => Layout::Function,
        };
        Ok(Options {
            selection: self.selection.selection(profile, &self.file)?,
            sort: match self.sort {
                SortBy::Count => Sort::Count,
                SortBy::Bytes => Sort::Bytes,
                SortBy::Live => Sort::Live,
                SortBy::Temporary => Sort::Temporary,
            },
            rules: self.selection.rules()?,
            limit: self.limit,
            min: self.min,
            layout,
            full: self.full,
            color: io::stdout().is_terminal() && color(),
            width: match self.width {
                Some(0) => None,
                Some(columns) => Some(columns),
                None => width(io::stdout()),
            },
            project: project(),
        })
    }
}

/// Reads a profile's file.
pub(crate) fn read(file: &Path) -> Result<Profile, Failure> {
    let refuse = |why: String| Failure::new(UNREADABLE, format!("cannot read {}: {why}", quote(file)));
    let bytes =
        fs::read(file).map_err(|error| refuse(format!("{error}\nname a file that `heaptally run` wrote")))?;
    pprof::read(&bytes).map_err(|error| refuse(error.to_string()))
}
