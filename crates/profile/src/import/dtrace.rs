//! What dtrace prints of an aggregation by `ustack()`.
//!
//! ```text
//! dtrace -n 'pid$target::malloc:entry { @[ustack()] = count(); }' -c ./prog
//!
//!               libc.so.1`malloc
//!               prog`parse+0x1c
//!               prog`main+0x20
//!                42
//! ```
//!
//! A stack is a run of lines `module`symbol+offset` or `0xaddress`, leaf first; the line after it ends in its number,
//! which is taken for allocations. Other keys may stand before the stack and between it and the number, and what the
//! program or dtrace printed besides may stand anywhere outside of stacks. Stacks that are there several times are
//! added: print one aggregation only.

use super::builder::{Builder, Frame};
use super::line::{Line, lines, number, without_offset};
use super::{Imported, Importer};
use crate::Error;
use crate::model::{Counts, LocationId, Metric};

const FORMAT: &str = "dtrace aggregation";

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

/// Whether somewhere a frame has a number below it.
fn sniff(content: &[u8]) -> bool {
    // Without a mark of modules there is nothing to look for.
    if !content.contains(&b'`') || content.contains(&0) {
        return false;
    }
    let mut in_stack = false;
    for line in lines(content) {
        if symbol(&line.text()).is_some() {
            in_stack = true;
        } else if !is_address(&line.text()) {
            if in_stack && value(&line.text()).is_some() {
                return true;
            }
            in_stack = false;
        }
    }
    false
}

/// The module and the symbol of a frame. dtrace indents them, and puts no space into a module.
fn symbol(line: &str) -> Option<(&str, &str)> {
    let (module, symbol) = line.trim().split_once('`')?;
    let is_indented = line.starts_with([' ', '\t']);
    let is_module = !module.is_empty() && !module.contains(|c: char| c.is_whitespace() || c.is_control());
    (is_indented && is_module && !symbol.is_empty() && !symbol.starts_with(' ')).then_some((module, symbol))
}

fn is_address(line: &str) -> bool {
    line.trim().strip_prefix("0x").is_some_and(|digits| {
        !digits.is_empty() && digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// What a line ends in, if that is a number.
fn value(line: &str) -> Option<&str> {
    let last = line.split_whitespace().next_back()?;
    last.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()).then_some(last)
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    let mut builder = Builder::new(FORMAT);
    builder.unknown(Metric::Bytes);
    let mut stack: Vec<LocationId> = Vec::new();
    let mut begin: Option<Line<'_>> = None;
    for line in lines(content) {
        let text = line.text();
        if let Some((module, symbol)) = symbol(&text) {
            let module = builder.module(module);
            let name = without_offset(symbol);
            let address = super::line::hex(name).ok().filter(|_| name.starts_with("0x"));
            stack.push(match address {
                Some(address) => builder.location(Some(module), address, []),
                None => builder.named(Frame { name, ..Frame::default() }, Some(module)),
            });
            begin.get_or_insert(line);
        } else if is_address(&text) {
            let address = super::line::hex(text.trim()).map_err(|reason| line.error(FORMAT, reason))?;
            stack.push(builder.location(None, address, []));
            begin.get_or_insert(line);
        } else if begin.is_some() {
            if text.contains("Distribution") {
                let reason = "a distribution is no number of allocations: aggregate with count()";
                return Err(line.error(FORMAT, reason));
            }
            let Some(value) = value(&text) else {
                return Err(line.error(FORMAT, "expected another frame, or the number of this stack"));
            };
            let allocations = number(value).map_err(|reason| line.error(FORMAT, reason))?;
            builder.add(std::mem::take(&mut stack), &Counts { allocations, ..Counts::default() })?;
            begin = None;
        }
    }
    match begin {
        Some(line) => Err(line.error(FORMAT, "the stack that begins here has no number")),
        None => builder.finish(),
    }
}
