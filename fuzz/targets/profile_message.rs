//! Any bytes as a profile's message, with a digest that fits.
#![no_main]

use heaptally_fuzz::{message, profile, seed};
use heaptally_profile::pprof;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(message::messages), |bytes: &[u8]| {
    let message = message::with_digest(bytes);
    let file = message::pack(message.as_deref().unwrap_or(bytes));
    if let Ok(read) = pprof::read_with_limit(&file, profile::LIMIT_BYTES) {
        profile::check(&read);
        profile::report(&read, &profile::options(bytes.len() as u64));
    }
});
