//! Which benchmark of Swift's package-benchmark a window is.
//!
//! The recorder calls all of them [`PACKAGE_BENCHMARK`], and keeps how a process was called and what its tool asked it for:
//!
//! ```text
//! {"run":{"benchmark":{"name":"parse","configuration":{"tags":{"size":"8"},"scalingFactor":1000,…},…}}}    parse (size: 8), ×1000
//! Probe --filter parse                                                                                      parse
//! ```
//!
//! By hand the filters are regular expressions that have to fit the whole name, so one without any sign of these is a name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use heaptally_profile::model::{Profile, ThreadLife, Window, WindowId, WindowKind};
use heaptally_profile::path_text::escape_path;
use heaptally_segment::layout::{FLAG_REQUEST_UNSEEN, PACKAGE_BENCHMARK, PACKAGE_BENCHMARK_LOOP};
use heaptally_segment::read::{Area, Snapshot};
use serde_json::Value;

/// What was found out.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Whether any benchmark's window opened.
    pub(crate) is_any_open: bool,
    /// Windows around iterations, whose allocations are the harness's: the number of the image, and the benchmark's name.
    around: Vec<(usize, Vec<u8>)>,
    /// What is to be said, by the number of the image.
    warnings: BTreeMap<usize, String>,
}

/// Gives benchmarks' windows their names. `wanted`: only these are to be there, if only some are.
pub(crate) fn name_windows(snapshot: &mut Snapshot, wanted: Option<&[OsString]>) -> Named {
    let mut named = Named::default();
    let is_asked_for =
        |name: &[u8]| wanted.is_none_or(|wanted| wanted.iter().any(|asked| asked.as_bytes() == name));
    for (image, area) in snapshot.areas.iter_mut().enumerate() {
        let find = |area: &Area, name: &str| {
            area.windows.iter().position(|window| window.name == name.as_bytes() && window.entries > 0)
        };
        let (measured, around) = (find(area, PACKAGE_BENCHMARK), find(area, PACKAGE_BENCHMARK_LOOP));
        if measured.is_none() && around.is_none() {
            continue;
        }
        named.is_any_open = true;
        let (benchmark, warning) = Benchmark::of(area);
        named.warnings.extend(warning.map(|warning| (image, warning)));
        let name = benchmark.name.unwrap_or_else(|| PACKAGE_BENCHMARK.to_owned()).into_bytes();
        let mut call = |at: usize, is_measured: bool| {
            let Some(window) = area.windows.get_mut(at) else { return };
            window.name.clone_from(&name);
            if is_measured && let Some(factor) = benchmark.scaling_factor {
                (window.iterations, window.iteration_calls) = (window.entries.saturating_mul(factor), 1);
            }
        };
        // Where counters are read at the edges of iterations, what lies between two of them is the harness's.
        match (measured, around) {
            (Some(measured), Some(around)) => {
                call(measured, true);
                call(around, false);
                named.around.push((image, name.clone()));
            }
            (one, other) => one.or(other).into_iter().for_each(|at| call(at, true)),
        }
        if !is_asked_for(&name) {
            let mut unwanted: Vec<usize> = measured.into_iter().chain(around).collect();
            unwanted.sort_unstable();
            unwanted.into_iter().rev().for_each(|at| remove(area, at));
            named.around.retain(|(at, _)| *at != image);
        }
    }
    let is_own =
        |name: &[u8]| [PACKAGE_BENCHMARK, PACKAGE_BENCHMARK_LOOP].iter().any(|own| own.as_bytes() == name);
    snapshot.names.retain(|name| !is_own(name) || wanted.is_some() && is_asked_for(name));
    named
}

/// Takes a window out of an area.
fn remove(area: &mut Area, window: usize) {
    area.windows.remove(window);
    area.rows.retain(|row| row.window != window);
    for row in area.rows.iter_mut().filter(|row| row.window > window) {
        row.window -= 1;
    }
    for thread in &mut area.threads {
        thread.totals.retain(|(of, _)| *of != window);
        for (of, _) in thread.totals.iter_mut().filter(|(of, _)| *of > window) {
            *of -= 1;
        }
    }
}

impl Named {
    /// Says of the profile what was found.
    pub(crate) fn tell(self, profile: &mut Profile) {
        for (image, warning) in self.warnings {
            if let Some(image) = profile.images.get_mut(image) {
                image.warnings.push(warning);
            }
        }
        for (image, name) in self.around {
            let name = escape_path(&name);
            let is_it = |window: &Window| {
                window.image == image && window.name == name && window.kind == WindowKind::Process
            };
            // The one around was opened first.
            let mut both =
                (0..profile.windows.len()).filter(|at| profile.windows.get(*at).is_some_and(is_it));
            let (Some(around), Some(measured)) = (both.next(), both.next()) else { continue };
            if let Some(window) = profile.windows.get_mut(around) {
                *window = window.of_harness();
            }
            // As of every harness: the measured window's threads have both.
            profile.threads.iter_mut().for_each(|thread| add_totals(thread, around, measured));
        }
    }
}

