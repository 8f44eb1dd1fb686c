//! The code of a module, as its file has it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::elf::{ET_DYN, FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadCache, SectionFlags};

use super::pointer::{self, Pointer};

/// So many bytes of code are looked at in one module.
const MAX_CODE_BYTES: u64 = 1 << 31;

/// A jump that is encoded in an instruction, not a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Branch {
    /// Where it goes.
    pub(crate) target: u64,
    /// Where it is.
    pub(crate) source: u64,
}

/// What all instructions say of places in the code.
#[derive(Debug, Default)]
struct Swept {
    /// In order of their targets.
    branches: Vec<Branch>,
    /// The addresses that instructions name behind functions' starts, in order. The place is the instruction's.
    named: Vec<Pointer>,
}

/// Code by its address in the file (SVMA).
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// Start and bytes of each part, in order.
    parts: Vec<(u64, Vec<u8>)>,
    /// Where functions and other symbols of code begin, in order.
    starts: Vec<u64>,
    swept: OnceLock<Swept>,
    /// The file, if it is of one.
    file: Option<PathBuf>,
    /// Whether that can be loaded anywhere, so that instructions hold no addresses but distances.
    is_movable: bool,
    pointers: OnceLock<Vec<Pointer>>,
    /// Start and bytes of each section of data, in order.
    data: OnceLock<Vec<(u64, Vec<u8>)>>,
}

