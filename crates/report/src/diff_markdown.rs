//! Two profiles compared, for a comment on a change: the answer, a table, and the stacks folded below it.
//!
//! GitHub takes comments of up to 65,536 characters; this is shorter than [`MOST_BYTES`]. What does not fit is counted.
//! Names are code, in which Markdown and HTML mean nothing.

use heaptally_profile::diff::Diff;

use crate::Options;
use crate::markdown::{add_details, code, code_in_cell};
use crate::text::diff::{self, Show};

/// The longest text.
pub const MOST_BYTES: usize = crate::markdown::MOST_BYTES;
/// So many lines of the table are shown at most.
const MOST_LINES: usize = 30;
/// The longest table, with what stands before it.
const MOST_TABLE_BYTES: usize = MOST_BYTES / 2;

/// The diff.
pub fn diff_markdown(diff: &Diff<'_>, options: &Options) -> String {
    let options = Options { color: false, width: None, ..options.clone() };
    let text = diff::text(diff, &options, Show::Entries);
    let (answer, details) = text.split_once('\n').unwrap_or((&text, ""));
    let mut out = format!("**heaptally:** {}\n", code(answer));
    // What the numbers are is not left to who opens the folded part.
    for condition in diff.conditions.iter().filter(|condition| condition.what.is_of_numbers()) {
        out.push_str(&format!("\n{}\n", code(&format!("note: {}", diff::words(condition)))));
    }
    let cells = diff::cells(diff, &options);
    if !cells.is_empty() {
        out.push_str("\n| window | allocations | bytes | change | call site |\n|---|--:|--:|---|---|\n");
        let mut rows = cells.into_iter();
        let mut more = 0;
        for cells in rows.by_ref().take(MOST_LINES) {
            let cells: Vec<String> = cells.iter().map(|cell| code_in_cell(cell)).collect();
            let line = format!("| {} |\n", cells.join(" | "));
            // Marks and letters of other scripts take more room than characters.
            if more == 0 && out.len() + line.len() <= MOST_TABLE_BYTES {
                out.push_str(&line);
            } else {
                more += 1;
            }
        }
        more += rows.count();
        if more > 0 {
            out.push_str(&format!("\n{more} more call sites changed.\n"));
        }
    }
    add_details(&mut out, "stacks", details);
    out
}
