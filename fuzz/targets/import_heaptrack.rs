//! Any content as a heaptrack recording.
#![no_main]

use std::sync::LazyLock;

use heaptally_fuzz::{import, seed};
use heaptally_profile::import::Importer;
use libfuzzer_sys::fuzz_target;

static IMPORTER: LazyLock<Importer> = LazyLock::new(|| import::importer("heaptrack recording"));

fuzz_target!(init: seed::plant(|| import::seeds(&IMPORTER)), |content: &[u8]| import::run(&IMPORTER, content));
