//! The command as its users call it: exit codes, messages, files. What is recorded, the workspace's `integration-tests`
//! look at.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

mod cache;
mod elf_copy;
mod output;
mod pty;
mod refusal;
mod report;
mod sandbox;
mod status;
mod usage;
mod window;