/// Adds a thread's totals of one window to those of another.
fn add_totals(thread: &mut ThreadLife, from: WindowId, to: WindowId) {
    let Some(more) = thread.totals.remove(&from) else { return };
    let sum = thread.totals.entry(to).or_default();
    sum.allocations = sum.allocations.saturating_add(more.allocations);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
    sum.freed = sum.freed.saturating_add(more.freed);
    sum.freed_bytes = sum.freed_bytes.saturating_add(more.freed_bytes);
}

/// What is known of a benchmark.
#[derive(Debug, Default, PartialEq, Eq)]
struct Benchmark {
    name: Option<String>,
    /// How often its code runs in one iteration, as it says itself.
    scaling_factor: Option<u64>,
}

impl Benchmark {
    /// That of an image, and what is to be said.
    fn of(area: &Area) -> (Self, Option<String>) {
        let unseen = |why: &str| {
            let text = format!(
                "which benchmark it ran could not be seen: {why}; its window is `{PACKAGE_BENCHMARK}`"
            );
            (Self::default(), Some(text))
        };
        if area.flags & FLAG_REQUEST_UNSEEN != 0 {
            return unseen("no request came within 10 s, or it is longer than 64 KiB");
        }
        if !area.request.is_empty() {
            return match Self::of_request(&area.request) {
                Some(benchmark) => (benchmark, None),
                None => unseen("its request names none (another version of package-benchmark?)"),
            };
        }
        (Self { name: of_command(&area.command), scaling_factor: None }, None)
    }

    fn of_request(request: &[u8]) -> Option<Self> {
        let request: Value = serde_json::from_slice(request).ok()?;
        let benchmark = request.pointer("/run/benchmark")?;
        let name = benchmark.get("name")?.as_str()?;
        let tags = benchmark.pointer("/configuration/tags").and_then(Value::as_object);
        let tags: BTreeMap<&str, &str> = tags
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect();
        let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let name = if tags.is_empty() { name.to_owned() } else { format!("{name} ({})", tags.join(", ")) };
        let scaling_factor = benchmark.pointer("/configuration/scalingFactor").and_then(Value::as_u64);
        Some(Self { name: Some(name), scaling_factor: scaling_factor.filter(|factor| *factor > 1) })
    }
}

/// The benchmark that a command line chooses by its name.
fn of_command(command: &[u8]) -> Option<String> {
    const SIGNS: &str = r"\^$.|?*+()[]{}";
    let mut words = command.split(|byte| *byte == 0).skip(1);
    let mut filters = Vec::new();
    while let Some(word) = words.next() {
        match word.strip_prefix(b"--filter") {
            Some(b"") => filters.extend(words.next()),
            Some([b'=', value @ ..]) => filters.push(value),
            _ => {}
        }
    }
    let [filter] = filters.as_slice() else { return None };
    let filter = std::str::from_utf8(filter).ok()?;
    let is_name = !filter.is_empty() && !filter.contains(|sign| SIGNS.contains(sign));
    is_name.then(|| filter.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_request(text: &str) -> Option<(String, Option<u64>)> {
        let Benchmark { name, scaling_factor } = Benchmark::of_request(text.as_bytes())?;
        Some((name?, scaling_factor))
    }

    #[test]
    fn requests_name_their_benchmarks() {
        let text = r#"{"run":{"benchmark":{"target":"Probe","name":"a \"b\"","configuration":{"scalingFactor":1}}}}"#;
        assert_eq!(of_request(text), Some(("a \"b\"".to_owned(), None)));
        let text = r#"{"run":{"benchmark":{"configuration":{"tags":{"z":"1","a":"x y"},"scalingFactor":1000},"name":"n"}}}"#;
        assert_eq!(of_request(text), Some(("n (a: x y, z: 1)".to_owned(), Some(1000))));
        for other in
            [r#"{"list":{}}"#, r#"{"run":{"benchmark":{"target":"n"}}}"#, "{", "", r#"{"run":{"name":"n"}}"#]
        {
            assert_eq!(of_request(other), None, "{other}");
        }
    }

    #[test]
    fn one_filter_without_signs_is_a_name() {
        let of = |words: &[&str]| of_command([&["Probe"], words, &[""]].concat().join("\0").as_bytes());
        assert_eq!(of(&["--filter", "parse it", "--quiet", "true"]).as_deref(), Some("parse it"));
        assert_eq!(of(&["--filter=parse"]).as_deref(), Some("parse"));
        for other in [
            &[][..],
            &["--filter"],
            &["--filter", "parse.*"],
            &["--filter", "a", "--filter", "b"],
            &["--filter="],
        ] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
