//! Holds our reading of unwind information against gimli's: each row of each function of all modules of this process.

#![expect(unsafe_code, reason = "unwind information is read where the loader mapped it")]

extern crate std;
use std::boxed::Box;
use std::vec::Vec;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection,
    UnwindTableRow,
};

use crate::ModuleSections;
use crate::cursor::Cursor;
use crate::eh_frame::{Found, find_row};
use crate::row::{Cfa, Find, Scratch};
use crate::x86_64::{BP, RA, SP};

#[path = "../tests/integration/modules.rs"]
mod modules;

#[derive(Debug)]
struct Large;

impl UnwindContextStorage<usize> for Large {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Self>; 8];
}

type Bytes = EndianSlice<'static, LittleEndian>;

struct Oracle {
    module: ModuleSections,
    section: EhFrame<Bytes>,
    section_at: u64,
    bases: BaseAddresses,
    scratch: Box<Scratch>,
    rows: usize,
}

impl Oracle {
    fn of(module: ModuleSections) -> Self {
        let bytes = |at: u64, len: u64| {
            // SAFETY: the module stays loaded, and what it refers to up to `mapped_end` is readable.
            EndianSlice::new(
                unsafe { std::slice::from_raw_parts(at as *const u8, len as usize) },
                LittleEndian,
            )
        };
        let bases = BaseAddresses::default().set_eh_frame_hdr(module.eh_frame_hdr);
        let header =
            EhFrameHdr::from(bytes(module.eh_frame_hdr, module.eh_frame_hdr_len)).parse(&bases, 8).unwrap();
        let section_at = header.eh_frame_ptr().pointer();
        let section = EhFrame::from(bytes(section_at, module.mapped_end - section_at));
        let bases = bases.set_eh_frame(section_at);
        Self { module, section, section_at, bases, scratch: Box::default(), rows: 0 }
    }

    fn check_all(&mut self) {
        let mut context: Box<UnwindContext<usize, Large>> = Box::new(UnwindContext::new_in());
        let (section, bases) = (self.section, self.bases.clone());
        let mut entries = section.entries(&bases);
        // What follows the section in its segment is no entry.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
            let mut table = fde.rows(&section, &bases, &mut context).unwrap();
            while let Some(row) = table.next_row().unwrap() {
                if row.end_address() > row.start_address() {
                    self.check(&fde, row, row.start_address());
                    self.check(&fde, row, row.end_address() - 1);
                }
            }
        }
    }

    fn check(
        &mut self,
        fde: &FrameDescriptionEntry<Bytes>,
        row: &UnwindTableRow<usize, Large>,
        address: u64,
    ) {
        // SAFETY: the module is loaded.
        let found = unsafe { find_row(&self.module, address, &mut self.scratch) };
        assert_eq!(found, Found::Row, "{address:#x}");
        let ours = self.scratch.row;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, *offset),
            CfaRule::Expression(expression) => Cfa::Expression(self.bytes(expression)),
        };
        let theirs = [BP, SP, RA].map(|register| self.find(row.register(Register(register as u16))));
        assert_eq!((ours.cfa, [ours.bp, ours.sp, ours.ra]), (cfa, theirs), "{address:#x}");
        assert_eq!(self.scratch.is_signal, fde.is_signal_trampoline());
        self.rows += 1;
    }

    fn bytes(&self, expression: &UnwindExpression<usize>) -> Cursor {
        let at = self.section_at + expression.offset as u64;
        // SAFETY: the bytes lie in the section.
        unsafe { Cursor::new(at, at + expression.length as u64) }
    }

    fn find(&self, rule: Option<RegisterRule<usize>>) -> Find {
        match rule {
            None => Find::Unsaid,
            Some(RegisterRule::Undefined) => Find::Undefined,
            Some(RegisterRule::SameValue) => Find::Same,
            Some(RegisterRule::Offset(offset)) => Find::At(offset),
            Some(RegisterRule::ValOffset(offset)) => Find::Value(offset),
            Some(RegisterRule::Register(register)) => Find::Register(register.0),
            Some(RegisterRule::Expression(expression)) => Find::AtExpression(self.bytes(&expression)),
            Some(RegisterRule::ValExpression(expression)) => Find::ValueExpression(self.bytes(&expression)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_row_of_every_module_is_read_as_gimli_reads_it() {
    let mut oracles: Vec<Oracle> = modules::loaded_modules()
        .into_iter()
        .filter(|(_, module)| module.eh_frame_hdr_len > 0)
        .map(|(_, module)| Oracle::of(module))
        .collect();
    for oracle in &mut oracles {
        oracle.check_all();
    }
    let rows: usize = oracles.iter().map(|oracle| oracle.rows).sum();
    assert!(rows > 50_000, "{rows} rows");
}

#[test]
fn addresses_between_functions_have_no_row() {
    let (_, module) = modules::loaded_modules().remove(0);
    let mut scratch = Box::<Scratch>::default();
    for address in [0, module.start, module.start + 1, module.end, u64::MAX] {
        // SAFETY: the module is loaded.
        assert_eq!(unsafe { find_row(&module, address, &mut scratch) }, Found::Nothing, "{address:#x}");
    }
    let without = ModuleSections { eh_frame_hdr_len: 0, ..module };
    // SAFETY: as above.
    let found = unsafe {
        find_row(&without, addresses_between_functions_have_no_row as *const () as u64, &mut scratch)
    };
    assert_eq!(found, Found::Nothing);
}
