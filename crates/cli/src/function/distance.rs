//! Tables of distances in the data, by which a function jumps inside itself.
//!
//! A `switch` takes a distance of 32 bits from a table and adds the table's own address; a computed `goto` may add that of one
//! of its labels. Nothing marks such a table: it is what a function with an indirect jump names. It is read as far as it leads
//! to code, and what it leads to in its own function is what counts.

use iced_x86::{Decoder, DecoderOptions, FlowControl};

use super::code::Code;
use super::pointer::Pointer;

/// So many entries of a table are looked at.
const MOST_ENTRIES: usize = 1 << 16;

/// Where such tables lead inside a function.
pub(crate) fn leads(code: &Code, (start, end): (u64, u64)) -> Vec<Pointer> {
    let bytes = code.from(start);
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
    let mut named: Vec<u64> = Vec::new();
    let mut has_jump = false;
    for instruction in
        &mut Decoder::with_ip(64, bytes.get(..length).unwrap_or_default(), start, DecoderOptions::NONE)
    {
        has_jump |= instruction.flow_control() == FlowControl::IndirectBranch
            && !instruction.is_ip_rel_memory_operand();
        named.extend(code.named(&instruction));
    }
    if !has_jump {
        return Vec::new();
    }
    named.sort_unstable();
    named.dedup();
    let is_inside = |address: &u64| (start..end).contains(address);
    let (labels, tables): (Vec<u64>, Vec<u64>) = named.into_iter().partition(is_inside);
    let mut found = Vec::new();
    for table in tables.iter().filter(|table| !code.is_start(**table)) {
        let entries = code.bytes(*table).as_chunks::<4>().0;
        for base in std::iter::once(table).chain(&labels) {
            let before = found.len();
            for (place, entry) in (*table..).step_by(4).zip(entries).take(MOST_ENTRIES) {
                let target = base.wrapping_add_signed(i64::from(i32::from_le_bytes(*entry)));
                let is_over = if base == table { code.from(target).is_empty() } else { !is_inside(&target) };
                if is_over || place != *table && tables.binary_search(&place).is_ok() {
                    break;
                }
                if is_inside(&target) {
                    found.push(Pointer { target, place });
                }
            }
            // Numbers that are 0 are no distances; a function may hand itself on beside them.
            if found.get(before..).is_some_and(|leads| leads.iter().all(|lead| lead.target == start)) {
                found.truncate(before);
            }
        }
    }
    found
}
