//! How much of a program's code its unwind tables cover. Functions without them are walked by frame pointers, or cut
//! the stack.

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection};
use object::elf::{PT_GNU_EH_FRAME, SHF_ALLOC, SHF_EXECINSTR};
use object::read::elf::ProgramHeader as _;
use object::{Object, ObjectSection, SectionFlags};

use super::finding::{Finding, count, size};
use super::image::{Elf, section};
use super::range::{Range, START_FILES_BYTES, functions, gaps, merged, overlap};

/// A gap of so many bytes may be padding between two functions.
const PADDING_BYTES: u64 = 64;
/// Above one part in so many of uncovered code it is a warning.
const TOLERATED: u64 = 100;

/// Looks at `elf`'s tables. `symbols`: it, or its debug file where that has the symbols.
pub(crate) fn examine(elf: &Elf<'_>, symbols: &Elf<'_>) -> Finding {
    const CHECK: &str = "unwind_tables";
    const ADVICE: &str = "build with -fasynchronous-unwind-tables (Rust: -C force-unwind-tables=yes); in assembly, add \
                          .cfi directives; else keep frame pointers there";
    let Some(covered) = covered(elf) else {
        return Finding::warning(
            CHECK,
            "there are none (.eh_frame): stacks are walked by frame pointers, or cut",
            ADVICE,
        );
    };
    if !has_search_table(elf) {
        return Finding::warning(
            CHECK,
            "the table to search them (.eh_frame_hdr) is missing, so they cannot be used",
            "link with --eh-frame-hdr, as compilers do unless told otherwise",
        );
    }
    let functions = functions(symbols);
    if functions.is_empty() {
        let code = code(elf);
        let bytes: u64 = code.iter().map(|range| range.end - range.start).sum();
        let open: u64 =
            code.iter().flat_map(|range| gaps(range, &covered)).filter(|gap| *gap >= PADDING_BYTES).sum();
        let found = format!("cover {} of {} of code", size(bytes - open), size(bytes));
        return if open.saturating_sub(START_FILES_BYTES) > bytes / TOLERATED {
            Finding::warning(
                CHECK,
                format!("{found}: elsewhere stacks are walked by frame pointers, or cut"),
                ADVICE,
            )
        } else {
            Finding::ok(CHECK, found)
        };
    }
    let without: Vec<&Range> = functions.iter().filter(|range| overlap(range, &covered) == 0).collect();
    let bytes =
        |ranges: &mut dyn Iterator<Item = &Range>| ranges.map(|range| range.end - range.start).sum::<u64>();
    let all = bytes(&mut functions.iter());
    let open = bytes(&mut without.iter().copied());
    let total = count(functions.len() as u64, "function", "functions");
    if without.is_empty() {
        return Finding::ok(
            CHECK,
            format!("cover all of {total} ({}): frame pointers are not needed", size(all)),
        );
    }
    let found = format!(
        "{} of {total} without them ({} of {}): there stacks are walked by frame pointers, or cut",
        without.len(),
        size(open),
        size(all)
    );
    if open > all / TOLERATED { Finding::warning(CHECK, found, ADVICE) } else { Finding::note(CHECK, found) }
}

/// The ranges that have an entry, sorted and without overlap; `None`: there is no table.
fn covered(elf: &Elf<'_>) -> Option<Vec<Range>> {
    let data = section(elf, ".eh_frame")?;
    let address = |name: &str| elf.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_eh_frame_hdr(address(".eh_frame_hdr"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let table = EhFrame::new(&data, LittleEndian);
    let mut entries = table.entries(&bases);
    let mut ranges = Vec::new();
    // What is damaged ends the list.
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
            && entry.len() > 0
        {
            let start = entry.initial_address();
            ranges.push(start..start.saturating_add(entry.len()));
        }
    }
    (!ranges.is_empty()).then(|| merged(ranges))
}

/// Whether the loader shows the recorder a table that it can search.
fn has_search_table(elf: &Elf<'_>) -> bool {
    let endian = object::LittleEndian;
    let header = elf.elf_program_headers().iter().find(|header| header.p_type(endian) == PT_GNU_EH_FRAME);
    let Some(Ok(data)) = header.map(|header| header.data(endian, elf.data())) else { return false };
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.map_or(0, |header| header.p_vaddr(endian)));
    let parsed = EhFrameHdr::from(EndianSlice::new(data, LittleEndian)).parse(&bases, 8);
    parsed.is_ok_and(|parsed| parsed.table().is_some())
}

/// The sections with the program's code, without the linker's jump tables.
fn code(elf: &Elf<'_>) -> Vec<Range> {
    let is_code = |flags| matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(SHF_ALLOC | SHF_EXECINSTR));
    elf.sections()
        .filter(|section| is_code(section.flags()))
        .filter(|section| {
            let name = section.name_bytes().unwrap_or_default();
            !name.starts_with(b".plt") && name != b".init" && name != b".fini"
        })
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect()
}
