//! Real programs, built here by the compilers at hand, symbolised and compared with what binutils say.

mod build;
mod compare;
mod compiler_output;
mod debug_file;
mod fold;
mod replaced;
mod symbol;
