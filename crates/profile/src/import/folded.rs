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

/// Whether most of the first lines are stacks with numbers, and one of them has two frames: a damaged line is told when it is
/// read. Where all stacks have one frame, every line must be one with a name, since any table may look so.
fn sniff(content: &[u8]) -> bool {
    let (mut sound, mut others) = (0, 0);
    let (mut has_frames, mut has_names) = (false, true);
    for line in lines(content).filter(|line| !line.is_blank()).take(SNIFFED) {
        let text = line.text();
        match columns(&text).filter(|(stack, value)| is_text(stack) && is_digits(value)) {
            Some((stack, _)) => {
                sound += 1;
                has_frames |= stack.contains(';');
                has_names &= stack.contains(char::is_alphabetic);
            }
            None => others += 1,
        }
    }
    sound > others && (has_frames || (others == 0 && has_names))
}

fn is_text(stack: &str) -> bool {
    !stack.is_empty() && !stack.contains(|character: char| character.is_control() && character != '\t')
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A line's last word, and what is before it.
fn columns(text: &str) -> Option<(&str, &str)> {
    let (stack, value) = text.trim_end().rsplit_once([' ', '\t'])?;
    Some((stack.trim_end(), value))
}

/// Whether most lines have two numbers, those of a base and of a change. A damaged one may be among them.
fn is_comparison(content: &[u8]) -> bool {
    let (mut two, mut others) = (0_u64, 0_u64);
    for line in lines(content).filter(|line| !line.is_blank()) {
        let text = line.text();
        let is_number = |column: Option<(&str, &str)>| column.is_some_and(|(_, value)| is_digits(value));
        let last = columns(&text);
        match is_number(last) && is_number(last.and_then(|(before, _)| columns(before))) {
            true => two += 1,
            false => others += 1,
        }
    }
    two > others
}

/// The stack and the number of a line.
fn parts(line: Line<'_>) -> Result<(String, u64), Error> {
    let text = line.text();
    let Some((stack, value)) = columns(&text) else {
        return Err(line.error(FORMAT, "expected a stack, a space and a number"));
    };
    let value = number(value).map_err(|reason| line.error(FORMAT, reason))?;
    Ok((stack.to_owned(), value))
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    if is_comparison(content) {
        let reason = "each line has two numbers, those of a base and of a change: it is a comparison, as \
                      `heaptally diff --format folded` writes it, and no recording\n\
                      pass the two profiles that were compared, or draw it as a differential flame graph";
        return Err(Error::Unusable { format: FORMAT, reason: reason.to_owned() });
    }
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
