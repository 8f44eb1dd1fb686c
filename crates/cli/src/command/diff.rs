//! `heaptally diff`: compares two profiles.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use heaptally_profile::diff::{Diff as Comparison, DiffOptions, diff};
use heaptally_profile::merge::make_comparable;
use heaptally_profile::view::{Selection, Sort, is_in_background};
use heaptally_report::text::diff::{Show, text};
use heaptally_report::{
    Options, diff_folded::diff_folded, diff_json::diff_json, diff_markdown::diff_markdown,
};
use regex::Regex;

use crate::baseline::{require_same, resolve_file};
use crate::command::report::read;
use crate::config::settings;
use crate::exit::{Failure, REGRESSION, UNREADABLE};
use crate::message::quote;
use crate::selection::{SelectionArgs, advice, project, regex};
use crate::terminal::{color, print, width};

/// So many windows are named.
const MOST_LISTED: usize = 10;

/// Compares two profiles: which call sites allocate more, which less. The first line is the answer.
///
/// Stacks are paired although they were built differently: inlined functions, names of clones and closures, hashes, line
/// numbers and folders of sources are no differences. Numbers are compared per iteration.
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// The profile to compare with: a file, or a saved baseline's name (of the two, where there are both, the
    /// name, unless there is a slash in it or it ends in .pb.gz).
    #[arg(value_hint = ValueHint::FilePath)]
    base: PathBuf,
    /// The profile that is compared, a file or a name.
    #[arg(value_hint = ValueHint::FilePath)]
    change: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Only stacks with a frame that fits in the base or in the change. Other than by --filter, stacks are paired before.
    /// Exit with 4 if no stack of a window that both have does: then nothing was compared.
    #[arg(long, value_name = "REGEX", value_parser = regex, help_heading = "Which stacks")]
    stack: Vec<Regex>,
    /// A recursion is the same however deep it is.
    #[arg(long)]
    fold_recursion: bool,
    /// Instances of a generic function or a template are one.
    #[arg(long)]
    fold_generics: bool,
    /// What to sort by, the greatest difference first.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = SortBy::Count)]
    sort: SortBy,
    /// Print a tree of functions, with the differences carried up to their callers.
    #[arg(long)]
    tree: bool,
    /// Print how each stack was paired, frame by frame; with --stack, of these only.
    #[arg(long, conflicts_with = "tree")]
    explain: bool,
    /// How many lines to print of each window; 0: all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Sum up what changed by fewer allocations per iteration; in a tree a caller stays for what it calls.
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    min: f64,
    /// Show every frame, on a line of its own; nothing is folded.
    #[arg(long)]
    full: bool,
    /// Cut names so that lines take at most so many columns; 0: never [default: as the terminal has; never in a pipe].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// In which form to print. json and folded hold everything; folded has the values that are sorted by, of both sides.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Exit with 4 if the profiles are not of the same compilers, C library, allocator and machine: a note says so
    /// otherwise.
    #[arg(long)]
    same_environment: bool,
    /// Exit with 3 if anything differs: a call site, or a window that one side alone has and in which it allocates. (With
    /// or without this, exit with 4 if no window is on both sides: then nothing was compared.)
    #[arg(long)]
    exit_code: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortBy {
    /// Allocations.
    Count,
    /// Allocated bytes.
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object, which crates/report/schema describes.
    Json,
    /// For a comment on a change.
    Markdown,
    /// For differential flame graphs.
    Folded,
}

