//! Real programs, built here by the compilers at hand, symbolised and compared with what binutils say.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

mod build;
mod compare;
mod compiler_output;
mod cpp_name;
mod debug_file;
mod fold;
mod replaced;
mod swift;
mod symbol;
mod thread;
