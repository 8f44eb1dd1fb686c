//! Functions of other modules that a module's code reaches through places that the loader fills in.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{
    Endianness, Object as _, ObjectSymbol as _, ObjectSymbolTable as _, ReadCache, RelocationTarget,
};

use super::code::Code;

/// So many instructions a stub has that leads to such a function.
const STUB_INSTRUCTIONS: usize = 3;

/// The names of functions, by the address of the place that leads there.
pub(crate) type Imports = HashMap<u64, String>;

/// Reads a file's.
pub(crate) fn read(path: &Path) -> io::Result<Imports> {
    let invalid = |error: object::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let cache = ReadCache::new(File::open(path)?);
    let elf = ElfFile::<FileHeader64<Endianness>, _>::parse(&cache).map_err(invalid)?;
    let mut found = Imports::new();
    for (place, relocation) in elf.dynamic_relocations().into_iter().flatten() {
        if let RelocationTarget::Symbol(index) = relocation.target()
            && let Some(symbols) = elf.dynamic_symbol_table()
            && let Ok(name) = symbols.symbol_by_index(index).and_then(|symbol| symbol.name())
        {
            found.insert(place, name.to_owned());
        }
    }
    Ok(found)
}

/// The function to which a stub at an address leads; `None`: there is no stub.
pub(crate) fn behind_stub<'i>(imports: &'i Imports, code: &Code, address: u64) -> Option<&'i str> {
    let decoder = Decoder::with_ip(64, code.from(address), address, DecoderOptions::NONE);
    let mut instructions = decoder.into_iter().take(STUB_INSTRUCTIONS);
    let jump = instructions.find(|instruction| instruction.flow_control() != FlowControl::Next)?;
    let is_stub = jump.flow_control() == FlowControl::IndirectBranch && jump.is_ip_rel_memory_operand();
    imports.get(&jump.ip_rel_memory_address()).filter(|_| is_stub).map(String::as_str)
}

/// Whether it only gives memory back: what is called beneath it allocates nothing.
pub(crate) fn is_deallocation(name: &str) -> bool {
    // Every `operator delete`, and every `operator delete[]`.
    matches!(name, "free" | "cfree") || name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv")
}