impl Diff {
    /// Compares and prints.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let [base_file, change_file] = [&self.base, &self.change].map(|word| resolve_file(word, settings()));
        let (base_file, change_file) = (base_file?, change_file?);
        // PERF: reading is most of the time for very many stacks.
        let (base, change) = std::thread::scope(|scope| {
            let base = scope.spawn(|| read(&base_file));
            let change = read(&change_file);
            (base.join(), change)
        });
        let base = base.map_err(|_| anyhow::anyhow!("a thread that read {} failed", quote(&base_file)))?;
        let (mut base, mut change) = (base?, change?);
        make_comparable(&mut base, &mut change).map_err(|error| self.refuse(&error))?;
        let sort = match self.sort {
            SortBy::Count => Sort::Count,
            SortBy::Bytes => Sort::Bytes,
        };
        let selection = self.selection.selection_of([(&base, &base_file), (&change, &change_file)])?;
        let rules = self.selection.rules()?;
        let diff_options = DiffOptions {
            selection: selection.clone(),
            stack: self.stack.clone(),
            sort,
            rules: rules.clone(),
            fold_recursion: self.fold_recursion,
            fold_generics: self.fold_generics,
        };
        let diff = diff(&base, &change, &diff_options);
        let has_windows = diff.compared().next().is_some();
        if has_windows {
            self.require_stacks(&diff, &diff_options.selection)?;
        }
        if self.same_environment {
            require_same(&diff.conditions)?;
        }
        let options = Options {
            selection,
            sort,
            rules,
            limit: self.limit,
            min: self.min,
            full: self.full,
            color: io::stdout().is_terminal() && color(),
            width: match self.width {
                Some(0) => None,
                Some(columns) => Some(columns),
                None => width(io::stdout()),
            },
            project: project(),
            ..Options::default()
        };
        let show = match (self.tree, self.explain) {
            (true, _) => Show::Tree,
            (false, true) => Show::Pairing,
            (false, false) => Show::Entries,
        };
        print(&match if self.json { Format::Json } else { self.format } {
            Format::Text => text(&diff, &options, show),
            Format::Json => diff_json(&diff, &options),
            Format::Markdown => diff_markdown(&diff, &options),
            Format::Folded => diff_folded(&diff, &options),
        })?;
        if !has_windows {
            return Err(self.without_windows(&diff).into());
        }
        let differs = diff.differs();
        // PERF: as for a report: the process ends anyway.
        std::mem::forget(diff);
        std::mem::forget((base, change));
        Ok(if self.exit_code && differs { REGRESSION } else { 0 })
    }

    /// Refuses patterns that no stack fits: nothing was compared then, and nothing differs.
    fn require_stacks(&self, diff: &Comparison<'_>, selection: &Selection) -> Result<(), Failure> {
        let own = self.stack.iter().map(|pattern| ("stack", pattern));
        let patterns: Vec<(&str, &Regex)> = own.chain(selection.patterns()).collect();
        if patterns.is_empty() || diff.recorded_stacks == 0 || diff.compared_stacks() > 0 {
            return Ok(());
        }
        let words: Vec<String> =
            patterns.iter().map(|(kind, pattern)| quote(format!("--{kind} {pattern}"))).collect();
        let (base, change, words) = (quote(&self.base), quote(&self.change), words.join(", "));
        let mut alone =
            diff.unpaired.iter().flatten().filter(|view| !view.in_background && !view.rows.is_empty());
        if let Some(view) = alone.next() {
            let message = format!(
                "nothing was compared: stacks that fit {words} are in {} only, a window of one side\n\
                 record {base} and {change} with the same windows",
                quote(&view.window.name)
            );
            return Err(Failure::new(UNREADABLE, message));
        }
        let mut message = if patterns.iter().all(|(kind, _)| *kind == "exclude") {
            format!("nothing was compared: every stack of {base} and {change} has a frame that fits {words}")
        } else {
            let patterns = patterns.iter().map(|(kind, pattern)| (*kind, pattern.as_str()));
            let advice = advice(patterns, &diff.profiles, diff.background_stacks() > 0);
            format!("nothing was compared: no stack of {base} or {change} fits {words}\n{advice}")
        };
        if self.exit_code && !self.stack.is_empty() {
            message.push_str("\nto look for a commit that added a stack, compare with a profile that has it");
        }
        Err(Failure::new(UNREADABLE, message))
    }

    /// Nothing was compared since no window is on both sides.
    fn without_windows(&self, diff: &Comparison<'_>) -> Failure {
        let names = |side: usize| {
            let profile = diff.profiles[side];
            let windows = profile.windows.iter().filter(|window| !is_in_background(profile, window));
            let names: Vec<String> = windows.take(MOST_LISTED).map(|window| quote(&window.name)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let message = format!(
            "nothing was compared: no window is on both sides\n{} has {}, {} has {}",
            quote(&self.base),
            names(0),
            quote(&self.change),
            names(1)
        );
        Failure::new(UNREADABLE, message)
    }

    fn refuse(&self, error: &heaptally_profile::Error) -> Failure {
        let (base, change) = (quote(&self.base), quote(&self.change));
        Failure::new(UNREADABLE, format!("cannot compare {base} with {change}: {error}"))
    }
}
