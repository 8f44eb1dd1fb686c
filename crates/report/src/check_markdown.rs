//! A verdict for a comment on a change, or the summary of a job: the answer, a table of what is said, and the stacks
//! folded below it. Shorter than [`MOST_BYTES`]; what does not fit is counted.

use heaptally_profile::check::Verdict;

use crate::Options;
use crate::escape::escape;
use crate::markdown::{add_details, code, code_in_cell};
use crate::text::check::text;
use crate::verdict::{Level, Statement, statements};

/// The longest text.
pub const MOST_BYTES: usize = crate::markdown::MOST_BYTES;
/// So many lines of the table are shown at most.
const MOST_LINES: usize = 40;

/// The verdict.
pub fn check_markdown(verdict: &Verdict<'_>, options: &Options, is_strict: bool) -> String {
    let options = Options { color: false, width: None, ..options.clone() };
    let whole = text(verdict, &options, is_strict, None);
    let (answer, details) = whole.split_once('\n').unwrap_or((&whole, ""));
    let mut out = format!("**heaptally:** {}\n", code(answer));
    let statements = statements(verdict, &options, is_strict);
    if !statements.is_empty() {
        out.push_str("\n| | | limit | most of it |\n|---|---|---|---|\n");
    }
    for statement in statements.iter().take(MOST_LINES) {
        out.push_str(&line(statement));
    }
    if statements.len() > MOST_LINES {
        out.push_str(&format!("\n{} more of them below.\n", statements.len() - MOST_LINES));
    }
    add_details(&mut out, "all of it", details);
    out
}

fn line(statement: &Statement) -> String {
    let level = match statement.level {
        Level::Error => "**error**",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let origin = statement
        .origin
        .as_ref()
        .map(|origin| code_in_cell(&escape(&origin.to_string())))
        .unwrap_or_default();
    let site = statement.sites.first().map(|site| code_in_cell(&site.text())).unwrap_or_default();
    format!("| {level} | {} | {origin} | {site} |\n", code_in_cell(&statement.message))
}
