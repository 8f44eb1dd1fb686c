//! That these tests can fail: each kind of rule is made wrong on purpose, and must be seen.

use crate::harness::Recorder;
use crate::signal::{handle, raise_at_depth};
use crate::tree::{Tree, grow};

/// In how many of 100 events a mutation shows.
fn differences_of_a_tree(mutation: u8) -> usize {
    let mut tree = Tree::new(77, 12, 300);
    tree.recorder.mutation = mutation;
    let recorder = grow(tree);
    assert!(recorder.events >= 300);
    recorder.differences * 100 / recorder.events
}

#[test]
fn right_rules_make_no_difference() {
    assert_eq!(differences_of_a_tree(0), 0);
}

#[test]
fn a_wrong_cfa_by_rsp_is_seen() {
    assert!(differences_of_a_tree(1) > 80);
}

#[test]
fn a_wrong_cfa_by_rbp_is_seen() {
    assert!(differences_of_a_tree(2) > 30);
}

#[test]
fn a_wrong_saved_rbp_is_seen() {
    assert!(differences_of_a_tree(3) > 30);
}

#[test]
fn a_missed_end_is_seen() {
    assert!(differences_of_a_tree(4) == 100);
}

#[test]
fn a_missed_signal_frame_is_seen() {
    handle(libc::SIGUSR1, 0);
    let mut recorder = Recorder::new();
    recorder.mutation = 5;
    raise_at_depth(5, &mut recorder, libc::SIGUSR1);
    assert!(recorder.differences >= 2);
}
