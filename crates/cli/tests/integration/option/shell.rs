//! `completions` and `man`.

use super::{Bench, Row};
use crate::sandbox::entries;

pub(super) const ROWS: &[Row] = &[
    Row { command: "completions", option: "SHELL", check: shell },
    Row { command: "man", option: "--dir", check: dir },
];

fn shell(bench: &Bench) {
    assert_ne!(bench.output(&["completions", "bash"]), bench.output(&["completions", "zsh"]));
    bench.call(&["completions"]).expect(2);
    bench.call(&["completions", "no-such-shell"]).expect(2).says(&["bash", "zsh", "fish"]);
}

fn dir(bench: &Bench) {
    assert!(bench.output(&["man"]).contains(".SH NAME"));
    let folder = bench.sandbox.work("man");
    assert!(!folder.exists());
    assert_eq!(bench.output(&["man", "--dir", "man"]), "");
    assert!(!entries(&folder).is_empty());
}
