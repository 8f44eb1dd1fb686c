//! Markdown that holds any text: names are code, in which Markdown and HTML mean nothing.
//!
//! GitHub takes comments of up to 65,536 characters; what is written here is shorter than [`MOST_BYTES`].

/// The longest text.
pub(crate) const MOST_BYTES: usize = 60_000;
/// What a cell of a table takes at most.
const CELL_CHARACTERS: usize = 200;

/// Adds text as a part that is folded, as much of it as fits.
pub(crate) fn add_details(out: &mut String, summary: &str, text: &str) {
    let before = format!("\n<details><summary>{summary}</summary>\n\n");
    let behind = "\n</details>\n";
    let mut block = String::new();
    let mut room = MOST_BYTES.saturating_sub(out.len() + before.len() + behind.len() + 200);
    for line in text.trim().lines() {
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
}

/// Text as code within a cell of a table, where even code cannot hold a bar.
pub(crate) fn code_in_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Text as code within a line.
pub(crate) fn code(text: &str) -> String {
    let mut cut: String = text.chars().take(CELL_CHARACTERS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    let longest = cut.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", cut.replace('\n', " "))
}
