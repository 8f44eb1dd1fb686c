//! Two profiles, of which the second is the first with some of its bytes changed, or another one.
#![no_main]

use arbitrary::Unstructured;
use heaptally_fuzz::{diff, model, seed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(seeds), |bytes: &[u8]| {
    // The first bytes say what is changed: a place, and what is mixed into it.
    let Some((changes, rest)) = bytes.split_at_checked(9) else { return };
    let mut changed = rest.to_vec();
    for change in changes[1..].chunks_exact(2) {
        let at = usize::from(change[0]) * rest.len() / 256;
        if let Some(byte) = changed.get_mut(at) {
            *byte ^= change[1];
        }
    }
    let [base, change] = [rest, &changed].map(|bytes| model::profile(&mut Unstructured::new(bytes)));
    if let (Ok(base), Ok(change)) = (base, change) {
        diff::check(base, change, changes[0]);
    }
});

fn seeds() -> Vec<Vec<u8>> {
    (0..40).map(|state| seed::noise(state, 100 + 20 * state as usize)).collect()
}
