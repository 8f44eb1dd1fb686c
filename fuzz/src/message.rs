//! Unpacked profile files, with what protects them made right again after a change: a digest that does not fit would
//! hide everything behind it.

use std::io::Write as _;

use arbitrary::Unstructured;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use heaptally_profile::model::Profile;
use heaptally_profile::pprof;
use prost::Message as _;
use serde_json::Value;

use crate::{model, seed};

#[path = "../../crates/profile/src/pprof/proto.rs"]
mod proto;

const COMMENT_PREFIX: &str = "#heaptally ";

/// The bytes in gzip, hardly compressed.
///
/// # Panics
/// Never: memory takes all bytes.
pub fn pack(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(message).and_then(|()| encoder.finish()).expect("memory can be written")
}

/// The message with the digest in its document made right; `None` where there is no such document.
pub fn with_digest(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut message = proto::Profile::decode(bytes).ok()?;
    let at = message.comment.iter().find_map(|&comment| {
        let at = usize::try_from(comment).ok()?;
        message.string_table.get(at).is_some_and(|text| text.starts_with(COMMENT_PREFIX)).then_some(at)
    })?;
    let text = message.string_table.remove(at);
    let mut document: Value = serde_json::from_str(text.strip_prefix(COMMENT_PREFIX)?).ok()?;
    let comments = std::mem::take(&mut message.comment);
    let digest = fnv_1a(&message.encode_to_vec());
    document.as_object_mut()?.insert("digest".to_owned(), Value::String(format!("{digest:016x}")));
    message.comment = comments;
    message.string_table.insert(at, format!("{COMMENT_PREFIX}{document}"));
    Some(message.encode_to_vec())
}

/// FNV-1a, 64 bits (constants: datatracker.ietf.org/doc/html/draft-eastlake-fnv).
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Files of valid profiles, smaller ones first.
pub fn files() -> Vec<Vec<u8>> {
    let profiles = (0..400).filter_map(|state| {
        let noise = seed::noise(state, 200 + 3 * state as usize);
        let profile = model::profile(&mut Unstructured::new(&noise)).ok()?;
        let is_rich = |profile: &Profile| profile.rows.len() > 1 && profile.locations.len() > 2;
        (profile.validate().is_ok() && is_rich(&profile)).then(|| pprof::write(&profile))
    });
    profiles.take(24).collect()
}

/// The messages in [`files`].
///
/// # Panics
/// When a file that was written is no gzip.
pub fn messages() -> Vec<Vec<u8>> {
    let unpack = |file: Vec<u8>| {
        let mut message = Vec::new();
        std::io::copy(&mut GzDecoder::new(&file[..]), &mut message).expect("a file is gzip");
        message
    };
    files().into_iter().map(unpack).collect()
}
