//! Folded stacks, as flame graphs are drawn from: of heaptally, `heaptrack_print -F`, stackcollapse scripts, bcc.
//!
//! ```text
//! main;parse;Header::push_value 40000
//! main (prog.c);branch (prog.c);leaf (prog.c); 200       heaptrack's
//! ```
//!
//! A line is a stack, outermost frame first, and a number, which is taken for allocations: folded stacks do not say what
//! they count. Lines of one stack are added. The marks `_[i]` (inlined) and `_[a]` (async) are no part of a name.

use super::builder::{Builder, Frame};
use super::line::{Line, lines, number};
use super::{Imported, Importer};
use crate::Error;
use crate::model::{Counts, Metric};

const FORMAT: &str = "folded stacks";
/// So many lines are looked at to know the format.
const SNIFFED: usize = 20;

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

/// Whether the first lines are stacks with numbers, and one of them has two frames.
fn sniff(content: &[u8]) -> bool {
    let first = lines(content).filter(|line| !line.is_blank()).take(SNIFFED);
    let mut has_frames = false;
    for line in first {
        let Some((stack, _)) = parts(line).ok().filter(|(stack, _)| is_text(stack)) else { return false };
        has_frames |= stack.contains(';');
    }
    has_frames
}

fn is_text(stack: &str) -> bool {
    !stack.is_empty() && !stack.contains(|character: char| character.is_control() && character != '\t')
}

/// The stack and the number of a line.
fn parts(line: Line<'_>) -> Result<(String, u64), Error> {
    let text = line.text();
    let Some((stack, value)) = text.trim_end().rsplit_once([' ', '\t']) else {
        return Err(line.error(FORMAT, "expected a stack, a space and a number"));
    };
    let value = number(value).map_err(|reason| line.error(FORMAT, reason))?;
    Ok((stack.trim_end().to_owned(), value))
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    let mut builder = Builder::new(FORMAT);
    builder.unknown(Metric::Bytes);
    for line in lines(content).filter(|line| !line.is_blank()) {
        let (stack, allocations) = parts(line)?;
        let frames = stack.split(';').map(str::trim).filter(|frame| !frame.is_empty());
        let stack = frames.rev().map(|text| builder.named(frame(text), None)).collect();
        builder.add(stack, &Counts { allocations, ..Counts::default() })?;
    }
    builder.finish()
}

/// A frame, which may have its source file behind it, as heaptrack writes it.
fn frame(text: &str) -> Frame<'_> {
    let text = text.strip_suffix("_[i]").or_else(|| text.strip_suffix("_[a]")).unwrap_or(text);
    let file = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let is_file = |file: &str| file.contains('.') && !file.contains([' ', ',', '(', '<', ':', '*', '&']);
    match file {
        Some((name, file)) if !name.is_empty() && is_file(file) => Frame { name, file, line: 0 },
        _ => Frame { name: text, ..Frame::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_behind_a_name_is_no_part_of_it() {
        assert_eq!((frame("leaf (prog.c)").name, frame("leaf (prog.c)").file), ("leaf", "prog.c"));
        for whole in ["f (int, ...)", "operator() (a.b::c)", "(anonymous namespace)", "(a.c)"] {
            assert_eq!((frame(whole).name, frame(whole).file), (whole, ""));
        }
        assert_eq!(frame("push_[i]").name, "push");
    }
}
