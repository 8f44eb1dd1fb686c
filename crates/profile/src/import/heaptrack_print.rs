//! The text of `heaptrack_print`.
//!
//! ```text
//! MOST CALLS TO ALLOCATION FUNCTIONS
//! 201 calls to allocation functions with 8.90K peak consumption from
//! leaf                                         the leaf of the stacks below
//!   at /src/prog.c:6
//!   in /src/prog
//! 200 calls with 3.90K peak consumption from:
//!     branch
//!       at /src/prog.c:7
//!       in /src/prog
//!     main
//!       …
//!   and 1 from 1 other places                  known by number only
//!
//! calls to allocation functions: 260 (130000/s)
//! ```
//!
//! With `-m 0` each stack stands whole below the first line, indented. The text holds the most frequent ones only
//! (`-n`, `-s`): what is missing up to the number of all calls is counted as allocations whose stack is not known. Bytes
//! are those of the peak and rounded, so they are unknown here: read the recording itself, which has everything.

use super::builder::{Builder, Frame};
use super::line::{Line, lines, number, source};
use super::{Imported, Importer};
use crate::Error;
use crate::model::{Counts, LocationId, Metric};

const FORMAT: &str = "heaptrack_print text";
const SECTION: &[u8] = b"MOST CALLS TO ALLOCATION FUNCTIONS";
const TOTAL: &str = "calls to allocation functions: ";
/// Within so many bytes the section begins.
const SNIFFED: usize = 1 << 16;

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

fn sniff(content: &[u8]) -> bool {
    const MARKS: [&[u8]; 2] = [b"total runtime: ", b"\ncalls to allocation functions: "];
    let begin = content.get(..SNIFFED).unwrap_or(content);
    let end = content.get(content.len().saturating_sub(SNIFFED)..).unwrap_or(content);
    let holds = |part: &[u8], mark: &[u8]| part.windows(mark.len()).any(|window| window == mark);
    holds(begin, SECTION) || MARKS.iter().all(|mark| holds(end, mark))
}

/// A stack in the making.
struct Open {
    begin: usize,
    calls: u64,
    stack: Vec<Text>,
}

/// A frame's lines.
#[derive(Clone, Default)]
struct Text {
    name: String,
    file: String,
    line: u32,
    module: String,
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    let mut reader =
        Reader { builder: Builder::new(FORMAT), leaf: None, group: None, told: 0, open: None, listed: 0 };
    reader.builder.unknown(Metric::Bytes);
    let mut in_section = false;
    let mut has_section = false;
    let mut total = None;
    for line in lines(content) {
        let text = line.text();
        if line.bytes == SECTION {
            (in_section, has_section) = (true, true);
        } else if let Some(rest) = text.strip_prefix(TOTAL) {
            reader.end(line.number)?;
            let calls = rest.split(' ').next().unwrap_or_default();
            total = Some(number(calls).map_err(|reason| line.error(FORMAT, reason))?);
            in_section = false;
        } else if let Some(command) = text.strip_prefix("Debuggee command was: ") {
            reader.builder.command(command);
        } else if is_title(&text) {
            reader.end(line.number)?;
            in_section = false;
        } else if in_section {
            reader.line(line, &text)?;
        }
    }
    reader.end(lines(content).count())?;
    if !has_section {
        let reason =
            "it does not list calls\nprint it with --print-allocators 1, or read the recording itself";
        return Err(Error::Unusable { format: FORMAT, reason: reason.to_owned() });
    }
    let Some(total) = total else {
        let place = "its end".to_owned();
        let reason = "the number of all calls is missing: the text was cut short".to_owned();
        return Err(Error::Import { format: FORMAT, place, reason });
    };
    // A merged text may tell one stack in two groups.
    reader.builder.lost(total.saturating_sub(reader.listed));
    reader.builder.finish()
}

/// Whether this is the title of a section.
fn is_title(line: &str) -> bool {
    line.len() > 4
        && line.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b' ')
        && line.starts_with(|character: char| character.is_ascii_uppercase())
        && (line.starts_with("MOST ") || line.starts_with("PEAK ") || line.starts_with("MEMORY "))
}

