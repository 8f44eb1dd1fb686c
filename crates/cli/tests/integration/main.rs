//! The command as its users call it: exit codes, messages, files. What is recorded, the workspace's `integration-tests`
//! look at.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

mod baseline;
mod cache;
mod check;
mod ci;
mod completion;
mod config;
mod damage;
mod doctor;
mod elf_copy;
mod file_role;
mod full_disk;
mod import;
mod limits;
mod man;
mod option;
mod output;
mod print;
mod pty;
mod readme;
mod refusal;
mod repeat;
mod report;
mod sandbox;
mod status;
mod usage;
mod window;
