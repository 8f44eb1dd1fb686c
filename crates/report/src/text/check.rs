//! A verdict for people: the answer, which limits are broken and by how much, and the guilty stacks.
//!
//! ```text
//! FAILED: +1.00 allocs/iter (new) in "parse": Parser::name  src/parser.rs:118
//!
//! error: window "parse": 76.00 allocs/iter, at most 75.00 allowed (+1.00): limits.toml:4
//!
//! window "parse"
//!   allocs/iter  B/iter  change  call site
//!         +1.00     +24     new  Parser::name  src/parser.rs:118
//!                                  was not allocating before
//!
//! note: window "print" is new: the base does not have it
//! 2 limits in 2 windows: 1 error, 0 warnings
//! ```

use heaptally_profile::call_site::CallSites;
use heaptally_profile::check::{Guilty, Verdict, WindowAt};
use heaptally_profile::diff::Entry;
use heaptally_profile::limit::Severity;
use heaptally_profile::view::WindowView;

use super::Context;
use super::diff::{Sides, table as diff_table};
use super::page::Page;
use super::stack::{self, Parts};
use super::table::{Columns, Place, Table};
use crate::Options;
use crate::escape::quote;
use crate::number::counted;
use crate::verdict::{Level, Statement, answer, of_pair, statements};

pub use crate::verdict::reason;

/// How many lines a verdict takes that is not to fill a screen.
pub const MOST_LINES: usize = 40;
/// How many statements of it stand before the stacks.
const MOST_STATEMENTS: usize = 12;
/// How many stacks of one, where the table does not show the count.
const MOST_SITES: usize = 3;

/// A verdict. With `is_strict` notes that fail it are errors. With `brief` it takes [`MOST_LINES`] lines, and the name of
/// the file with all of it is the last one.
pub fn text(verdict: &Verdict<'_>, options: &Options, is_strict: bool, brief: Option<&str>) -> String {
    let whole = Writer { verdict, options, is_strict, most: usize::MAX }.text();
    let (Some(file), true) = (brief, whole.lines().count() > MOST_LINES) else { return whole };
    let part = Writer { verdict, options, is_strict, most: MOST_STATEMENTS }.text();
    let lines: Vec<&str> = part.lines().collect();
    let shown = lines.len().min(MOST_LINES - 2);
    let mut text: String = lines.iter().take(shown).map(|line| format!("{line}\n")).collect();
    let ending = whole.lines().last().unwrap_or_default();
    let left = whole.lines().count().saturating_sub(shown);
    text.push_str(&format!("… {}: {file}\n{ending}\n", counted(left as u64, "more line", "more lines")));
    text
}

/// Whether the whole takes more lines than a brief verdict has.
pub fn is_long(verdict: &Verdict<'_>, options: &Options, is_strict: bool) -> bool {
    text(verdict, options, is_strict, None).lines().count() > MOST_LINES
}

struct Writer<'a, 'p> {
    verdict: &'a Verdict<'p>,
    options: &'a Options,
    is_strict: bool,
    most: usize,
}

impl Writer<'_, '_> {
    fn text(&self) -> String {
        let statements = statements(self.verdict, self.options, self.is_strict);
        let mut page = Page::new(self.options.color);
        page.head(&answer(self.verdict, &statements, self.is_strict));
        let grave = |statement: &&Statement| statement.level == Level::Error || !statement.sites.is_empty();
        let (first, rest): (Vec<&Statement>, Vec<&Statement>) = statements.iter().partition(grave);
        if !first.is_empty() {
            page.line("");
        }
        self.statements(&mut page, &first);
        self.stacks(&mut page);
        if !rest.is_empty() {
            page.line("");
        }
        self.statements(&mut page, &rest);
        if !statements.is_empty() {
            page.line("");
            page.line(&ending(self.verdict, &statements));
        }
        page.text()
    }

    fn statements(&self, page: &mut Page, statements: &[&Statement]) {
        for statement in statements.iter().take(self.most) {
            page.line(&format!("{}: {}", statement.level.word(), statement.text()));
            if statement.has_no_column() {
                for site in statement.sites.iter().take(MOST_SITES) {
                    page.line(&format!("  {}: {}", site.amount, site.text()));
                }
            }
        }
        if statements.len() > self.most {
            let more = (statements.len() - self.most) as u64;
            page.line(&format!("… {}", counted(more, "more of them", "more of them")));
        }
    }

