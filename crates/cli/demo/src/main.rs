//! The program that `heaptally demo` records: it reads settings, in one window, and looks some up, in another.
//!
//! It opens its windows as any program can: by the recorder's C functions, if there is a recorder. With the argument
//! `change` it is the same program after a change: one function makes one more allocation.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;
use std::hint::black_box;

mod window;

const TEXT: &str = "\
name = heaptally
language = rust
# a comment
window = parse
window = look up
";

const ITERATIONS: u64 = 100;

type Settings = BTreeMap<String, Vec<String>>;

fn main() {
    let is_changed = env::args_os().nth(1).is_some_and(|word| word == "change");
    let mut settings = Settings::new();
    {
        let _window = window::open(c"parse", ITERATIONS);
        for _ in 0..ITERATIONS {
            settings = parse(black_box(TEXT));
        }
    }
    let _window = window::open(c"look up", ITERATIONS);
    for _ in 0..ITERATIONS {
        black_box(describe(&settings, "window", black_box(is_changed)));
    }
}

/// Settings by name, each with all its values.
#[inline(never)]
fn parse(text: &str) -> Settings {
    let mut settings = Settings::new();
    for (name, value) in text.lines().filter_map(split_line) {
        insert(&mut settings, name, value);
    }
    settings
}

/// `None` for a comment.
fn split_line(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    (!name.starts_with('#')).then_some((name.trim(), value.trim()))
}

#[inline(never)]
fn insert(settings: &mut Settings, name: &str, value: &str) {
    settings.entry(name.to_owned()).or_default().push(value.to_owned());
}

/// All values of a setting in one text.
#[inline(never)]
fn describe(settings: &Settings, name: &str, is_changed: bool) -> String {
    // The change: names may be written in capitals.
    let name = if is_changed { Cow::Owned(name.to_lowercase()) } else { Cow::Borrowed(name) };
    let values = settings.get(&*name).map(Vec::as_slice).unwrap_or_default();
    format!("{name}: {}", values.join(", "))
}
