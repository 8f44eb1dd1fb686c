//! gzip and zstd, told by their first bytes.

use std::borrow::Cow;
use std::io::Read as _;

use ruzstd::decoding::StreamingDecoder;

use crate::Error;
use crate::pprof::read::decompress;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP)
}

/// The content of a file, which may have at most `limit_bytes`.
pub(super) fn unpack(bytes: &[u8], limit_bytes: u64) -> Result<Cow<'_, [u8]>, Error> {
    if is_gzip(bytes) {
        return Ok(Cow::Owned(decompress(bytes, limit_bytes)?));
    }
    if bytes.starts_with(&ZSTD) {
        return Ok(Cow::Owned(zstd(bytes, limit_bytes)?));
    }
    if bytes.len() as u64 > limit_bytes {
        return Err(Error::TooLarge { limit: limit_bytes, unit: "bytes" });
    }
    Ok(Cow::Borrowed(bytes))
}

/// One frame after the other, as `zstd -d` does.
fn zstd(bytes: &[u8], limit_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut rest = bytes;
    let mut content = Vec::new();
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let damaged = |reason: String| Error::Zstd { reason: format!("in the frame at byte {at}: {reason}") };
        let mut decoder = StreamingDecoder::new(&mut rest).map_err(|error| damaged(error.to_string()))?;
        let left = limit_bytes.saturating_sub(content.len() as u64);
        let read = (&mut decoder).take(left.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| damaged(error.to_string()))?;
        if content.len() as u64 > limit_bytes {
            return Err(Error::TooLarge { limit: limit_bytes, unit: "bytes" });
        }
    }
    Ok(content)
}
