//! Where functions start, from the unwind information, which also stripped files keep.

use addr2line::gimli::{self, BaseAddresses, CieOrFde, EhFrame, UnwindSection};
use object::{Object, ObjectSection};

use crate::object_file::Elf;

/// The code ranges of `.eh_frame`: whole functions, or parts of functions that were split.
#[derive(Debug, Default)]
pub(crate) struct FunctionStarts {
    /// Start and end, sorted.
    ranges: Vec<(u64, u64)>,
}

impl FunctionStarts {
    /// Reads `.eh_frame`, as far as it makes sense.
    pub(crate) fn read(elf: &Elf<'_>) -> Self {
        let mut ranges = Vec::new();
        if let Some(section) = elf.section_by_name(".eh_frame")
            && let Ok(data) = section.data()
        {
            let svma = |name| elf.section_by_name(name).map_or(0, |section| section.address());
            let bases = BaseAddresses::default()
                .set_eh_frame(section.address())
                .set_text(svma(".text"))
                .set_got(svma(".got"))
                .set_eh_frame_hdr(svma(".eh_frame_hdr"));
            let eh_frame = EhFrame::new(data, gimli::LittleEndian);
            let mut last_cie = None;
            let mut entries = eh_frame.entries(&bases);
            while let Ok(Some(entry)) = entries.next() {
                let CieOrFde::Fde(partial) = entry else { continue };
                let fde = partial.parse(|section, bases, offset| match &last_cie {
                    Some((at, cie)) if *at == offset => Ok(gimli::CommonInformationEntry::clone(cie)),
                    _ => {
                        let cie = section.cie_from_offset(bases, offset)?;
                        last_cie = Some((offset, cie.clone()));
                        Ok(cie)
                    }
                });
                if let Ok(fde) = fde
                    && fde.len() > 0
                {
                    ranges.push((fde.initial_address(), fde.initial_address().saturating_add(fde.len())));
                }
            }
        }
        ranges.sort_unstable();
        ranges.dedup();
        Self { ranges }
    }

    /// The start of the range that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<u64> {
        let after = self.ranges.partition_point(|&(start, _)| start <= address);
        let &(start, end) = self.ranges.get(after.checked_sub(1)?)?;
        (address < end).then_some(start)
    }
}
