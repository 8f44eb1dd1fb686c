//! One module: its functions, and its code.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use heaptally_symbolize::{FunctionList, ListedFunction, list_functions};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

use super::code::Code;
use super::entry::{Moved, Refusal, move_entry};
use super::pattern::is_part;

/// A module whose functions can be named.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    pub(crate) list: FunctionList,
    code: Code,
    /// Where functions begin that are entered by calls, in order.
    entries: Vec<u64>,
}

impl Module {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let debug_dirs = [PathBuf::from("/usr/lib/debug")];
        Self::of_list(path, list_functions(path, "", &debug_dirs))
    }

    /// Reads the code of a file whose functions are listed.
    pub(crate) fn of_list(path: &Path, list: FunctionList) -> io::Result<Self> {
        let starts = list.functions.iter().filter_map(|function| Some(function.range?.0));
        let code = Code::read(path, starts)?;
        let whole = list.functions.iter().filter(|function| !is_part(function));
        let mut entries: Vec<u64> = whole.filter_map(|function| Some(function.range?.0)).collect();
        entries.sort_unstable();
        Ok(Self { path: path.to_owned(), list, code, entries })
    }

    /// What is to be done with a function's entry, or why nothing can be done.
    pub(crate) fn entry(&self, function: &ListedFunction) -> Result<Moved, Refusal> {
        let Some(range) = function.range else { return Err(Refusal::OnlyInlined) };
        if function.is_indirect {
            return Err(Refusal::Indirect);
        }
        if is_part(function) {
            return Err(Refusal::Part);
        }
        move_entry(&self.code, range)
    }

    /// The functions of which an indirect one chooses, as far as its code names them.
    pub(crate) fn implementations(&self, function: &ListedFunction) -> Vec<&str> {
        let Some((start, end)) = function.range.filter(|_| function.is_indirect) else { return Vec::new() };
        let bytes = self.code.from(start);
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
        let decoder =
            Decoder::with_ip(64, bytes.get(..length).unwrap_or_default(), start, DecoderOptions::NONE);
        let named = decoder.into_iter().filter_map(|instruction| match instruction.mnemonic() {
            Mnemonic::Lea => {
                instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address())
            }
            Mnemonic::Mov => instruction.try_immediate(1).ok(),
            _ => None,
        });
        let named: BTreeSet<u64> =
            named.filter(|address| self.entries.binary_search(address).is_ok()).collect();
        let is_named = |listed: &&ListedFunction| listed.range.is_some_and(|range| named.contains(&range.0));
        let chosen = self.list.functions.iter().filter(is_named).filter(|listed| !listed.is_indirect);
        chosen.map(|listed| listed.name.as_str()).collect()
    }

    /// Whether a function may be left by a jump into another one; its frame is then gone before its end.
    pub(crate) fn has_tail_call(&self, function: &ListedFunction) -> bool {
        let Some((start, end)) = function.range else { return false };
        let bytes = self.code.from(start);
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
        let decoder =
            Decoder::with_ip(64, bytes.get(..length).unwrap_or_default(), start, DecoderOptions::NONE);
        decoder.into_iter().any(|instruction| match instruction.flow_control() {
            // A jump that is split off is part of the function; one to a start of another function is a call.
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                !(start..end).contains(&target) && self.entries.binary_search(&target).is_ok()
            }
            // By a register it may be a table's; through a fixed place it leads to another function.
            FlowControl::IndirectBranch => instruction.is_ip_rel_memory_operand(),
            _ => false,
        })
    }
}
