//! Two profiles compared, for a comment on a change: the answer, a table, and the stacks folded below it.
//!
//! GitHub takes comments of up to 65,536 characters; this is shorter than [`MOST_BYTES`]. What does not fit is counted.
//! Names are code, in which Markdown and HTML mean nothing.

use heaptally_profile::diff::{Diff, WindowDiff};

use crate::Options;
use crate::text::diff::{self, Show};

/// The longest text.
pub const MOST_BYTES: usize = 60_000;
/// So many lines of the table are shown at most.
const MOST_LINES: usize = 30;
/// The longest table, with what stands before it.
const MOST_TABLE_BYTES: usize = MOST_BYTES / 2;
/// What a cell of the table takes at most.
const CELL_CHARACTERS: usize = 200;

/// The diff.
pub fn diff_markdown(diff: &Diff<'_>, options: &Options) -> String {
    let options = Options { color: false, width: None, ..options.clone() };
    let text = diff::text(diff, &options, Show::Entries);
    let (answer, details) = text.split_once('\n').unwrap_or((&text, ""));
    let mut out = format!("**heaptally:** {}\n", code(answer));
    let windows: Vec<&WindowDiff<'_>> =
        diff.windows.iter().filter(|window| !window.is_in_background()).collect();
    if windows.iter().any(|window| !window.entries.is_empty()) {
        out.push_str("\n| window | allocations | bytes | change | call site |\n|---|--:|--:|---|---|\n");
        let mut rows = windows.iter().flat_map(|window| diff::cells(diff, &options, window));
        let mut more = 0;
        for cells in rows.by_ref().take(MOST_LINES) {
            let cells: Vec<String> = cells.iter().map(|cell| code(cell).replace('|', "\\|")).collect();
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
    let (before, behind) = ("\n<details><summary>stacks</summary>\n\n", "\n</details>\n");
    let mut block = String::new();
    let mut room = MOST_BYTES.saturating_sub(out.len() + before.len() + behind.len() + 200);
    for line in details.trim().lines() {
        // Four blanks before each line make it code whatever it holds.
        let Some(rest) = room.checked_sub(line.len() + 5) else {
            block.push_str("    … the rest does not fit here\n");
            break;
        };
        room = rest;
        block.push_str(format!("    {line}").trim_end());
        block.push('\n');
    }
    out.push_str(&format!("{before}{block}{behind}"));
    out
}

/// Text as code within a line. Within a table even code cannot hold a bar.
fn code(text: &str) -> String {
    let mut cut: String = text.chars().take(CELL_CHARACTERS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    let longest = cut.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", cut.replace('\n', " "))
}
