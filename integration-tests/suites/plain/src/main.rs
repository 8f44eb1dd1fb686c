//! Allocates six times for each word, and ends with the code that stands behind `--code`.

use std::hint::black_box;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let _window = heaptally::window(c"words");
    words.iter().for_each(|_| drop(black_box(counted::six())));
    let code = words.iter().position(|word| word == "--code").and_then(|at| words.get(at + 1));
    ExitCode::from(code.and_then(|code| code.parse().ok()).unwrap_or(0))
}
