//! Which compilers made a module, as its debug information says.

use std::collections::BTreeSet;

use addr2line::gimli::{self, AttributeValue, Dwarf, UnitHeader};

use crate::object_file::Slice;

/// So many units of one module are looked at.
const MAX_UNITS: usize = 20_000;
/// So many bytes of one value are kept.
const MAX_VALUE_BYTES: usize = 1024;

/// Adds the `DW_AT_producer` values of a module's compile units. What is damaged is left out.
pub(crate) fn collect(dwarf: &Dwarf<Slice<'_>>, producers: &mut BTreeSet<String>) {
    let mut units = dwarf.units();
    let mut count = 0;
    // Units of one compiler follow each other and share their string.
    let mut last = None;
    while count < MAX_UNITS
        && let Ok(Some(header)) = units.next()
    {
        count += 1;
        if let Ok(Some(producer)) = unit_producer(dwarf, header)
            && last != Some(producer)
        {
            last = Some(producer);
            let text = producer.to_string_lossy();
            let mut end = text.len().min(MAX_VALUE_BYTES);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            if end > 0 {
                producers.insert(text[..end].to_owned());
            }
        }
    }
}

/// The producer that one unit names.
fn unit_producer<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    header: UnitHeader<Slice<'a>>,
) -> gimli::Result<Option<Slice<'a>>> {
    let abbreviations = dwarf.abbreviations(&header)?;
    let mut entries = header.entries(&abbreviations);
    let Some(root) = entries.next_dfs()? else { return Ok(None) };
    match root.attr_value(gimli::DW_AT_producer) {
        // The plain forms need no more than the string sections.
        Some(AttributeValue::DebugStrRef(offset)) => dwarf.debug_str.get_str(offset).map(Some),
        Some(AttributeValue::DebugLineStrRef(offset)) => dwarf.debug_line_str.get_str(offset).map(Some),
        Some(AttributeValue::String(text)) => Ok(Some(text)),
        // The others are relative to what the whole unit states.
        Some(value) => {
            let unit = dwarf.unit(header)?;
            dwarf.attr_string(&unit, value).map(Some)
        }
        None => Ok(None),
    }
}
