//! Any bytes as the file of a module.
#![no_main]

use std::fs::File;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd as _;

use heaptally_fuzz::{elf, seed};
use heaptally_profile::model::{FrameKind, Image, Location, Module, Profile};
use heaptally_symbolize::{Options, Symbolizer};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};

fuzz_target!(init: seed::plant(elf::files), |bytes: &[u8]| {
    let mut file = File::from(memfd_create("module", MemfdFlags::CLOEXEC).expect("a file in memory"));
    file.write_all(bytes).expect("a file in memory can be written");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut profile = profile(path, bytes);
    Symbolizer::new(Options { debug_dirs: Vec::new(), threads: Some(NonZeroUsize::MIN), ..Options::default() }).symbolize(&mut profile);
    profile.validate().expect("what was symbolised is valid");
});

/// A profile with the module, and locations where the seeds have code, at the file's start and at the edges.
fn profile(path: String, bytes: &[u8]) -> Profile {
    let entry = bytes.get(24..32).and_then(|entry| entry.try_into().ok()).map_or(0, u64::from_le_bytes);
    let edges = [0, 1, entry, entry.wrapping_add(5), 0x40_1000, u64::MAX];
    let addresses = (0x2a0..0x320).step_by(2).chain((0x320..0x440).step_by(9)).chain(edges);
    Profile {
        images: vec![Image { path: path.clone(), ..Image::default() }],
        modules: vec![Module { path, ..Module::default() }],
        locations: addresses
            .map(|address| Location {
                module: Some(0),
                address,
                kind: FrameKind::Interrupted,
                ..Location::default()
            })
            .collect(),
        ..Profile::default()
    }
}
