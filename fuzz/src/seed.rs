//! The inputs that a target begins with.

use std::env;
use std::fs;
use std::path::PathBuf;

/// Names the folder into which a target writes its first inputs before it reads them.
pub const SEED_VARIABLE: &str = "HEAPTALLY_FUZZ_SEEDS";

/// Writes inputs into the folder that [`SEED_VARIABLE`] names, if it does.
///
/// # Panics
/// When a file cannot be written.
pub fn plant(seeds: impl FnOnce() -> Vec<Vec<u8>>) {
    let Some(folder) = env::var_os(SEED_VARIABLE).map(PathBuf::from) else { return };
    for (at, seed) in seeds().into_iter().enumerate() {
        let path = folder.join(format!("seed-{at:03}"));
        if let Err(error) = fs::write(&path, seed) {
            panic!("cannot write {}: {error}", path.display());
        }
    }
}

/// Bytes that look random and are always the same.
pub fn noise(mut state: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while bytes.len() < len {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
