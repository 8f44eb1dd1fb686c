//! Tests under libtest.

use std::hint::black_box;

use counted::six;

#[test]
fn six_allocations() {
    black_box(six());
}

mod inner {
    use super::*;

    /// Six each time, and not what another test's thread does meanwhile.
    #[test]
    fn twelve_allocations() {
        black_box((six(), six()));
    }
}

#[test]
fn no_allocation() {
    black_box(1);
}

#[test]
#[ignore = "runs only where that is asked for"]
fn ignored() {
    black_box(six());
}

/// Where Cargo starts a program, and with what.
#[test]
fn the_place_is_that_of_cargo() {
    assert_eq!(std::env::var("CARGO_PKG_NAME").as_deref(), Ok("plain"));
    assert_eq!(std::env::current_dir().unwrap(), std::path::Path::new(env!("CARGO_MANIFEST_DIR")));
    assert_eq!(std::env::var("CARGO_MANIFEST_DIR").as_deref(), Ok(env!("CARGO_MANIFEST_DIR")));
}

#[test]
#[should_panic(expected = "meant")]
fn panics() {
    panic!("meant {}", "so");
}

/// Fails where the variable says so.
#[test]
fn may_fail() {
    assert!(std::env::var_os("SUITE_FAILS").is_none(), "as it was asked to");
}
