//! A recording of several processes: the profile of one of them, and of all with alike children put together.
//!
//! ```text
//! images    make | sh (pid 7) | cc1 (pid 8) | sh (pid 9) | cc1 (pid 10)
//! one       sh (pid 9)                                                      its windows, rows and threads alone
//! all       make | cc1, 2 children | sh, 2 children                         summed by program and window
//! ```

use std::collections::{BTreeMap, HashMap};

use crate::Error;
use crate::merge::{add_thread, add_window};
use crate::model::{
    Children, Function, Image, ImageId, Location, Profile, Row, Stack, StackId, ThreadLife, Window, WindowId,
};

impl Profile {
    /// The profile of some of its images alone, as if they were the program. Losses and the other numbers that are not
    /// kept by image are 0: they are the caller's to fill in.
    ///
    /// # Errors
    /// [`Error::Index`] when an index leads nowhere.
    pub fn of_images(&self, is_kept: impl Fn(ImageId) -> bool) -> Result<Self, Error> {
        self.validate()?;
        let mut profile =
            Self { modules: self.modules.clone(), environment: self.environment.clone(), ..Self::default() };
        profile.environment.frees_from_before = 0;
        let images = kept(&self.images, |at, _| is_kept(at), &mut profile.images);
        for image in &mut profile.images {
            image.processes = 0;
        }
        let windows = kept(&self.windows, |_, window| is_kept(window.image), &mut profile.windows);
        for window in &mut profile.windows {
            window.image = images[window.image].unwrap_or_default();
        }
        let rows =
            self.rows.iter().filter_map(|row| Some(Row { window: windows[row.window]?, ..row.clone() }));
        profile.rows.extend(rows);
        profile.threads.extend(self.threads.iter().filter_map(|thread| {
            let totals = thread.totals.iter();
            let totals = totals.filter_map(|(window, total)| Some((windows[*window]?, *total))).collect();
            Some(ThreadLife { image: images[thread.image]?, totals, ..thread.clone() })
        }));
        self.copy_used(&mut profile);
        profile.normalize()?;
        Ok(profile)
    }

    /// Copies the stacks that a profile's rows refer to, and what these consist of; the rest is left empty, so that the
    /// indices stay.
    fn copy_used(&self, into: &mut Self) {
        let mut locations = vec![false; self.locations.len()];
        let mut functions = vec![false; self.functions.len()];
        into.stacks = vec![Stack::default(); self.stacks.len()];
        for row in &into.rows {
            let place = &mut into.stacks[row.stack];
            if place.locations.is_empty() {
                place.clone_from(&self.stacks[row.stack]);
                place.locations.iter().for_each(|location| locations[*location] = true);
            }
        }
        into.threads.iter().filter_map(|thread| thread.start).for_each(|start| locations[start] = true);
        into.locations = vec![Location::default(); self.locations.len()];
        for at in (0..locations.len()).filter(|at| locations[*at]) {
            into.locations[at].clone_from(&self.locations[at]);
            into.locations[at].lines.iter().for_each(|line| functions[line.function] = true);
        }
        into.functions = vec![Function::default(); self.functions.len()];
        for at in (0..functions.len()).filter(|at| functions[*at]) {
            into.functions[at].clone_from(&self.functions[at]);
        }
    }

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

/// Copies what is kept; returns the new index of each.
fn kept<T: Clone>(from: &[T], is_kept: impl Fn(usize, &T) -> bool, into: &mut Vec<T>) -> Vec<Option<usize>> {
    let mut place = |(at, entry): (usize, &T)| {
        is_kept(at, entry).then(|| {
            into.push(entry.clone());
            into.len() - 1
        })
    };
    from.iter().enumerate().map(&mut place).collect()
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
mod tests {
    use super::*;
    use crate::model::{Counts, WindowKind};

    /// A program and three children: two of one program, one of another.
    fn family() -> Profile {
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

    #[test]
    fn one_process_is_a_profile_of_its_own() {
        let profile = family();
        let one = profile.of_images(|image| image == 3).unwrap();
        assert_eq!((one.images.len(), one.windows.len(), one.threads.len()), (1, 1, 1));
        assert_eq!((one.images[0].pid, one.images[0].processes, one.rows[0].counts.allocations), (4, 0, 8));
        one.validate().unwrap();
    }
}
