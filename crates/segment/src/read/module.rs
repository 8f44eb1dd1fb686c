//! Modules, and which of them held an address at a time.

use core::mem::offset_of;
use std::vec::Vec;

use super::area::{PATH_LIMIT, Strings};
use super::source::AreaSource;
use super::{Error, Module};
use crate::layout::{self, MODULES};

pub(super) fn read(area: AreaSource<'_>, used: u32, strings: Strings<'_>) -> Result<Vec<Module>, Error> {
    Ok(read_numbered(area, used, strings)?.into_iter().map(|(_, module)| module).collect())
}

/// As [`read`], each with the number of its entry.
pub(super) fn read_numbered(
    area: AreaSource<'_>,
    used: u32,
    strings: Strings<'_>,
) -> Result<Vec<(u32, Module)>, Error> {
    let mut modules = Vec::new();
    let mut failed = None;
    area.for_each::<layout::Module>(MODULES, used, |number, entry| {
        if entry.u32(offset_of!(layout::Module, state)) == 0 {
            return;
        }
        let path = entry.u32(offset_of!(layout::Module, path));
        let path_len = entry.u32(offset_of!(layout::Module, path_len));
        let path = match strings.get(path, path_len, PATH_LIMIT) {
            Ok(path) => path.unwrap_or_default(),
            Err(error) => {
                failed.get_or_insert(error);
                return;
            }
        };
        let build_id_len = entry.u32(offset_of!(layout::Module, build_id_len)).min(32);
        let module = Module {
            path,
            build_id: entry.slice(offset_of!(layout::Module, build_id), build_id_len as usize).into(),
            bias: entry.u64(offset_of!(layout::Module, bias)),
            start: entry.u64(offset_of!(layout::Module, start)),
            end: entry.u64(offset_of!(layout::Module, end)),
            text_svma: entry.u64(offset_of!(layout::Module, text_svma)),
            text_svma_end: entry.u64(offset_of!(layout::Module, text_svma_end)),
            text_offset: entry.u64(offset_of!(layout::Module, text_offset)),
            load_node: entry.u32(offset_of!(layout::Module, load_node)),
            unload_node: entry.u32(offset_of!(layout::Module, unload_node)),
            inode: entry.u64(offset_of!(layout::Module, inode)),
            device: entry.u64(offset_of!(layout::Module, device)),
            notes: entry.u32(offset_of!(layout::Module, notes)),
        };
        modules.push((number, module));
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok(modules),
    }
}

/// Finds modules by address.
#[derive(Debug)]
pub(super) struct ModuleIndex {
    /// By start.
    ranges: Vec<Range>,
}

#[derive(Debug)]
struct Range {
    start: u64,
    end: u64,
    /// The highest end of this range and those before it.
    end_so_far: u64,
    load_node: u32,
    unload_node: u32,
    module: usize,
}

impl ModuleIndex {
    pub(super) fn new(modules: &[Module]) -> Self {
        let mut ranges: Vec<Range> = Vec::with_capacity(modules.len());
        for (module, entry) in modules.iter().enumerate().filter(|(_, module)| module.start < module.end) {
            let Module { start, end, load_node, unload_node, .. } = *entry;
            ranges.push(Range { start, end, end_so_far: end, load_node, unload_node, module });
        }
        ranges.sort_by_key(|range| (range.start, range.module));
        let mut end_so_far = 0;
        for range in &mut ranges {
            end_so_far = range.end.max(end_so_far);
            range.end_so_far = end_so_far;
        }
        Self { ranges }
    }

    /// The module that held an address when the node of that number was made; of several the one loaded last.
    pub(super) fn find(&self, address: u64, node: u32) -> Option<usize> {
        let below = self.ranges.partition_point(|range| range.start <= address);
        let candidates =
            self.ranges.get(..below)?.iter().rev().take_while(|range| range.end_so_far > address);
        candidates
            .filter(|range| address < range.end && range.load_node <= node && node < range.unload_node)
            .max_by_key(|range| (range.load_node, range.module))
            .map(|range| range.module)
    }
}
