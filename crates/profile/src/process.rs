//! A recording of several processes: all with alike children put together. The profile of one is in [`part`](crate::part).
//!
//! ```text
//! images    make | sh (pid 7) | cc1 (pid 8) | sh (pid 9) | cc1 (pid 10)
//! one       sh (pid 9)                                                      its windows, rows and threads alone
//! all       make | cc1, 2 children | sh, 2 children                         summed by program and window
//! ```

use std::collections::{BTreeMap, HashMap};

use crate::Error;
use crate::merge::{add_thread, add_window};
use crate::model::{Children, Image, ImageId, Profile, Row, StackId, ThreadLife, Window, WindowId};

impl Profile {
    /// Puts together what children did that ran the same program: their windows of one name, and what was counted there.
    /// The program's own images stay as they are, and come first; children's follow in the order of their paths, so that
    /// it makes no difference which process came first.
    ///
    /// # Errors
    /// [`Error::Index`] when an index leads nowhere; the profile is as it was then.
    pub fn merge_children(&mut self) -> Result<(), Error> {
        self.validate()?;
        let images = merge_images(&mut self.images);
        let windows = merge_windows(&mut self.windows, &images);
        let mut rows: BTreeMap<(WindowId, StackId), Row> = BTreeMap::new();
        for mut row in self.rows.drain(..) {
            row.window = windows[row.window];
            let image = self.windows.get(row.window).and_then(|window| self.images.get(window.image));
            if image.is_some_and(|image| image.processes > 1) {
                // Which entry of which process came first is not known.
                (row.first_entry, row.last_entry) = (None, None);
            }
            rows.entry((row.window, row.stack))
                .and_modify(|into| {
                    into.counts.add(&row.counts);
                    // Entries of different processes are different ones.
                    let entries = into.entries.zip(row.entries);
                    into.entries = entries.map(|(sum, entries)| sum.saturating_add(entries));
                })
                .or_insert(row);
        }
        self.rows = rows.into_values().collect();
        let mut threads: Vec<ThreadLife> = Vec::new();
        let mut known = HashMap::new();
        for mut thread in self.threads.drain(..) {
            thread.image = images[thread.image];
            thread.totals =
                thread.totals.into_iter().map(|(window, total)| (windows[window], total)).collect();
            if self.images.get(thread.image).is_none_or(|image| image.processes < 2) {
                threads.push(thread);
                continue;
            }
            let key = (thread.image, thread.name.clone(), thread.last_name.clone(), thread.start);
            match known.get(&key).and_then(|at: &usize| threads.get_mut(*at)) {
                Some(into) => add_thread(into, thread),
                None => {
                    known.insert(key, threads.len());
                    threads.push(ThreadLife { tid: 0, ..thread });
                }
            }
        }
        self.threads = threads;
        self.normalize()
    }

    /// Whether it holds what several processes did.
    pub fn has_children(&self) -> bool {
        self.images.iter().any(|image| image.processes > 0)
    }
}

impl Children {
    /// Whether children were to be recorded, and some could not be.
    pub fn is_incomplete(&self) -> bool {
        self.followed && self.not_recorded_total() > 0
    }
}

/// One image for all children's alike; returns the new index of each.
fn merge_images(images: &mut Vec<Image>) -> Vec<ImageId> {
    let mut merged: Vec<Image> = Vec::new();
    let mut children: BTreeMap<(String, String, bool, bool), Vec<ImageId>> = BTreeMap::new();
    let mut new = vec![0; images.len()];
    for (at, image) in images.iter().enumerate() {
        if image.processes > 0 {
            let key = (image.path.clone(), image.label.clone(), image.replaced, image.in_path);
            children.entry(key).or_default().push(at);
        } else {
            new[at] = merged.len();
            merged.push(image.clone());
        }
    }
    for alike in children.into_values() {
        let mut sum: Option<Image> = None;
        for at in alike {
            new[at] = merged.len();
            let Some(image) = images.get(at) else { continue };
            match &mut sum {
                None => sum = Some(image.clone()),
                Some(sum) => {
                    sum.pid = 0;
                    sum.processes = sum.processes.saturating_add(image.processes);
                    sum.warnings.extend(image.warnings.iter().cloned());
                }
            }
        }
        if let Some(mut sum) = sum {
            sum.warnings.sort();
            sum.warnings.dedup();
            merged.push(sum);
        }
    }
    *images = merged;
    new
}

