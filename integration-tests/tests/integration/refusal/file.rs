//! Files that are no program or not quite, scripts, and names.

use super::Doctor::{No, Yes};
use super::{Row, check, row};

const ROWS: &[Row] = &[
    // What is no program, or not quite.
    row(&[], "printf '\\177ELF' > p; chmod +x p", &["./p"], 125, &["x86-64"], No(&["x86-64"])),
    row(&[], "head -c 100 /bin/true > p; chmod +x p", &["./p"], 125, &["is damaged"], No(&["is damaged"])),
    row(&[], "printf 'a\\0b' > p; chmod +x p", &["./p"], 126, &["no program"], No(&["no program"])),
    row(&[], ": > p; chmod +x p", &["./p"], 0, &[], Yes(&[])),
    row(&[], "printf 'exit 3' > p; chmod +x p", &["./p"], 3, &[], Yes(&[])),
    row(&[], "printf '#!\\nexit 3' > p; chmod +x p", &["./p"], 3, &[], Yes(&[])),
    row(&[], "mkdir p", &["./p"], 126, &["it is a folder"], No(&["it is a folder"])),
    row(
        &[],
        "cp /bin/true p; chmod -x p",
        &["./p"],
        126,
        &["its mode does not allow it", "chmod +x"],
        No(&["its mode"]),
    ),
    row(&[], "true", &["./p"], 127, &["was not found"], No(&["was not found"])),
    row(
        &[],
        "cp /bin/true p",
        &["p"],
        127,
        &["was not found", "in this folder, `./p`"],
        No(&["was not found", "`./p`"]),
    ),
    // Scripts.
    row(
        &[],
        "printf '#!/bin/sh\\r\\nexit 3\\r\\n' > p; chmod +x p",
        &["./p"],
        127,
        &["interpreter `/bin/sh\\u{d}`", "Windows"],
        No(&["Windows"]),
    ),
    row(
        &[],
        "printf '#!/nowhere\\n' > p; chmod +x p",
        &["./p"],
        127,
        &["interpreter `/nowhere`", "first line"],
        No(&["`/nowhere`"]),
    ),
    row(
        &[],
        "printf '#!/tmp\\n' > p; chmod +x p",
        &["./p"],
        126,
        &["interpreter of `./p`, `/tmp`, cannot"],
        No(&["interpreter of `./p`"]),
    ),
    row(
        &[],
        "printf '#!/etc/passwd\\n' > p; chmod +x p",
        &["./p"],
        126,
        &["interpreter of `./p`", "mode"],
        No(&["interpreter of `./p`"]),
    ),
    row(&[], "printf '#!/usr/bin/env -S sh -e\\nexit 3\\n' > p; chmod +x p", &["./p"], 3, &[], Yes(&[])),
    row(
        &[],
        "printf '#!/usr/bin/env no-such-program\\n' > p; chmod +x p",
        &["./p"],
        127,
        &["no-such-program"],
        Yes(&[]),
    ),
    row(
        &[],
        "printf '#! /bin/sh -e\\nexit 3\\n' > q; chmod +x q; printf '#!./q\\n' > p; chmod +x p",
        &["./p"],
        3,
        &[],
        Yes(&[]),
    ),
    row(
        &[],
        "printf '#!./p\\n' > p; chmod +x p",
        &["./p"],
        126,
        &["a script of a script"],
        No(&["a script of a script"]),
    ),
    // Names.
    row(&[], "cp /bin/true 'a b'", &["./a b"], 0, &[], Yes(&[])),
    row(&[], "cp /bin/true 'a\nb'", &["./a\nb"], 0, &[], Yes(&[])),
];

#[test]
fn each_kind_is_said_by_name() {
    check(ROWS);
}
