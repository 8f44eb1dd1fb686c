//! Real programs in C, C++ and Rust under the real recorder.

mod cases_a;
mod cases_b;
mod cases_c;
mod cases_d;
mod cases_e;
mod cases_r;
mod child;
mod child_program;
mod consumer;
mod entry_point;
mod exact;
mod exec;
mod fork;
mod full;
mod guard;
mod kill;
mod naming;
mod option;
mod oracle;
mod stacks;
mod standard;
mod start;
mod terminal;
mod unload;
mod window;
