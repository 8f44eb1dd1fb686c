//! gzip and zstd, told by their first bytes, and the packers that are only told by name.

use std::borrow::Cow;
use std::io::Read as _;

use ruzstd::decoding::StreamingDecoder;

use crate::Error;
use crate::pprof::read::decompress;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How other packers' files begin, the packers, and what unpacks them.
const NOT_UNPACKED: [(&[u8], &str, &str); 5] = [
    (b"\xfd7zXZ\0", "xz", "xz -d FILE"),
    (b"BZh91AY&SY", "bzip2", "bzip2 -d FILE"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -d FILE"),
    (b"PK\x03\x04", "zip", "unzip FILE"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x FILE"),
];

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP)
}

/// Whether a file begins so. The size of bzip2's blocks is any digit.
fn begins(bytes: &[u8], magic: &[u8]) -> bool {
    let is_like =
        |(found, expected): (&u8, &u8)| found == expected || (*expected == b'9' && found.is_ascii_digit());
    bytes.len() >= magic.len() && bytes.iter().zip(magic).all(is_like)
}

/// The content of a file, which may have at most `limit_bytes`.
pub(super) fn unpack(bytes: &[u8], limit_bytes: u64) -> Result<Cow<'_, [u8]>, Error> {
    if is_gzip(bytes) {
        return Ok(Cow::Owned(decompress(bytes, limit_bytes)?));
    }
    if bytes.starts_with(&ZSTD) {
        return Ok(Cow::Owned(zstd(bytes, limit_bytes)?));
    }
    if let Some((_, packer, command)) = NOT_UNPACKED.iter().find(|(magic, ..)| begins(bytes, magic)) {
        return Err(Error::Packed { packer, command });
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
        let left = limit_bytes.saturating_sub(content.len() as u64);
        let read = StreamingDecoder::new(&mut rest).map_err(|error| error.to_string()).and_then(|decoder| {
            let read = decoder.take(left.saturating_add(1)).read_to_end(&mut content);
            read.map_err(|error| error.to_string())
        });
        if let Err(reason) = read {
            return Err(Error::Zstd { at: bytes.len() - rest.len(), len: bytes.len(), reason });
        }
        if content.len() as u64 > limit_bytes {
            return Err(Error::TooLarge { limit: limit_bytes, unit: "bytes" });
        }
    }
    Ok(content)
}
