//! Where a stack leaves what the other side has.

use std::collections::HashSet;

use super::pairing::Sides;
use super::{Entry, Side};

/// The hash of a frame below those with the hash `outer`.
fn hash(outer: u64, key: u32) -> u64 {
    let mixed = (outer ^ u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_add(1)
}

/// The hashes of a row's frames with all of their callers, from the outermost one.
fn hashes(sides: Sides<'_, '_>, side: usize, row: usize) -> Vec<(u64, u32)> {
    let Some(row) = sides.views[side].rows.get(row) else { return Vec::new() };
    let mut outer = 0;
    let hashed = |(item, at): &(super::key::Item, u32)| {
        outer = hash(outer, item.key);
        (outer, *at)
    };
    sides.readers[side].frames(row).iter().rev().map(hashed).collect()
}

/// Finds the parting of each entry.
pub(super) fn find(sides: Sides<'_, '_>, entries: &mut [Entry]) {
    let of_entries: Vec<(usize, Vec<(u64, u32)>)> = entries
        .iter()
        .map(|entry| {
            let side = entry.row.0.index();
            (side, hashes(sides, side, entry.row.1))
        })
        .collect();
    for side in [Side::Base, Side::Change] {
        let other = 1 - side.index();
        let mine = || of_entries.iter().filter(|(of, _)| *of == side.index());
        let wanted: HashSet<u64> =
            mine().flat_map(|(_, hashes)| hashes.iter().map(|(hash, _)| *hash)).collect();
        if wanted.is_empty() {
            continue;
        }
        let mut there: HashSet<u64> = HashSet::new();
        for row in 0..sides.views[other].rows.len() {
            there.extend(
                hashes(sides, other, row)
                    .into_iter()
                    .map(|(hash, _)| hash)
                    .filter(|hash| wanted.contains(hash)),
            );
        }
        for (entry, (of, hashes)) in entries.iter_mut().zip(&of_entries) {
            if *of == side.index() {
                let shared = hashes.iter().take_while(|(hash, _)| there.contains(hash)).count();
                let innermost = shared.checked_sub(1).filter(|_| shared < hashes.len());
                entry.parting = innermost.and_then(|at| hashes.get(at)).map(|(_, at)| *at as usize);
            }
        }
    }
}
