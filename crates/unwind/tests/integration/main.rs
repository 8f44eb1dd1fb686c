//! The walker on real stacks of this process, each event walked in all ways and compared with libgcc's unwinder.

#![expect(unsafe_code, reason = "hand-made frames, signals, contexts")]

mod budget;
mod coroutine;
mod depth;
mod frame_shape;
mod generation;
mod harness;
mod modules;
#[cfg(feature = "mutation")]
mod mutation;
mod shapes;
mod signal;
mod tree;