impl Code {
    /// Reads the executable sections of a file, or its executable segments where it has no sections. `starts`: where its
    /// functions begin.
    pub(crate) fn read(path: &Path, starts: impl IntoIterator<Item = u64>) -> io::Result<Self> {
        let invalid = |error: object::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let file = File::open(path)?;
        let cache = ReadCache::new(file.try_clone()?);
        let elf = ElfFile::<FileHeader64<Endianness>, _>::parse(&cache).map_err(invalid)?;
        let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if sh_flags & object::elf::SHF_EXECINSTR == object::elf::SHF_EXECINSTR
                && let Some((offset, size)) = section.file_range()
            {
                ranges.push((section.address(), offset, size));
            }
        }
        if ranges.is_empty() {
            let endian = Endianness::Little;
            for header in elf.elf_program_headers() {
                if header.p_type(endian) == PT_LOAD && header.p_flags(endian) & PF_X == PF_X {
                    ranges.push((header.p_vaddr(endian), header.p_offset(endian), header.p_filesz(endian)));
                }
            }
        }
        ranges.sort_unstable();
        let length = file.metadata()?.len();
        let mut left = MAX_CODE_BYTES;
        let mut parts = Vec::new();
        for (address, offset, size) in ranges {
            let size = size.min(left).min(length.saturating_sub(offset));
            left -= size;
            let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
            file.read_exact_at(&mut bytes, offset)?;
            parts.push((address, bytes));
        }
        let is_movable = elf.elf_header().e_type(elf.endian()) == ET_DYN;
        Ok(Self { file: Some(path.to_owned()), is_movable, ..Self::new(parts, starts) })
    }

    /// Of parts that are at hand.
    pub(crate) fn new(parts: Vec<(u64, Vec<u8>)>, starts: impl IntoIterator<Item = u64>) -> Self {
        let starts: BTreeSet<u64> = starts.into_iter().collect();
        Self { parts, starts: starts.into_iter().collect(), ..Self::default() }
    }

    /// The bytes from an address to the end of its part; none where there is no code.
    pub(crate) fn from(&self, address: u64) -> &[u8] {
        bytes_of(&self.parts, address)
    }

    /// The bytes from an address to the end of its part or of its section of data.
    pub(crate) fn bytes(&self, address: u64) -> &[u8] {
        let code = self.from(address);
        if !code.is_empty() {
            return code;
        }
        let all = self.data.get_or_init(|| {
            // What cannot be read now was read a moment ago.
            self.file.as_deref().and_then(|file| pointer::sections(file).ok()).unwrap_or_default()
        });
        bytes_of(all, address)
    }

    /// Whether a function begins at an address.
    pub(crate) fn is_start(&self, address: u64) -> bool {
        self.starts.binary_search(&address).is_ok()
    }

    /// The addresses that an instruction names without looking there.
    pub(crate) fn named(&self, instruction: &Instruction) -> impl Iterator<Item = u64> + use<> {
        let is_relative = instruction.is_ip_rel_memory_operand();
        let relative = (is_relative && instruction.mnemonic() == Mnemonic::Lea)
            .then(|| instruction.ip_rel_memory_address());
        let is_movable = self.is_movable;
        let instruction = *instruction;
        let fixed =
            (0..instruction.op_count()).filter_map(move |operand| match instruction.op_kind(operand) {
                _ if is_movable => None,
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    Some(instruction.immediate(operand))
                }
                OpKind::Memory if !is_relative => Some(instruction.memory_displacement64()),
                _ => None,
            });
        relative.into_iter().chain(fixed)
    }

    /// Where the next function behind an address begins.
    pub(crate) fn next_start(&self, address: u64) -> Option<u64> {
        self.starts.get(self.starts.partition_point(|start| *start <= address)).copied()
    }

    /// The jumps that go to an address in a range.
    pub(crate) fn branches_into(&self, from: u64, to: u64) -> &[Branch] {
        let all = &self.swept.get_or_init(|| self.sweep()).branches;
        let first = all.partition_point(|branch| branch.target < from);
        let last = all.partition_point(|branch| branch.target < to);
        all.get(first..last).unwrap_or_default()
    }

    /// The instructions that name an address in a range, where no function begins.
    pub(crate) fn named_into(&self, from: u64, to: u64) -> &[Pointer] {
        between(&self.swept.get_or_init(|| self.sweep()).named, from, to)
    }

    /// The pointers in the file's data to an address of code in a range.
    pub(crate) fn pointers_into(&self, from: u64, to: u64) -> &[Pointer] {
        let is_code = |address| !self.from(address).is_empty();
        let all = self.pointers.get_or_init(|| {
            // What cannot be read now was read a moment ago.
            self.file.as_deref().and_then(|file| pointer::read(file, is_code).ok()).unwrap_or_default()
        });
        between(all, from, to)
    }

    /// All jumps, and all addresses that are named. Decoding starts anew with each function, so that data between two of them
    /// misleads nobody.
    fn sweep(&self) -> Swept {
        let mut found = Swept::default();
        for (start, bytes) in &self.parts {
            let end = start + bytes.len() as u64;
            let mut at = *start;
            while at < end {
                let next = self.next_start(at).map_or(end, |next| next.min(end));
                let range =
                    usize::try_from(at - start).unwrap_or(0)..usize::try_from(next - start).unwrap_or(0);
                self.sweep_function(bytes.get(range).unwrap_or_default(), at, &mut found);
                at = next;
            }
        }
        found.branches.sort_unstable();
        found.named.sort_unstable();
        found
    }

    fn sweep_function(&self, bytes: &[u8], start: u64, found: &mut Swept) {
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let is_jump = matches!(
                instruction.flow_control(),
                FlowControl::ConditionalBranch
                    | FlowControl::UnconditionalBranch
                    | FlowControl::XbeginXabortXend
            );
            let (target, source) = (instruction.near_branch_target(), instruction.ip());
            if is_jump && instruction.mnemonic() != Mnemonic::INVALID && target != 0 {
                found.branches.push(Branch { target, source });
            }
            let is_inside = |address: &u64| !self.from(*address).is_empty() && !self.is_start(*address);
            let named = self.named(&instruction).filter(is_inside);
            found.named.extend(named.map(|target| Pointer { target, place: source }));
        }
    }
}

/// The bytes from an address to the end of the part in which it lies.
fn bytes_of(parts: &[(u64, Vec<u8>)], address: u64) -> &[u8] {
    let after = parts.partition_point(|(start, _)| *start <= address);
    let part = after.checked_sub(1).and_then(|index| parts.get(index));
    part.and_then(|(start, bytes)| bytes.get(usize::try_from(address - start).ok()?..)).unwrap_or_default()
}

/// Those of ordered pointers that lead into a range.
fn between(all: &[Pointer], from: u64, to: u64) -> &[Pointer] {
    let first = all.partition_point(|pointer| pointer.target < from);
    let last = all.partition_point(|pointer| pointer.target < to);
    all.get(first..last).unwrap_or_default()
}
