//! The program that `heaptally demo` records: it reads settings, in one window, and looks some up, in another.
//!
//! It opens its windows as any program can: by the recorder's C functions, if there is a recorder.

use std::collections::BTreeMap;
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
    let mut settings = Settings::new();
    {
        let _window = window::open(c"parse", ITERATIONS);
        for _ in 0..ITERATIONS {
            settings = parse(black_box(TEXT));
        }
    }
    let _window = window::open(c"look up", ITERATIONS);
    for _ in 0..ITERATIONS {
        black_box(describe(&settings, "window"));
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
fn describe(settings: &Settings, name: &str) -> String {
    let values = settings.get(name).map(Vec::as_slice).unwrap_or_default();
    format!("{name}: {}", values.join(", "))
}
