//! Random numbers from a seed that can be given again.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Seeded from `HEAPTALLY_TESTS_SEED`, else from the clock. The seed is printed, for a failing test to be repeated.
    pub fn from_environment() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |elapsed| elapsed.as_nanos());
        let seed = env::var("HEAPTALLY_TESTS_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| u64::try_from(now & u128::from(u64::MAX)).unwrap_or(1));
        println!("HEAPTALLY_TESTS_SEED={seed}");
        Self { state: seed }
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}
