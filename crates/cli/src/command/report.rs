//! `heaptally report`: prints a profile.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use heaptally_profile::model::{Metric, Profile};
use heaptally_profile::view::Sort;
use heaptally_report::escape::escape;
use heaptally_report::{Layout, Options, csv, folded, json, text};

use crate::baseline::{State, state};
use crate::convert::is_complete;
use crate::exit::{Failure, UNREADABLE, USAGE};
pub(crate) use crate::input::read;
use crate::message::{self, quote};
use crate::selection::{SelectionArgs, project};
use crate::terminal::{LEAST_COLUMNS, color, print, width};

/// How many lines of each window are printed unless it is said.
const LIMIT: usize = 20;

/// Prints a profile: per window a head line, and its stacks sorted by count.
///
/// The first line of a stack is its call site: the innermost frame that is not an allocator's, the C library's, or a
/// language's standard library's. Below it stands what it called, and from where it was called.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A profile that `heaptally run` wrote, or a file of another tool: pprof, heaptrack, DHAT, gperftools, jemalloc,
    /// bpftrace, dtrace, folded stacks.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    show: ShowArgs,
    /// Exit with 4 if anything was lost or not seen, or any stack was cut.
    #[arg(long)]
    strict: bool,
}

/// How a profile is shown.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
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
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    limit: usize,
    /// Sum up what has fewer allocations per iteration.
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = number)]
    min: f64,
    /// Show every frame, on a line of its own; nothing is folded.
    #[arg(long)]
    pub(crate) full: bool,
    /// Cut names so that what stands behind the numbers ends at this column; 0: never [default: the terminal's width;
    /// never in a pipe].
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    /// In which form to print. json, folded and csv hold all stacks, json those before the first window too; folded has
    /// the values that are sorted by.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
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

/// A number that others can be compared with.
fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() { Ok(number) } else { Err("not a finite number".to_owned()) }
}

impl Report {
    /// Prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let profile = read(&self.file)?;
        if let State::Stale(why) = state(&self.file) {
            message::print(&format!("note: {} is of an earlier run: {why}", quote(&self.file)));
        }
        show(profile, &self.file, &self.selection, &self.show, self.strict)
    }
}

/// Prints the profile of a file.
pub(crate) fn show(
    profile: Profile,
    file: &Path,
    selection: &SelectionArgs,
    show: &ShowArgs,
    is_strict: bool,
) -> anyhow::Result<u8> {
    let format = if show.json { Format::Json } else { show.format };
    show.check(&profile, format, file)?;
    let options = show.options(&profile, selection, file)?;
    let text = match format {
        Format::Text => text::text(&profile, &options),
        Format::Json => json::json(&profile, &options),
        Format::Folded => folded::folded(&profile, &options),
        Format::Csv => csv::csv(&profile, &options),
    };
    print(&text)?;
    let is_complete = is_complete(&profile);
    // PERF: a large profile is many small parts, and the process ends anyway: 10 % of the time for 65,536 stacks.
    std::mem::forget(profile);
    if is_strict && !is_complete {
        return Err(Failure::new(
            UNREADABLE,
            "--strict: stacks were cut, or something was lost or not seen: the report says what\n\
             leave --strict out to accept that",
        )
        .into());
    }
    Ok(0)
}

impl ShowArgs {
    /// Options that would be ignored, or tell what is not known, are refused.
    fn check(&self, profile: &Profile, format: Format, file: &Path) -> Result<(), Failure> {
        if format != Format::Text
            && (self.tree.is_some() || self.by != By::Stack || self.full || self.min > 0.0)
        {
            return Err(Failure::new(
                USAGE,
                "--by, --tree, --full and --min are of the text form: the others hold every stack whole\n\
                 leave them out, or --format",
            ));
        }
        if self.full && self.by == By::Site {
            return Err(Failure::new(USAGE, "--by site shows no whole stacks\nleave out --full, or --by"));
        }
        let environment = &profile.environment;
        let unknown = match self.sort {
            SortBy::Count => return Ok(()),
            SortBy::Bytes if environment.knows(Metric::Bytes) => return Ok(()),
            SortBy::Bytes => "how many bytes were allocated",
            SortBy::Temporary if !environment.knows(Metric::Temporary) => "which blocks were temporary",
            SortBy::Live | SortBy::Temporary if environment.lifetimes => return Ok(()),
            SortBy::Live | SortBy::Temporary => "what was freed",
        };
        let why = match &environment.origin {
            Some(origin) => format!("it is a {}\nsort by count", escape(&origin.format)),
            None => "it was recorded with --no-lifetimes\nsort by count or bytes, or record again".to_owned(),
        };
        Err(Failure::new(UNREADABLE, format!("{} does not know {unknown}: {why}", quote(file))))
    }

    /// Whether anything is asked for that only a report has.
    pub(crate) fn is_stated(&self) -> bool {
        self.sort != SortBy::Count
            || self.by != By::Stack
            || self.tree.is_some()
            || self.limit != LIMIT
            || self.min > 0.0
            || self.format != Format::Text
            || self.json
    }

    fn options(&self, profile: &Profile, selection: &SelectionArgs, file: &Path) -> Result<Options, Failure> {
        let layout = match (self.tree, self.by) {
            (Some(Tree::TopDown), _) => Layout::TopDown,
            (Some(Tree::BottomUp), _) => Layout::BottomUp,
            (None, By::Stack) => Layout::Stack,
            (None, By::Site) => Layout::Site,
            (None, By::Function) => Layout::Function,
        };
        Ok(Options {
            selection: selection.selection(profile, file)?,
            sort: match self.sort {
                SortBy::Count => Sort::Count,
                SortBy::Bytes => Sort::Bytes,
                SortBy::Live => Sort::Live,
                SortBy::Temporary => Sort::Temporary,
            },
            rules: selection.rules()?,
            limit: self.limit,
            min: self.min,
            layout,
            full: self.full,
            color: io::stdout().is_terminal() && color(),
            width: match self.width {
                Some(0) => None,
                Some(columns) => Some(columns.max(LEAST_COLUMNS)),
                None => width(io::stdout()),
            },
            project: project(),
        })
    }
}
