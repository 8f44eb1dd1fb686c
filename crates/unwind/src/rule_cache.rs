//! Return address → rule, shared by all threads.
//!
//! ```text
//! return address (47 bits) × odd constant, mod 2^47   a bijection, so that the product names the address
//!   ├─ 16 bits: set        (two neighbouring slots; the highest bits are the best mixed)
//!   └─ 31 bits: tag        (its highest bit says which slot of the set is tried first)
//! slot: 1 bit used | 31 bits tag | 32 bits rule
//! ```
//! Set and tag together are the whole product, so a hit is never another address's. One slot is one atomic word:
//! a reader sees a rule with its own tag or does not see it. A rule is the same whoever computed it; what is lost to
//! a race is computed again.

#![expect(unsafe_code, reason = "the table is a view of memory that the caller mapped")]

use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::x86_64::Rule;

/// 2^17 slots: 2^15 thrashed on a compiler (112,000 misses against 10,700, one per return address).
const SLOT_BITS: u32 = 17;
const SLOTS: usize = 1 << SLOT_BITS;
const ADDRESS_BITS: u32 = 47;
const TAG_BITS: u32 = ADDRESS_BITS - (SLOT_BITS - 1);
const USED: u64 = 1 << 63;
/// Odd, so that the multiplication is a bijection mod 2^47; its bits are those of the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The shared cache of rules by return address. Zeroed memory is a valid, empty cache.
#[repr(C, align(64))]
pub struct RuleCache {
    slots: [AtomicU64; SLOTS],
}

impl RuleCache {
    /// How much memory the cache takes (1 MiB; a page of it is only touched when a rule falls there).
    pub const BYTES: usize = size_of::<Self>();

    /// A cache in memory of the caller's.
    ///
    /// # Safety
    /// `ptr` points to [`Self::BYTES`] bytes, aligned to 64 bytes, readable and writable for good, that are zero or
    /// were a `RuleCache`, and that nothing else uses.
    pub unsafe fn from_memory(ptr: *mut u8) -> &'static Self {
        // SAFETY: the caller promises size, alignment and life; all-zero atomics are valid.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// The rule of a return address below 2^47; [`Rule::MISS`] if it is not known.
    #[inline(always)]
    pub(crate) fn get(&self, pc: u64) -> Rule {
        let place = Place::of(pc);
        // SAFETY: `Place::of` keeps both slots below `SLOTS`.
        let first = unsafe { self.slots.get_unchecked(place.first) }.load(Ordering::Relaxed);
        if first >> 32 == place.tag {
            return Rule::from_bits(first as u32);
        }
        // SAFETY: as above.
        let second = unsafe { self.slots.get_unchecked(place.first ^ 1) }.load(Ordering::Relaxed);
        if second >> 32 == place.tag {
            return Rule::from_bits(second as u32);
        }
        Rule::MISS
    }

    /// Keeps a rule, unless the generation is no longer the one under which it was computed: what the address meant
    /// may have been unloaded meanwhile.
    pub(crate) fn insert(&self, pc: u64, rule: Rule, generation: u32, live: &AtomicU32) {
        if live.load(Ordering::SeqCst) != generation {
            return;
        }
        let place = Place::of(pc);
        let (first, second) = (&self.slots[place.first], &self.slots[place.first ^ 1]);
        let word = place.tag << 32 | u64::from(rule.bits());
        // The newest rule goes first and pushes what was there to the second place.
        let old = first.swap(word, Ordering::Relaxed);
        if old != 0 && old >> 32 != place.tag {
            second.store(old, Ordering::Relaxed);
        }
        // Either the unloading thread's flush sees these stores, or we see its new generation.
        fence(Ordering::SeqCst);
        if live.load(Ordering::SeqCst) != generation {
            first.store(0, Ordering::Relaxed);
            second.store(0, Ordering::Relaxed);
        }
    }

