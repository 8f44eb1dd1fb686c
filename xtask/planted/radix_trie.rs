//! Fills a trie, searches it and takes out of it.
mod harness;

use std::hint::black_box;

use radix_trie::{Trie, TrieCommon};

fn work() -> usize {
    let mut trie: Trie<String, usize> = Trie::new();
    for at in 0..60_usize {
        trie.insert(black_box(format!("key {} of {}", at * 37 % 101, at % 5)), at);
    }
    let mut count = trie.len();
    count += trie.get("key 4 of 3").copied().unwrap_or(1);
    count += trie.get_ancestor_value("key 37 of 1 and more").copied().unwrap_or(2);
    count += trie.get_raw_ancestor("key 3").len();
    count += trie.get_raw_descendant("key 7").map_or(0, |below| below.len());
    count += trie.get_ancestor("key 74 of 22").map_or(3, |node| node.len());
    if let Some(value) = trie.get_mut("key 0 of 0") {
        *value += 7;
    }
    trie.map_with_default("key 0 of 0".to_owned(), |value| *value += 1, 9);
    trie.map_with_default("other".to_owned(), |value| *value += 1, 9);
    for at in (0..60_usize).step_by(3) {
        count += trie.remove(&format!("key {} of {}", at * 37 % 101, at % 5)).unwrap_or(1);
    }
    count += trie.iter().map(|(key, value)| key.len() + value).sum::<usize>();
    count += trie.keys().count() + trie.values().sum::<usize>();
    count += trie.subtrie("key 5").map_or(0, |below| below.keys().count());
    let below: usize = trie.children().map(|child| child.len()).sum();
    let other: Trie<String, usize> = trie.iter().map(|(key, value)| (key.clone(), *value)).collect();
    let removed = trie.get_raw_descendant("key 5").map_or(0, |below| below.len());
    let mut numbers: Trie<u32, char> = (0..20_u32).map(|at| (at * at * 1000, 'x')).collect();
    numbers.insert(7, 'y');
    let bytes: Trie<Vec<u8>, ()> = [b"abc".to_vec(), b"abd".to_vec()].into_iter().map(|key| (key, ())).collect();
    count + below + removed + format!("{other:?}").len() + numbers.len() + bytes.len() + usize::from(other == trie) + usize::from(numbers.check_integrity())
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
