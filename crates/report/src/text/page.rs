//! A report that is being written: its lines, and their colours.

use super::table::Place;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// A report that is being written.
pub(super) struct Page {
    color: bool,
    text: String,
}

impl Page {
    pub(super) fn new(color: bool) -> Self {
        Self { color, text: String::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A line that begins a part.
    pub(super) fn head(&mut self, line: &str) {
        self.styled("", BOLD, line);
    }

    /// A line of a table: its cells, and what stands out behind them; further lines of that stand below it.
    pub(super) fn row(&mut self, cells: &str, names: &[String], place: Place) {
        let indent = " ".repeat(place.indent);
        let mut names = names.iter();
        if place.is_below {
            self.line(cells);
        } else {
            self.styled(cells, BOLD, names.next().map_or("", String::as_str));
        }
        for line in names {
            self.styled(&indent, BOLD, line);
        }
    }

    /// A line that explains the row above.
    pub(super) fn detail(&mut self, line: &str, place: Place) {
        self.styled(&" ".repeat(place.indent), DIM, line);
    }

    /// A line that explains a word.
    pub(super) fn note(&mut self, line: &str) {
        self.styled("", DIM, line);
    }

    fn styled(&mut self, before: &str, style: &str, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            self.line(before);
            return;
        }
        let parts = if self.color { [before, style, line, PLAIN] } else { [before, "", line, ""] };
        parts.into_iter().for_each(|part| self.text.push_str(part));
        self.text.push('\n');
    }

    /// A titled list, left out when it is empty.
    pub(super) fn part(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.line("");
        self.head(title);
        for line in lines {
            self.line(&format!("  {line}"));
        }
    }

    /// Whether these words stand in it.
    pub(super) fn has(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}