/// One window for all of one image, name and kind that are in the same place among those of their own process where
/// there are several alike; returns the new index of each.
fn merge_windows(windows: &mut Vec<Window>, images: &[ImageId]) -> Vec<WindowId> {
    // The place of a window among its process's, and the least of that among those that are put together.
    let mut opened: HashMap<ImageId, usize> = HashMap::new();
    let mut groups: HashMap<(ImageId, &str, crate::model::WindowKind), (usize, Vec<WindowId>)> =
        HashMap::new();
    for (at, window) in windows.iter().enumerate() {
        let place = opened.entry(window.image).or_default();
        let key = (images[window.image], window.name.as_str(), window.kind);
        let group = groups.entry(key).or_insert((usize::MAX, Vec::new()));
        group.0 = group.0.min(*place);
        group.1.push(at);
        *place += 1;
    }
    let mut order: Vec<_> =
        groups.into_iter().map(|((image, name, kind), (place, of))| (image, place, name, kind, of)).collect();
    order.sort();
    let mut new = vec![0; windows.len()];
    let mut merged: Vec<Window> = Vec::with_capacity(order.len());
    for (image, .., of) in &order {
        for &at in of {
            new[at] = merged.len();
        }
        let mut alike = of
            .iter()
            .filter_map(|at| windows.get(*at))
            .map(|window| Window { image: *image, ..window.clone() });
        if let Some(mut sum) = alike.next() {
            alike.for_each(|window| add_window(&mut sum, window));
            merged.push(sum);
        }
    }
    drop(order);
    *windows = merged;
    new
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::{Counts, Location, Stack, WindowKind};

    /// A program and three children: two of one program, one of another.
    pub(crate) fn family() -> Profile {
        let image = |label: &str, pid, processes| Image {
            label: label.into(),
            path: format!("/bin/{label}"),
            pid,
            processes,
            in_path: true,
            ..Image::default()
        };
        let window = |image| Window {
            name: "process".into(),
            image,
            kind: WindowKind::Automatic,
            entries: 1,
            iterations: 1,
            peak_bytes: Some(image as u64 * 10),
            ..Window::default()
        };
        let row = |window, allocations| Row {
            window,
            counts: Counts { allocations, ..Counts::default() },
            entries: Some(1),
            first_entry: Some(1),
            last_entry: Some(1),
            ..Row::default()
        };
        let thread = |image, tid| ThreadLife { image, tid, lives: 1, ..ThreadLife::default() };
        Profile {
            images: vec![image("make", 1, 0), image("sh", 2, 1), image("cc", 3, 1), image("sh", 4, 1)],
            locations: vec![Location::default()],
            stacks: vec![Stack { locations: vec![0], ..Stack::default() }],
            windows: (0..4).map(window).collect(),
            rows: vec![row(0, 5), row(1, 6), row(2, 7), row(3, 8)],
            threads: vec![thread(0, 1), thread(1, 2), thread(3, 4)],
            ..Profile::default()
        }
    }

    #[test]
    fn children_of_one_program_are_one_image() {
        let mut profile = family();
        profile.merge_children().unwrap();
        let images: Vec<_> =
            profile.images.iter().map(|image| (image.label.as_str(), image.processes)).collect();
        assert_eq!(images, [("make", 0), ("cc", 1), ("sh", 2)]);
        let windows: Vec<_> =
            profile.windows.iter().map(|window| (window.image, window.entries, window.peak_bytes)).collect();
        assert_eq!(windows, [(0, 1, Some(0)), (1, 1, Some(20)), (2, 2, Some(30))]);
        let rows: Vec<_> =
            profile.rows.iter().map(|row| (row.window, row.counts.allocations, row.entries)).collect();
        assert_eq!(rows, [(0, 5, Some(1)), (1, 7, Some(1)), (2, 14, Some(2))]);
        assert_eq!(profile.threads.iter().map(|thread| thread.lives).collect::<Vec<_>>(), [1, 2]);
        assert!(profile.has_children());
    }

    #[test]
    fn the_order_of_processes_makes_no_difference() {
        let mut one = family();
        let mut other = family();
        other.images.swap(1, 3);
        other.images[1].pid = 2;
        other.images[3].pid = 4;
        other.rows.swap(1, 3);
        (other.rows[1].window, other.rows[3].window) = (1, 3);
        (other.rows[1].counts, other.rows[3].counts) = (other.rows[3].counts, other.rows[1].counts);
        one.merge_children().unwrap();
        other.merge_children().unwrap();
        assert_eq!(one, other);
    }
}
