//! What tells a statement from another one, and does not change when lines do.

use std::collections::HashMap;

use heaptally_profile::limit::Per;

use crate::verdict::{Site, Statement};

/// Fingerprints of one verdict, each once: who reads them shows one of those that are the same.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    /// How often one came.
    seen: HashMap<u64, u64>,
}

impl Fingerprints {
    /// 16 hexadecimal digits: FNV-1a of the kind of statement, the count, the window, and the call site's function and file,
    /// and from the second of such on of their number.
    pub(crate) fn next(&mut self, statement: &Statement, site: Option<&Site>) -> String {
        let window = statement.window.as_deref().unwrap_or_default();
        let (function, file) = site.map_or(("", ""), |site| (site.function.as_str(), site.file.as_str()));
        let count = statement.count.map_or("", |(metric, _)| metric.key());
        let per = statement.count.map_or("", |(_, per)| if per == Per::Run { "total" } else { "" });
        // Where there is nothing else, what is said of is.
        let rest = if window.is_empty() && site.is_none() { statement.message.as_str() } else { "" };
        let parts = [statement.rule, count, per, window, function, file, rest];
        let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| add(hash, part));
        let number = self.seen.entry(hash).or_insert(0);
        *number += 1;
        let hash = if *number > 1 { add(hash, &number.to_string()) } else { hash };
        format!("{hash:016x}")
    }
}

fn add(hash: u64, part: &str) -> u64 {
    part.bytes()
        .chain([0])
        .fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
