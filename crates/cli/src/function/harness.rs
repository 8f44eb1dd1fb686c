//! What a window's harness allocated, apart from what is measured.
//!
//! Known from the addresses of the frames, after the run: a stack through one of the harness's functions, or through an
//! inlined copy, is its own. Those of package-benchmark are its own in whatever window. The rows go to a window beside ([`Window::of_harness`]), so that no sum has them.

use std::collections::{BTreeMap, HashMap};

use heaptally_profile::model::{FrameKind, Location, Profile, WindowId, WindowKind};
use heaptally_profile::path_text::escape_path;

use heaptally_segment::layout::PACKAGE_BENCHMARK;

use super::finder::{Finder, Ranges};

/// Puts apart what harnesses allocated.
pub(crate) fn put_apart(profile: &mut Profile, finder: &Finder) {
    let mut of_window: BTreeMap<String, HashMap<String, Ranges>> = BTreeMap::new();
    for ((window, path), ranges) in &finder.harness {
        let modules = of_window.entry(escape_path(window.as_bytes())).or_default();
        modules.insert(escape_path(path), ranges.clone());
    }
    for (name, modules) in of_window {
        let of_module: Vec<Option<&Ranges>> =
            profile.modules.iter().map(|module| modules.get(&module.path)).collect();
        let is_of_harness: Vec<bool> =
            profile.locations.iter().map(|location| is_within(location, &of_module)).collect();
        let is_through = |stack: usize| {
            let locations = profile.stacks.get(stack).map(|stack| &stack.locations);
            locations.into_iter().flatten().any(|at| is_of_harness.get(*at).copied().unwrap_or(false))
        };
        let mut beside: HashMap<WindowId, WindowId> = HashMap::new();
        let mut rows = std::mem::take(&mut profile.rows);
        for row in rows.iter_mut().filter(|row| is_through(row.stack)) {
            let Some(window) = profile.windows.get(row.window) else { continue };
            let is_it = window.name == name || name == PACKAGE_BENCHMARK;
            if !is_it || matches!(window.kind, WindowKind::Automatic | WindowKind::Harness) {
                continue;
            }
            let of_harness = window.of_harness();
            row.window = *beside.entry(row.window).or_insert_with(|| {
                profile.windows.push(of_harness);
                profile.windows.len() - 1
            });
        }
        profile.rows = rows;
    }
}

/// Whether a frame's code is in the ranges of its module.
fn is_within(location: &Location, of_module: &[Option<&Ranges>]) -> bool {
    let address = match location.kind {
        FrameKind::Interrupted | FrameKind::Signal | FrameKind::Async => location.address,
        FrameKind::Return | FrameKind::FramePointer => location.address.wrapping_sub(1),
        FrameKind::Elided | FrameKind::EntryPoint | FrameKind::TaskOrigin => return false,
    };
    let ranges = location.module.and_then(|module| of_module.get(module).copied().flatten());
    ranges.is_some_and(|ranges| ranges.iter().any(|(start, end)| (*start..*end).contains(&address)))
}
