//! What the figures were taken on and with.

use super::workload::first_line;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;
use std::thread;

/// Processor, system and versions, by name.
pub(crate) fn describe(heaptally: &Path) -> Map<String, Value> {
    let line = |program: &str, arguments: &[&str]| first_line(Path::new(program), arguments);
    let facts = [
        ("processor", processor()),
        ("cores", thread::available_parallelism().ok().map(|cores| cores.to_string())),
        ("kernel", line("uname", &["-r"])),
        (
            "system",
            field("/etc/os-release", "PRETTY_NAME", '=').map(|name| name.trim_matches('"').to_owned()),
        ),
        ("glibc", line("getconf", &["GNU_LIBC_VERSION"])),
        ("gcc", line("gcc", &["-dumpfullversion"])),
        ("rustc", line("rustc", &["--version"])),
        ("heaptally", first_line(heaptally, &["--version"])),
        ("date", line("date", &["-u", "+%Y-%m-%d"])),
        ("load average", fs::read_to_string("/proc/loadavg").ok().and_then(|text| first_word(&text))),
    ];
    let known = facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), Value::String(fact?))));
    known.collect()
}

fn processor() -> Option<String> {
    field("/proc/cpuinfo", "model name", ':')
}

/// The value of the first line of `path` that has this name.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let fields = text.lines().filter_map(|line| line.split_once(separator));
    let mut values =
        fields.filter(|(field, _)| field.trim() == name).map(|(_, value)| value.trim().to_owned());
    values.next()
}

fn first_word(text: &str) -> Option<String> {
    text.split_whitespace().next().map(str::to_owned)
}
