//! JSON there and back, as a value of any form and as a struct.
//!
//! ```text
//! bench-json ROUNDS
//! ```
//!
//! Prints one line of JSON: the rounds, and the nanoseconds that they took. With the feature `dhat` it records itself and
//! writes `dhat-heap.json` in the working folder; `DHAT_OUT` names another file.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::Instant;

#[cfg(feature = "dhat")]
#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

#[derive(Debug, Deserialize, Serialize)]
struct Row {
    id: u32,
    name: String,
    tags: Vec<String>,
    at: Vec<Option<f64>>,
}

fn rows() -> Vec<Row> {
    let row = |id: u32| Row {
        id,
        name: format!("row {id} of a table"),
        tags: vec!["a".repeat(id as usize % 40 + 1), "b".to_owned(), id.to_string()],
        at: vec![Some(f64::from(id) / 7.0), None, Some(-f64::from(id))],
    };
    (0..100).map(row).collect()
}

fn run(rounds: u64) -> Result<usize, serde_json::Error> {
    let mut text = serde_json::to_string(&rows())?;
    let mut length = 0;
    for _ in 0..rounds {
        let value: serde_json::Value = serde_json::from_str(&text)?;
        let rows: Vec<Row> = serde_json::from_value(value.clone())?;
        length += value.to_string().len();
        text = serde_json::to_string(&rows)?;
    }
    Ok(length)
}

fn main() -> ExitCode {
    #[cfg(feature = "dhat")]
    let _profiler = {
        let file = std::env::var("DHAT_OUT").unwrap_or_else(|_| "dhat-heap.json".to_owned());
        dhat::Profiler::builder().trim_backtraces(None).file_name(file).build()
    };
    let Some(rounds) = std::env::args().nth(1).and_then(|word| word.parse().ok()) else {
        eprintln!("usage: bench-json ROUNDS");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    match run(rounds) {
        Ok(length) => {
            let wall_ns = start.elapsed().as_nanos();
            println!("{{\"pairs\": {rounds}, \"wall_ns\": {wall_ns}, \"length\": {length}}}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-json: {error}");
            ExitCode::FAILURE
        }
    }
}
