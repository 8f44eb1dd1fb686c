//! Any bytes as a profile's file.
#![no_main]

use heaptally_fuzz::{message, profile, seed};
use heaptally_profile::pprof;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(message::files), |bytes: &[u8]| {
    if let Ok(read) = pprof::read_with_limit(bytes, profile::LIMIT_BYTES) {
        profile::check(&read);
        profile::report(&read, &profile::options(bytes.len() as u64));
    }
});
