//! Real programs in C, C++ and Rust under the real recorder.

mod cases_a;
mod cases_b;
mod cases_c;
mod cases_d;
mod cases_e;
mod cases_r;
mod diff;
mod exact;
mod exec;
mod fork;
mod full;
mod kill;
mod option;
mod oracle;
mod stacks;
mod standard;
mod start;
mod unload;
mod window;
