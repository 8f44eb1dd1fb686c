//! Maps and sets that keep an order.
mod harness;

use std::hint::black_box;

use indexmap::{IndexMap, IndexSet};

fn work() -> usize {
    let mut map: IndexMap<String, u32> = (0..40_u32).map(|at| (format!("key {at}"), at * 7 % 40)).collect();
    map.insert("more".into(), 3);
    *map.entry("key 7".into()).or_insert(0) += 1;
    map.entry("new".into()).or_insert_with(|| 9);
    map.entry("more".into()).and_modify(|value| *value += 1).or_default();
    map.swap_remove("key 3");
    map.shift_remove("key 4");
    map.insert_sorted("key 05".into(), 1);
    map.sort_by(|_, a, _, b| a.cmp(b));
    map.sort_keys();
    map.retain(|_, value| *value % 5 != 0);
    map.reverse();
    map.swap_indices(0, 1);
    map.move_index(2, 0);
    map.extend([("x".to_owned(), 1), ("y".to_owned(), 2)]);
    let cloned = map.clone();
    let drained: Vec<(String, u32)> = map.drain(1..4).collect();
    map.truncate(12);
    let tail = map.split_off(6);
    map.shrink_to_fit();
    let first: IndexSet<u32> = (0..20).collect();
    let second: IndexSet<u32> = (10..30).rev().collect();
    let both: IndexSet<u32> = &first & &second;
    let sets = first.union(&second).count() + first.difference(&second).count() + first.symmetric_difference(&second).count() + both.len();
    let found = cloned.get_full("key 8").map_or(0, |(at, ..)| at) + usize::from(cloned == map);
    let values: u32 = tail.values().sum::<u32>() + map.into_values().sum::<u32>() + black_box(&cloned).iter().map(|(_, value)| value).sum::<u32>();
    sets + found + drained.len() + values as usize + format!("{cloned:?}{:?}", both.first()).len()
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
