//! A benchmark of no harness, with a window of its own.

use std::hint::black_box;

fn main() {
    assert!(std::env::args().any(|word| word == "--bench"), "Cargo tells benchmarks that they are");
    let _window = heaptally::window(c"own");
    for _ in 0..4 {
        black_box(counted::six());
    }
    heaptally::iterations(c"own", 4);
}
