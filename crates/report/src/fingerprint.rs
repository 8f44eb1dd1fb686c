//! What tells a statement from another one, and does not change when lines do.

use crate::verdict::{Site, Statement};

/// 16 hexadecimal digits: FNV-1a of the kind of statement, the window, and the call site's function and file.
pub(crate) fn fingerprint(statement: &Statement, site: Option<&Site>) -> String {
    let window = statement.window.as_deref().unwrap_or_default();
    let (function, file) = site.map_or(("", ""), |site| (site.function.as_str(), site.file.as_str()));
    // Where there is nothing else, what is said of is.
    let rest = if window.is_empty() && site.is_none() { statement.message.as_str() } else { "" };
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [statement.rule, window, function, file, rest] {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
