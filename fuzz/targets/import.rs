//! Any bytes as a file of any tool, packed or not.
#![no_main]

use heaptally_fuzz::{import, profile, seed};
use heaptally_profile::import::read_with_limit;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(import::files), |bytes: &[u8]| {
    if let Ok(imported) = read_with_limit(bytes, profile::LIMIT_BYTES) {
        import::check(imported, bytes.len());
    }
});
