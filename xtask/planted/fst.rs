//! Builds and searches ordered sets and maps.
mod harness;

use std::hint::black_box;

use fst::automaton::{Str, Subsequence};
use fst::{Automaton, IntoStreamer, Map, MapBuilder, Set, Streamer};

fn work() -> usize {
    let mut words: Vec<String> = (0..60_u32).map(|at| format!("word {} {}", at * 37 % 101, at % 7)).collect();
    words.sort();
    words.dedup();
    let set = Set::from_iter(&words).expect("in order");
    let other = Set::from_iter(words.iter().step_by(3)).expect("in order");
    let mut builder = MapBuilder::memory();
    for (at, word) in words.iter().enumerate() {
        builder.insert(word, at as u64 * 1000).expect("in order");
    }
    let map: Map<Vec<u8>> = builder.into_map();
    let wrong = Set::from_iter(["b", "a"]).expect_err("not in order").to_string();
    let damaged = Map::new(vec![0_u8; 40]).err().map(|error| error.to_string()).unwrap_or_default();
    let found = map.search(Subsequence::new("w5")).into_stream().into_str_keys().expect("text");
    let ranged = map.range().ge("word 3").lt("word 7").into_stream().into_str_vec().expect("text");
    let started = set.search(Str::new("word 1").starts_with()).into_stream().into_strs().expect("text");
    let mut union = set.op().add(&other).union();
    let mut count = 0;
    while let Some(word) = union.next() {
        count += word.len();
    }
    let mut both = set.op().add(other.range().le("word 8")).intersection();
    while let Some(word) = both.next() {
        count += word.len();
    }
    let mut apart = set.op().add(&other).difference();
    while let Some(word) = apart.next() {
        count += word.len();
    }
    let mut maps = map.op().add(&map).symmetric_difference();
    while let Some((word, values)) = maps.next() {
        count += word.len() + values.len();
    }
    let value = map.get(black_box("word 4 3")).unwrap_or(1) as usize;
    count + value + found.len() + ranged.len() + started.len() + wrong.len() + damaged.len() + usize::from(set.is_disjoint(&other)) + format!("{map:?}").len()
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
