//! Any profile, be its indices valid or not.
#![no_main]

use arbitrary::Unstructured;
use heaptally_fuzz::{model, profile, seed};
use heaptally_profile::merge::merge;
use heaptally_profile::pprof;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(seeds), |bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    let choice = bytes.arbitrary::<u64>().unwrap_or_default();
    let Ok(made) = model::profile(&mut bytes) else { return };
    if made.validate().is_ok() {
        profile::check(&made);
    } else {
        assert!(made.clone().normalize().is_err(), "an invalid profile has a normal form");
        assert!(merge(vec![made.clone(), made.clone()]).is_err(), "an invalid profile was merged");
        assert!(pprof::read(&pprof::write(&made)).is_err(), "an invalid profile was read");
    }
    // A report leaves out what an index that leads nowhere refers to.
    profile::report(&made, &profile::options(choice));
});

fn seeds() -> Vec<Vec<u8>> {
    (0..40).map(|state| seed::noise(state, 100 + 20 * state as usize)).collect()
}
