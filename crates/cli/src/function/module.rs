//! One module: its functions, and its code.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use heaptally_symbolize::{FunctionList, ListedFunction, list_functions};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

use super::code::Code;
use super::entry::{Moved, move_entry};
use super::import::{self, Imports, behind_stub, is_deallocation};
use super::pattern::is_part;
use super::refusal::Refusal;

/// A module whose functions can be named.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    pub(crate) list: FunctionList,
    code: Code,
    /// Where functions begin that are entered by calls, in order.
    entries: Vec<u64>,
    imports: OnceLock<Imports>,
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
        Ok(Self { path: path.to_owned(), list, code, entries, imports: OnceLock::new() })
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

    /// Whether a function may be left by a jump into another one that may allocate; its frame is then gone before its end.
    pub(crate) fn has_tail_call(&self, function: &ListedFunction) -> bool {
        let Some((start, end)) = function.range else { return false };
        let bytes = self.code.from(start);
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
        let decoder =
            Decoder::with_ip(64, bytes.get(..length).unwrap_or_default(), start, DecoderOptions::NONE);
        let imports = self.imports.get_or_init(|| import::read(&self.path).unwrap_or_default());
        let may_allocate = |name: &str| !is_deallocation(name);
        decoder.into_iter().any(|instruction| match instruction.flow_control() {
            // A jump that is split off is part of the function; one to a start of another function is a call.
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                let is_entry = || self.entries.binary_search(&target).is_ok();
                let is_import = || behind_stub(imports, &self.code, target).is_some_and(may_allocate);
                !(start..end).contains(&target) && (is_entry() || is_import())
            }
            // By a register it may be a table's; through a fixed place it leads to another function.
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
                imports.get(&instruction.ip_rel_memory_address()).is_none_or(|name| may_allocate(name))
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each name ends with whether it may be left by a tail call.
    const LEFT: &str = "
        .macro leave name by:vararg
        .globl \\name
        .type \\name, @function
        .p2align 4
        \\name: movl $8, %edi
        jmp \\by
        .size \\name, . - \\name
        .endm
        leave stub_yes strdup@PLT
        leave stub_of_free_no free@PLT
        leave place_yes *strdup@GOTPCREL(%rip)
        leave place_of_free_no *free@GOTPCREL(%rip)
        leave other_yes stub_yes
        leave own_no .
        .globl main
        .type main, @function
        main: xorl %eax, %eax
        ret
        .size main, . - main
        .section .note.GNU-stack, \"\", @progbits
    ";

    #[test]
    fn functions_that_other_modules_functions_end() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("left.s");
        std::fs::write(&source, LEFT).unwrap();
        for flag in ["-pie", "-no-pie", "-Wl,-z,now", "-Wl,-z,ibtplt"] {
            let program = folder.path().join("left");
            let mut compiler = std::process::Command::new("gcc");
            let built = compiler.arg(flag).arg("-o").arg(&program).arg(&source);
            let Ok(built) = built.output() else { return };
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let module = Module::read(&program).unwrap();
            let mut seen = 0;
            for function in &module.list.functions {
                let (is_yes, is_no) = (function.name.ends_with("_yes"), function.name.ends_with("_no"));
                if is_yes || is_no {
                    assert_eq!(module.has_tail_call(function), is_yes, "{flag} {}", function.name);
                    seen += 1;
                }
            }
            assert_eq!(seen, 6);
        }
    }
}
