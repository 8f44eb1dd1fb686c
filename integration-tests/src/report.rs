//! What `heaptally report --json` says, as far as the tests look.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A report.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// The windows.
    pub windows: Vec<Window>,
    /// What could not be recorded.
    #[serde(default)]
    pub losses: BTreeMap<String, u64>,
    /// What the user should know.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The document as it is.
    #[serde(skip)]
    pub document: Value,
}

/// A window.
#[derive(Clone, Debug, Deserialize)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// The image that opened it.
    #[serde(default)]
    pub image: String,
    /// How often it was entered.
    #[serde(default)]
    pub entries: u64,
    /// What per-iteration numbers are divided by.
    #[serde(default)]
    pub iterations: u64,
    /// Whether it was open when the program ended.
    #[serde(default)]
    pub unfinished: bool,
    /// The sums over its rows.
    #[serde(default)]
    pub totals: Counts,
    /// Its stacks.
    #[serde(default)]
    pub rows: Vec<Row>,
}

/// A stack in a window.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// `complete`, `frame_pointer` or `cut`.
    #[serde(default)]
    pub capture: String,
    /// Leaf first; the first is the allocation function.
    #[serde(default)]
    pub frames: Vec<Frame>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Successful allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks given back while the window was open.
    pub freed: u64,
    /// Calls that returned no memory.
    pub failed: u64,
    /// Calls of `realloc(p, 0)` that freed and returned null.
    pub reallocs_to_zero: u64,
}

impl Counts {
    /// Calls of allocation functions, as the cases and the counting library count them.
    pub fn calls(&self) -> u64 {
        self.allocations + self.failed + self.reallocs_to_zero
    }
}

/// A frame.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Frame {
    /// Its function; empty when unknown.
    #[serde(default)]
    pub function: String,
    /// Its source file; empty when unknown.
    #[serde(default)]
    pub file: String,
    /// The module that holds its code.
    #[serde(default)]
    pub module: String,
    /// Whether it is inlined.
    #[serde(default)]
    pub inlined: bool,
    /// How it came to be in the stack.
    #[serde(default)]
    pub kind: String,
}

impl Frame {
    /// Whether it is a signal's trampoline.
    pub fn is_signal(&self) -> bool {
        self.kind == "signal" || self.function == "<signal>" || self.function.ends_with("restore_rt")
    }

    #[cfg(test)]
    pub(crate) fn test(function: &str, inlined: bool) -> Self {
        Self { function: function.to_owned(), inlined, ..Self::default() }
    }
}

impl Report {
    /// Reads the JSON document.
    ///
    /// # Errors
    /// When it is another kind of document.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let document: Value = serde_json::from_slice(bytes)?;
        let mut report = Self::deserialize(&document)?;
        report.document = document;
        Ok(report)
    }

    /// What the document says of the window `name`; null where it has none.
    pub fn window_json(&self, name: &str) -> &Value {
        let windows = self.document["windows"].as_array().into_iter().flatten();
        windows.rev().find(|window| window["name"] == name).unwrap_or(&Value::Null)
    }

    /// The window `name`.
    ///
    /// # Panics
    /// When the report has none, or several.
    pub fn window(&self, name: &str) -> &Window {
        let found: Vec<&Window> = self.windows.iter().filter(|window| window.name == name).collect();
        let names: Vec<&str> = self.windows.iter().map(|window| window.name.as_str()).collect();
        assert!(found.len() == 1, "{} windows {name:?} in {names:?}", found.len());
        found[0]
    }

    /// Whether there is a window `name`.
    pub fn has_window(&self, name: &str) -> bool {
        self.windows.iter().any(|window| window.name == name)
    }

    /// The loss `name`, 0 where the report does not say it.
    pub fn loss(&self, name: &str) -> u64 {
        self.losses.get(name).copied().unwrap_or(0)
    }

    /// The losses that are not 0, as text.
    pub fn losses_text(&self) -> String {
        let lost = self.losses.iter().filter(|(_, count)| **count > 0);
        lost.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    }
}

impl Window {
    /// The calls in all rows.
    pub fn calls(&self) -> u64 {
        self.rows.iter().map(|row| row.counts.calls()).sum()
    }

    /// The rows that hold a frame of the function `name`.
    pub fn rows_with<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.has(name))
    }

    /// The calls in the rows that hold a frame of the function `name`.
    pub fn calls_with(&self, name: &str) -> u64 {
        self.rows_with(name).map(|row| row.counts.calls()).sum()
    }

    /// The calls in rows of complete stacks.
    pub fn complete_calls(&self) -> u64 {
        self.rows.iter().filter(|row| row.is_complete()).map(|row| row.counts.calls()).sum()
    }

    /// All rows as text, for messages.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.rows.iter().map(Row::text).collect();
        lines.sort();
        format!("window {:?}, {} calls\n{}", self.name, self.calls(), lines.join("\n"))
    }
}

impl Row {
    /// Whether a frame is of the function `name`.
    pub fn has(&self, name: &str) -> bool {
        let name = crate::name::Name::new(name);
        self.frames.iter().any(|frame| crate::name::Name::new(&frame.function).same(&name))
    }

    /// Whether the walk came to the start of the program, a thread or a coroutine by unwind information alone.
    pub fn is_complete(&self) -> bool {
        self.capture == "complete"
    }

    /// The stack, root first, with its calls.
    pub fn text(&self) -> String {
        const SHOWN: usize = 40;
        let name = |frame: &Frame| {
            let function = if frame.function.is_empty() { "?" } else { &frame.function };
            let short: String = function.chars().take(80).collect();
            if frame.inlined { format!("+{short}") } else { short }
        };
        let names: Vec<String> = self.frames.iter().rev().map(name).collect();
        let text = if names.len() > SHOWN {
            let (head, tail) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
            format!("{} -> … {} frames … -> {}", head.join(" -> "), names.len() - SHOWN, tail.join(" -> "))
        } else {
            names.join(" -> ")
        };
        format!("  {}* [{}] {text}", self.counts.calls(), self.capture)
    }
}
