//! What this command says of itself: one line for `-V`, and for `--version` what it was built from.
//!
//! ```text
//! heaptally 0.1.0
//! target: x86_64-unknown-linux-gnu
//! compiler: rustc 1.95.0 (59807616e 2026-04-14)
//! recorder: 182,344 bytes, content hash 5d0f64c6f2a4b1e7
//! demanglers: Rust (legacy, v0), C++ (Itanium)
//! features: none
//! profile format: 1
//! report schema: 1
//! segment layout: 1
//! ```
//!
//! The hash is the one in the name under which the recorder is unpacked. There is no date and no path: the same sources
//! and compiler give the same text.

use heaptally_report::json;
use heaptally_segment::layout;

use crate::library;

/// The version of the profile's own document, see `heaptally_profile::pprof`.
const PROFILE_FORMAT: u64 = 1;

/// The features that it was built with.
const FEATURES: &str = env!("HEAPTALLY_FEATURES");

/// The text behind the command's name.
pub(crate) fn long() -> String {
    let (len, hash) = library::identity();
    let has_swift = FEATURES.split(", ").any(|feature| feature == "swift");
    let lines = [
        env!("CARGO_PKG_VERSION").to_owned(),
        format!("target: {}", env!("HEAPTALLY_TARGET")),
        format!("compiler: {}", env!("HEAPTALLY_COMPILER")),
        format!("recorder: {} bytes, content hash {hash:016x}", with_separators(len)),
        format!("demanglers: Rust (legacy, v0), C++ (Itanium){}", if has_swift { ", Swift" } else { "" }),
        format!("features: {}", if FEATURES.is_empty() { "none" } else { FEATURES }),
        format!("profile format: {PROFILE_FORMAT}"),
        format!("report schema: {}", json::VERSION),
        format!("segment layout: {}", layout::VERSION),
    ];
    lines.join("\n")
}

/// A number with a comma before every three digits.
fn with_separators(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or_default()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use heaptally_profile::model::Profile;
    use heaptally_profile::pprof;

    use super::*;

    #[test]
    fn the_profile_format_is_the_one_that_is_written() {
        let mut content = Vec::new();
        GzDecoder::new(pprof::write(&Profile::default()).as_slice()).read_to_end(&mut content).unwrap();
        let content = String::from_utf8_lossy(&content);
        let document = format!("\"format\":\"heaptally-profile\",\"version\":{PROFILE_FORMAT},");
        assert!(content.contains(&document), "{content}");
    }

    #[test]
    fn separators() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(with_separators(number), text);
        }
    }
}
