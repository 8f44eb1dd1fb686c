//! Group R: Rust programs.

use crate::standard;

macro_rules! plain {
    ($($name:ident: $id:literal;)*) => {
        $(#[test]
        fn $name() {
            standard::case($id, 0);
        })*
    };
}

plain! {
    r01_collections: "R01";
    r02_a_global_allocator_counts_once: "R02";
    r04_async_functions: "R04";
    r05_a_hash_seed_changes_counts: "R05";
    r07_aligned_layouts_and_panics: "R07";
}