    /// The guilty stacks of each window, each once.
    fn stacks(&self, page: &mut Page) {
        let mut windows: Vec<(WindowAt, Vec<Guilty>)> = Vec::new();
        for severity in [Severity::Hard, Severity::Soft] {
            for finding in self.verdict.findings.iter().filter(|finding| finding.severity == severity) {
                let at =
                    windows.iter().position(|(window, _)| *window == finding.window).unwrap_or_else(|| {
                        windows.push((finding.window, Vec::new()));
                        windows.len() - 1
                    });
                for guilty in &finding.guilty {
                    if !windows[at].1.contains(guilty) {
                        windows[at].1.push(*guilty);
                    }
                }
            }
        }
        for (at, mut guilty) in windows.into_iter().filter(|(_, guilty)| !guilty.is_empty()) {
            // A stack that is named by itself is also in the window as a whole.
            if guilty.iter().any(|guilty| !matches!(guilty, Guilty::Row(_))) {
                guilty.retain(|guilty| !matches!(guilty, Guilty::Row(_)));
            }
            let entries = self.verdict.compared.pair(at).map_or(&[][..], |window| &window.entries);
            let shown: Vec<&Entry> = guilty
                .iter()
                .filter_map(|guilty| match guilty {
                    Guilty::Entry(entry) => entries.get(*entry),
                    _ => None,
                })
                .collect();
            let is_shown = |pair: &usize| shown.iter().any(|entry| entry.pairs.contains(pair));
            guilty.retain(|guilty| !matches!(guilty, Guilty::Pair(pair) if is_shown(pair)));
            page.line("");
            page.head(&format!("window {}", quote(self.verdict.compared.name(at))));
            self.changes(page, at, &guilty);
            if let Some(view) = self.verdict.compared.window(at) {
                self.rows(page, view, &guilty);
            }
        }
    }

    fn changes(&self, page: &mut Page, at: WindowAt, guilty: &[Guilty]) {
        let (Some(diff), Some(window)) = (&self.verdict.compared.diff, self.verdict.compared.pair(at)) else {
            return;
        };
        let pairs: Vec<Entry> = guilty
            .iter()
            .filter_map(|guilty| match guilty {
                Guilty::Pair(pair) => of_pair(window.pairs.get(*pair)?, *pair),
                _ => None,
            })
            .collect();
        let entries = guilty.iter().filter_map(|guilty| match guilty {
            Guilty::Entry(entry) => window.entries.get(*entry),
            _ => None,
        });
        let entries: Vec<&Entry> = entries.chain(&pairs).collect();
        if entries.is_empty() {
            return;
        }
        let sites = diff.profiles.map(|profile| CallSites::new(profile, &self.options.rules));
        let contexts = [0, 1].map(|side| Context::new(diff.profiles[side], self.options, &sites[side]));
        let sides = Sides { diff, contexts, options: self.options };
        diff_table(page, &sides, window, &entries);
    }

    /// Stacks of a window that nothing is held against.
    fn rows(&self, page: &mut Page, view: &WindowView<'_>, guilty: &[Guilty]) {
        let rows = guilty.iter().filter_map(|guilty| match guilty {
            Guilty::Row(row) => view.rows.get(*row),
            _ => None,
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return;
        }
        let sites = CallSites::new(self.verdict.compared.change, &self.options.rules);
        let context = Context::new(self.verdict.compared.change, self.options, &sites);
        let columns = Columns::of(view.window, self.options.sort, view.counts);
        let mut table = Table::new(columns.titles(), "call site");
        for row in &rows {
            table.push(columns.cells(&row.row.counts));
        }
        let place = Place::of(&table, self.options.width);
        let mut lines = table.lines();
        page.line(&lines.next().unwrap_or_default());
        for (row, cells) in rows.iter().zip(lines) {
            let parts = Parts::of(&context, row);
            page.row(&cells, &stack::site(&context, &parts, place.room), place);
            for line in stack::callers(&context, &parts, place.room.map(|room| room.saturating_sub(2))) {
                page.detail(&format!("  {line}"), place);
            }
        }
        page.line("  the stacks that have most; nothing tells which of them are new without a base");
    }
}

/// `3 limits in 2 windows: 1 error, 0 warnings, 2 notes`.
fn ending(verdict: &Verdict<'_>, statements: &[Statement]) -> String {
    let limits = verdict.checked.iter().map(|checked| checked.limits).sum();
    let of = |level: Level| statements.iter().filter(|statement| statement.level == level).count() as u64;
    format!(
        "{} in {}: {}, {}, {}",
        counted(limits, "limit", "limits"),
        counted(verdict.checked.len() as u64, "window", "windows"),
        counted(of(Level::Error), "error", "errors"),
        counted(of(Level::Warning), "warning", "warnings"),
        counted(of(Level::Note), "note", "notes"),
    )
}
