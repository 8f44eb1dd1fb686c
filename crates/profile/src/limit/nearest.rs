//! What somebody meant who wrote a word that is not known.

/// The known word that takes the fewest changes of a character, if that is at most a third of them, or two.
pub fn nearest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let distances = known.iter().map(|other| (distance(word, other), *other));
    let (distance, nearest) = distances.min()?;
    (distance <= (word.chars().count() / 3).max(2)).then_some(nearest)
}

/// How many characters have to be put in, taken out or exchanged.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["allocs", "bytes", "live", "live_bytes"];
        assert_eq!(nearest("alocs", &known), Some("allocs"));
        assert_eq!(nearest("allocations", &["allocs", "bytes"]), None);
        assert_eq!(nearest("live_byte", &known), Some("live_bytes"));
        assert_eq!(nearest("zzzzz", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
