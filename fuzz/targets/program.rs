//! Any bytes as the program that the command is to start.
#![no_main]

use std::fs::File;
use std::io::Write as _;

use heaptally_fuzz::{elf as elf_file, seed};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};

#[path = "../../crates/cli/src/elf/mod.rs"]
#[expect(dead_code, reason = "what is found is not told here")]
mod elf;

fuzz_target!(init: seed::plant(elf_file::files), |bytes: &[u8]| {
    let mut file = File::from(memfd_create("program", MemfdFlags::CLOEXEC).expect("a file in memory"));
    file.write_all(bytes).expect("a file in memory can be written");
    let head = bytes.get(..bytes.len().min(256)).unwrap_or_default();
    let found = elf::Elf::read(&file, head);
    assert_eq!(found.is_some(), bytes.starts_with(b"\x7fELF"));
});
