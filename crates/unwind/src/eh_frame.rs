//! From a code address to its row of the unwind table: `.eh_frame_hdr`'s sorted table, the function's FDE, its CIE
//! (Linux Standard Base 5.0, "Exception Frames"; DWARF 5, 6.4).
//!
//! ```text
//! .eh_frame_hdr  version=1 | 3 encodings | → .eh_frame | count | (function, FDE)[count], sorted, relative to the header
//! CIE            length | 0        | version | "zR…" | factors | register of the return address | data | instructions
//! FDE            length | CIE back | function start | length | data | instructions
//! ```

#![expect(unsafe_code, reason = "unwind information is read where the loader mapped it")]

use crate::ModuleSections;
use crate::cursor::{Cursor, encoding};
use crate::row::{self, Factors, Scratch};
use crate::x86_64::RA;

/// What a module says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// `Scratch::row` and `Scratch::is_signal` hold it.
    Row,
    /// No unwind information covers the address.
    Nothing,
    /// It does, and makes no sense.
    Bad,
}

/// Looks up the row that holds at `address`, an instruction's, not the one after a call.
///
/// # Safety
/// The module is loaded and its sections are where it says.
#[inline(never)]
pub(crate) unsafe fn find_row(module: &ModuleSections, address: u64, scratch: &mut Scratch) -> Found {
    // SAFETY: as the caller promises.
    let Some(fde_at) = (unsafe { find_fde(module, address) }) else { return Found::Nothing };
    // SAFETY: likewise.
    match unsafe { run_fde(module, fde_at, address, scratch) } {
        Some(true) => Found::Row,
        Some(false) => Found::Nothing,
        None => Found::Bad,
    }
}

/// A cursor from `at` to the end of what the module has mapped; empty below the module's start.
///
/// # Safety
/// The module is loaded.
unsafe fn cursor(module: &ModuleSections, at: u64) -> Cursor {
    let end = if at < module.start { at } else { module.mapped_end };
    // SAFETY: what a module refers to between its start and `mapped_end` is readable, by `ModuleSections`.
    unsafe { Cursor::new(at, end) }
}

/// The address of the last FDE that begins at or below `address`.
///
/// # Safety
/// The module is loaded.
#[inline(never)]
unsafe fn find_fde(module: &ModuleSections, address: u64) -> Option<u64> {
    let base = module.eh_frame_hdr;
    // SAFETY: as the caller promises.
    let mut header = unsafe { cursor(module, base) }.split(module.eh_frame_hdr_len)?;
    let version = header.u8()?;
    let frame_encoding = header.u8()?;
    let count_encoding = header.u8()?;
    let table_encoding = header.u8()?;
    // NOTE: other tables are allowed and no linker makes them; such a module counts as one without information.
    if version != 1
        || frame_encoding == encoding::OMIT
        || count_encoding != encoding::UDATA4
        || table_encoding != encoding::DATAREL_SDATA4
    {
        return None;
    }
    header.encoded_value(frame_encoding)?;
    let count = u64::from(header.u32()?).min(header.len() / 8);
    let table = header;
    let entry = |index: u64| {
        let mut row = table;
        row.split(index * 8)?;
        let function = base.wrapping_add_signed(i64::from(row.u32()? as i32));
        Some((function, base.wrapping_add_signed(i64::from(row.u32()? as i32))))
    };
    // The first `low` functions begin at or below the address; those from `high` on do not.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle)?.0 <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(entry(low.checked_sub(1)?)?.1)
}

/// Whether a function of the module begins exactly at `address`, by its unwind information.
///
/// # Safety
/// The module is loaded and its sections are where it says.
#[cold]
#[inline(never)]
pub unsafe fn is_function_start(module: &ModuleSections, address: u64) -> bool {
    let starts_there = || {
        // SAFETY: as the caller promises.
        let fde_at = unsafe { find_fde(module, address) }?;
        // SAFETY: likewise.
        let mut entry = body(unsafe { cursor(module, fde_at) })?;
        let cie_field_at = entry.at();
        let back = u64::from(entry.u32()?);
        // SAFETY: likewise; `cursor` keeps to the module.
        let common = parse_cie(unsafe { cursor(module, cie_field_at.checked_sub(back)?) })?;
        Some(back != 0 && entry.encoded_pointer(common.factors.address_encoding)? == address)
    };
    (module.text_start..module.text_end).contains(&address) && starts_there() == Some(true)
}

/// What a walk needs of a CIE.
struct Common {
    factors: Factors,
    has_data: bool,
    is_signal: bool,
    instructions: Cursor,
}

/// Runs the instructions of the FDE at `fde_at`. `Some(false)` if the FDE does not cover `address`, `None` if it makes
/// no sense.
///
/// # Safety
/// The module is loaded.
#[inline(never)]
unsafe fn run_fde(module: &ModuleSections, fde_at: u64, address: u64, scratch: &mut Scratch) -> Option<bool> {
    // SAFETY: as the caller promises.
    let mut entry = body(unsafe { cursor(module, fde_at) })?;
    let cie_field_at = entry.at();
    let back = u64::from(entry.u32()?);
    if back == 0 {
        return None;
    }
    // SAFETY: as above; `cursor` keeps to the module.
    let common = parse_cie(unsafe { cursor(module, cie_field_at.checked_sub(back)?) })?;
    let start = entry.encoded_pointer(common.factors.address_encoding)?;
    let len = entry.encoded_value(common.factors.address_encoding)?;
    if address.wrapping_sub(start) >= len {
        return Some(false);
    }
    if common.has_data {
        let len = entry.uleb()?;
        entry.split(len)?;
    }
    scratch.begin(common.is_signal);
    // The common instructions have no place: they run to their end.
    row::run(common.instructions, common.factors, 0, u64::MAX, scratch)?;
    scratch.keep_initial();
    row::run(entry, common.factors, start, address, scratch)?;
    Some(true)
}

/// What stands behind the length of a CIE or an FDE.
fn body(mut at: Cursor) -> Option<Cursor> {
    let len = match at.u32()? {
        0 => return None,
        0xffff_ffff => at.u64()?,
        len => u64::from(len),
    };
    at.split(len)
}

#[inline(never)]
fn parse_cie(at: Cursor) -> Option<Common> {
    let mut entry = body(at)?;
    if entry.u32()? != 0 {
        return None;
    }
    let version = entry.u8()?;
    if version != 1 && version != 3 {
        return None;
    }
    let mut augmentation = entry;
    while entry.u8()? != 0 {}
    let code = entry.uleb()?;
    let data = entry.sleb()?;
    let return_address = if version == 1 { u64::from(entry.u8()?) } else { entry.uleb()? };
    if return_address != RA {
        return None;
    }
    let mut common = Common {
        factors: Factors { code, data, address_encoding: encoding::ABSOLUTE },
        has_data: false,
        is_signal: false,
        instructions: entry,
    };
    match augmentation.u8()? {
        0 => return Some(common),
        b'z' => {}
        // Only a leading z says how long the data are.
        _ => return None,
    }
    let len = entry.uleb()?;
    let mut data = entry.split(len)?;
    common.has_data = true;
    common.instructions = entry;
    loop {
        match augmentation.u8()? {
            b'R' => common.factors.address_encoding = data.u8()?,
            b'S' => common.is_signal = true,
            b'L' => {
                data.u8()?;
            }
            b'P' => {
                let how = data.u8()?;
                data.encoded_value(how)?;
            }
            // The end; or what is not known, whose data the length lets us pass over.
            _ => return Some(common),
        }
    }
}