    /// Forgets the rules of all return addresses in `start..=end`. Call it at an unload, after the generation rose.
    ///
    /// The end is included, since a call may be the last instruction of a module.
    pub fn flush(&self, start: u64, end: u64) {
        fence(Ordering::SeqCst);
        for (index, slot) in self.slots.iter().enumerate() {
            let word = slot.load(Ordering::Relaxed);
            if word != 0 && (start..=end).contains(&address_of(index, word)) {
                // A rule that came meanwhile is of the new generation: leave it.
                let _ = slot.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for RuleCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.slots.iter().filter(|slot| slot.load(Ordering::Relaxed) != 0).count();
        f.debug_struct("RuleCache").field("used", &used).finish_non_exhaustive()
    }
}

/// Where an address's rule can stand: slot `first`, else its neighbour; and the upper half of the slot's word.
struct Place {
    first: usize,
    tag: u64,
}

impl Place {
    #[inline(always)]
    fn of(pc: u64) -> Self {
        let product = pc.wrapping_mul(MULTIPLIER) & ((1 << ADDRESS_BITS) - 1);
        let first = product >> (TAG_BITS - 1);
        let tag = product & ((1 << TAG_BITS) - 1) | USED >> 32;
        Self { first: first as usize, tag }
    }
}

/// The address whose rule stands in a slot: the multiplication undone.
fn address_of(index: usize, word: u64) -> u64 {
    let tag = word >> 32 & ((1 << TAG_BITS) - 1);
    let product = (index as u64 >> 1) << TAG_BITS | tag;
    product.wrapping_mul(INVERSE) & ((1 << ADDRESS_BITS) - 1)
}

/// `MULTIPLIER · INVERSE = 1 (mod 2^64)`, by Newton's iteration: each round doubles the number of right bits.
const INVERSE: u64 = {
    let mut inverse = MULTIPLIER;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(MULTIPLIER.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

#[cfg(test)]
mod tests {
    extern crate std;
    use std::alloc::{Layout, alloc_zeroed};
    use std::collections::HashMap;
    use std::vec::Vec;

    use super::*;

    fn cache() -> &'static RuleCache {
        // SAFETY: the layout is the cache's own, and the memory is leaked.
        unsafe { RuleCache::from_memory(alloc_zeroed(Layout::new::<RuleCache>())) }
    }

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn an_address_and_its_place_name_each_other() {
        let mut state = 1;
        for _ in 0..100_000 {
            let pc = random(&mut state) >> 17;
            let place = Place::of(pc);
            assert_eq!(address_of(place.first, place.tag << 32), pc);
            assert_eq!(address_of(place.first ^ 1, place.tag << 32), pc);
        }
    }

    #[test]
    fn no_address_ever_gets_the_rule_of_another() {
        let (cache, live) = (cache(), AtomicU32::new(1));
        let mut known = HashMap::new();
        let mut state = 7;
        // Six times as many addresses as slots, so that nearly all of them collide.
        for _ in 0..6 * SLOTS {
            let pc = random(&mut state) >> 17;
            let rule = Rule::from_bits(random(&mut state) as u32 | 1);
            cache.insert(pc, rule, 1, &live);
            known.insert(pc, rule);
            assert_eq!(cache.get(pc), rule, "the newest is always found");
        }
        let mut hits = 0;
        for (pc, rule) in &known {
            let found = cache.get(*pc);
            if found != Rule::MISS {
                hits += 1;
                assert_eq!(found, *rule, "{pc:#x}");
            }
        }
        assert!(hits > SLOTS / 2, "{hits} of {SLOTS} slots are of use");
        for _ in 0..SLOTS {
            let pc = random(&mut state) >> 17;
            assert!(known.contains_key(&pc) || cache.get(pc) == Rule::MISS, "{pc:#x}");
        }
    }

    #[test]
    fn three_addresses_of_one_set_are_kept_apart() {
        let (cache, live) = (cache(), AtomicU32::new(1));
        let same_set: Vec<u64> = (0..3).map(|tag| address_of(84, tag << 32)).collect();
        for (n, pc) in same_set.iter().enumerate() {
            cache.insert(*pc, Rule::from_bits(n as u32 + 1), 1, &live);
        }
        let found: Vec<u32> = same_set.iter().map(|pc| cache.get(*pc).bits()).collect();
        assert_eq!(found, [0, 2, 3], "the oldest went");
    }

    #[test]
    fn a_flush_takes_a_range_and_nothing_else() {
        let (cache, live) = (cache(), AtomicU32::new(1));
        for pc in [0x1000u64, 0x1fff, 0x2000, 0x2001, 0xfff] {
            cache.insert(pc, Rule::from_bits(9), 1, &live);
        }
        cache.flush(0x1000, 0x2000);
        let left = [0xfffu64, 0x1000, 0x1fff, 0x2000, 0x2001].map(|pc| cache.get(pc) != Rule::MISS);
        assert_eq!(left, [true, false, false, false, true]);
    }

    #[test]
    fn a_rule_of_an_old_generation_is_not_kept() {
        let (cache, live) = (cache(), AtomicU32::new(2));
        cache.insert(0x1234, Rule::from_bits(9), 1, &live);
        assert_eq!(cache.get(0x1234), Rule::MISS);
    }
}
