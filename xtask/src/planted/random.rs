//! Numbers that follow from a seed: SplitMix64.

/// A sequence.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of a seed and some words: other words, other numbers.
    pub(crate) fn new(seed: u64, words: &[&str]) -> Self {
        let mut random = Self(seed);
        for byte in words.iter().flat_map(|word| word.bytes().chain([0xff])) {
            random.0 = random.next() ^ u64::from(byte);
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, 0 where that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let drawn = self.next() % (end.max(1) as u64);
        drawn as usize
    }

    pub(crate) fn shuffle<T>(&mut self, of: &mut [T]) {
        for at in (1..of.len()).rev() {
            of.swap(at, self.below(at + 1));
        }
    }
}
