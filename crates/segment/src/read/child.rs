//! The table of children that were not recorded.

use core::mem::{offset_of, size_of};
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use super::source::{Bytes, Source};
use super::{Children, Error};
use crate::layout::{
    self, CHILD_NAME_BYTES, CHILD_NAME_LIMIT, CHILD_NAME_WRITTEN, CHILDREN_BYTES, CHILDREN_OFFSET, ChildName,
};

/// Reads the table. A count below 0, which a process leaves that ends between two stores, is 0.
pub(super) fn read(source: Source<'_>) -> Result<Children, Error> {
    let mut bytes = vec![0; CHILDREN_BYTES as usize];
    source.read(CHILDREN_OFFSET, &mut bytes)?;
    let table = Bytes::new(&bytes);
    let count = |offset| u64::try_from(table.i64(offset)).unwrap_or(0);
    let mut programs: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for number in 0..CHILD_NAME_LIMIT {
        let entry = offset_of!(layout::Children, names) + number * size_of::<ChildName>();
        let children = count(entry + offset_of!(ChildName, count));
        if children == 0 || table.u32(entry + offset_of!(ChildName, state)) != CHILD_NAME_WRITTEN {
            continue;
        }
        let len = (table.u32(entry + offset_of!(ChildName, len)) as usize).min(CHILD_NAME_BYTES);
        let name = table.slice(entry + offset_of!(ChildName, words), len).to_owned();
        let sum = programs.entry(name).or_default();
        *sum = sum.saturating_add(children);
    }
    Ok(Children {
        programs: programs.into_iter().collect(),
        unnamed: count(offset_of!(layout::Children, unnamed)),
    })
}
