//! Files: what was written is read, and damage is an error.

use heaptally_profile::model::{Image, Profile, ThreadLife};
use heaptally_profile::pprof::{read, write, write_at};
use proptest::prelude::*;

use crate::arbitrary;

proptest! {
    #[test]
    fn what_was_written_is_read(profile in arbitrary::profile()) {
        let file = write(&profile);
        let found = read(&file);
        prop_assert_eq!(found.as_ref(), Ok(&profile));
        prop_assert_eq!(write(&profile), file);
    }

    #[test]
    fn damaged_files_are_errors_or_unchanged(
        profile in arbitrary::profile(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=u8::MAX), 1..4),
    ) {
        let mut file = write(&profile);
        for (at, flip) in flips {
            let at = at.index(file.len());
            file[at] ^= flip;
        }
        // gzip's header has bytes that tell nothing about the content.
        if let Ok(found) = read(&file) {
            prop_assert_eq!(found, profile);
        }
    }

    #[test]
    fn truncated_files_are_errors(profile in arbitrary::profile(), len in any::<prop::sample::Index>()) {
        let file = write(&profile);
        prop_assert!(read(&file[..len.index(file.len())]).is_err());
    }
}

#[test]
fn the_ids_of_a_run_are_not_written() {
    let profile = |pid, tid| Profile {
        images: vec![Image { pid, ..Image::default() }],
        threads: vec![ThreadLife { tid, ..ThreadLife::default() }],
        ..Profile::default()
    };
    assert_eq!(write(&profile(17, 18)), write(&profile(21, 22)));
    assert_eq!(read(&write(&profile(17, 18))), Ok(profile(0, 0)));
}

#[test]
fn a_time_is_written_when_it_is_given() {
    let profile = Profile::default();
    assert_ne!(write(&profile), write_at(&profile, 1_700_000_000_000_000_000));
    assert_eq!(read(&write_at(&profile, 1_700_000_000_000_000_000)), Ok(profile));
}