struct Reader {
    builder: Builder,
    /// The leaf of the stacks of a group.
    leaf: Option<Text>,
    /// The line and the calls of a group.
    group: Option<(usize, u64)>,
    /// The calls of its stacks.
    told: u64,
    open: Option<Open>,
    /// The calls of all stacks.
    listed: u64,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, text: &str) -> Result<(), Error> {
        let calls = |words: &str| number(words).map_err(|reason| line.error(FORMAT, reason));
        if line.is_blank() {
            return self.end(line.number);
        }
        if let Some((words, _)) = text.split_once(" calls to allocation functions with ") {
            self.end(line.number)?;
            self.group = Some((line.number, calls(words)?));
            return Ok(());
        }
        if let Some((words, _)) = text.split_once(" calls with ") {
            self.end_stack()?;
            let stack = self.leaf.iter().cloned().collect();
            self.open = Some(Open { begin: line.number, calls: calls(words)?, stack });
            return Ok(());
        }
        let is_rest = text.starts_with("  and ") && text.ends_with(" other places");
        if let Some((words, _)) = text.trim_start().strip_prefix("and ").and_then(|t| t.split_once(" from "))
            && is_rest
        {
            self.end_stack()?;
            // Known by number only: the end counts it as lost.
            calls(words)?;
            return Ok(());
        }
        let Some((begin, group_calls)) = self.group else {
            return Err(line.error(FORMAT, "expected a number of calls"));
        };
        let indent = text.len() - text.trim_start().len();
        if self.open.is_none() && indent == 0 {
            self.leaf = Some(Text { name: text.to_owned(), ..Text::default() });
            return Ok(());
        }
        // With `-m 0` a group is a stack.
        if self.open.is_none() && self.leaf.is_none() {
            self.open = Some(Open { begin, calls: group_calls, stack: Vec::new() });
        }
        let (base, stack) = match &mut self.open {
            Some(open) if self.leaf.is_none() => (2, &mut open.stack),
            Some(open) => (4, &mut open.stack),
            None => {
                if let Some(leaf) = &mut self.leaf {
                    leaf.place(text.trim_start());
                }
                return Ok(());
            }
        };
        if indent <= base {
            stack.push(Text { name: text.trim_start().to_owned(), ..Text::default() });
        } else if let Some(frame) = stack.last_mut() {
            frame.place(text.trim_start());
        }
        Ok(())
    }

    /// Ends a group at a line.
    fn end(&mut self, _line: usize) -> Result<(), Error> {
        self.end_stack()?;
        let group = self.group.take();
        if let (Some((begin, calls)), told) = (group, std::mem::take(&mut self.told))
            && told > calls
        {
            let reason = format!("stacks of {told} calls among {calls}");
            return Err(super::line::at_line(FORMAT, begin, reason));
        }
        self.leaf = None;
        Ok(())
    }

    fn end_stack(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.stack.is_empty() {
            return Err(super::line::at_line(FORMAT, open.begin, "calls without a stack"));
        }
        let stack: Vec<LocationId> = open.stack.iter().map(|text| self.location(text)).collect();
        self.told = self.told.saturating_add(open.calls);
        self.listed = self.listed.saturating_add(open.calls);
        self.builder.add(stack, &Counts { allocations: open.calls, ..Counts::default() })
    }

    fn location(&mut self, text: &Text) -> LocationId {
        let module = (!text.module.is_empty()).then(|| self.builder.module(&text.module));
        let address = super::line::hex(&text.name).ok().filter(|_| text.name.starts_with("0x"));
        match address {
            Some(address) => self.builder.location(module, address, []),
            None => {
                let frame = Frame { name: &text.name, file: &text.file, line: text.line };
                self.builder.named(frame, module)
            }
        }
    }
}

impl Text {
    /// `at file:line` or `in module`.
    fn place(&mut self, text: &str) {
        if let Some(place) = text.strip_prefix("at ") {
            let (file, line) = source(place);
            (self.file, self.line) = (file.to_owned(), line);
        } else if let Some(module) = text.strip_prefix("in ") {
            module.clone_into(&mut self.module);
        }
    }
}
