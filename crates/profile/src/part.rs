//! Parts of a recording: the profile of some of its images, one process of several for instance.

use std::collections::HashMap;

use crate::Error;
use crate::model::{
    Executor, FunctionId, Image, ImageId, LocationId, ModuleId, Profile, Row, Stack, StackId, ThreadLife,
    Window, WindowId,
};
use crate::validate::index;

impl Profile {
    /// Looks its images up once, so that taking a few of them costs what they hold and not what all hold.
    ///
    /// # Errors
    /// [`Error::Index`] when an index leads nowhere.
    pub fn by_image(&self) -> Result<ByImage<'_>, Error> {
        self.validate()?;
        let mut by_image = ByImage {
            profile: self,
            windows: vec![Vec::new(); self.images.len()],
            rows: vec![Vec::new(); self.windows.len()],
            threads: vec![Vec::new(); self.images.len()],
        };
        for (at, window) in self.windows.iter().enumerate() {
            by_image.windows[window.image].push(at);
        }
        for (at, row) in self.rows.iter().enumerate() {
            by_image.rows[row.window].push(at);
        }
        for (at, thread) in self.threads.iter().enumerate() {
            by_image.threads[thread.image].push(at);
        }
        Ok(by_image)
    }
}

/// A profile whose windows, rows and threads are found by image.
#[derive(Debug)]
pub struct ByImage<'a> {
    profile: &'a Profile,
    /// The windows of each image.
    windows: Vec<Vec<WindowId>>,
    /// The rows of each window.
    rows: Vec<Vec<usize>>,
    /// The threads of each image.
    threads: Vec<Vec<usize>>,
}

impl ByImage<'_> {
    /// The profile of some images alone, as if they were the program, in the order of the whole. Losses and the other
    /// numbers that are not kept by image are 0: they are the caller's to fill in.
    ///
    /// # Errors
    /// [`Error::Index`] when an image is not there.
    pub fn of(&self, images: &[ImageId]) -> Result<Profile, Error> {
        let whole = self.profile;
        let mut part = Part::default();
        part.into.environment = whole.environment.clone();
        part.into.environment.frees_from_before = 0;
        let mut order = images.to_vec();
        order.sort_unstable();
        order.dedup();
        let mut windows: HashMap<WindowId, WindowId> = HashMap::new();
        // As in the whole, windows are in the order in which they opened, whatever image did.
        let mut opened: Vec<(WindowId, ImageId)> = Vec::new();
        for (new, &image) in order.iter().enumerate() {
            index(("process", 0), "image", image, whole.images.len())?;
            part.into.images.push(Image { processes: 0, ..whole.images[image].clone() });
            opened.extend(self.windows[image].iter().map(|window| (*window, new)));
        }
        opened.sort_unstable();
        for &(window, image) in &opened {
            windows.insert(window, part.into.windows.len());
            part.into.windows.push(Window { image, ..whole.windows[window].clone() });
        }
        for (new, (window, _)) in opened.iter().enumerate() {
            for row in self.rows[*window].iter().map(|row| &whole.rows[*row]) {
                let stack = part.stack(whole, row.stack);
                part.into.rows.push(Row { window: new, stack, ..row.clone() });
            }
        }
        for (new, image) in order.iter().enumerate() {
            for thread in self.threads[*image].iter().map(|thread| &whole.threads[*thread]) {
                let totals = thread.totals.iter();
                let totals =
                    totals.filter_map(|(window, total)| Some((*windows.get(window)?, *total))).collect();
                let start = thread.start.map(|start| part.location(whole, start));
                part.into.threads.push(ThreadLife { image: new, start, totals, ..thread.clone() });
            }
        }
        let mut profile = part.into;
        profile.normalize()?;
        Ok(profile)
    }
}

/// A part of a profile while it is copied, with the new index of what was copied so far.
#[derive(Default)]
struct Part {
    into: Profile,
    stacks: HashMap<StackId, StackId>,
    locations: HashMap<LocationId, LocationId>,
    functions: HashMap<FunctionId, FunctionId>,
    modules: HashMap<ModuleId, ModuleId>,
}

impl Part {
    fn stack(&mut self, whole: &Profile, stack: StackId) -> StackId {
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let from = &whole.stacks[stack];
        let locations = from.locations.iter().map(|location| self.location(whole, *location)).collect();
        self.into.stacks.push(Stack { locations, ..from.clone() });
        let new = self.into.stacks.len() - 1;
        self.stacks.insert(stack, new);
        for executor in whole.executors.iter().filter(|executor| executor.stack == stack) {
            let locations =
                executor.locations.iter().map(|location| self.location(whole, *location)).collect();
            self.into.executors.push(Executor { stack: new, locations, ..executor.clone() });
        }
        new
    }

    fn location(&mut self, whole: &Profile, location: LocationId) -> LocationId {
        if let Some(known) = self.locations.get(&location) {
            return *known;
        }
        let mut copy = whole.locations[location].clone();
        for line in &mut copy.lines {
            line.function =
                placed(&mut self.functions, &mut self.into.functions, &whole.functions, line.function);
        }
        copy.module = copy
            .module
            .map(|module| placed(&mut self.modules, &mut self.into.modules, &whole.modules, module));
        self.into.locations.push(copy);
        self.locations.insert(location, self.into.locations.len() - 1);
        self.into.locations.len() - 1
    }
}

/// The new index of entry `at` of a table, which is copied when it is wanted for the first time.
fn placed<T: Clone>(known: &mut HashMap<usize, usize>, into: &mut Vec<T>, from: &[T], at: usize) -> usize {
    *known.entry(at).or_insert_with(|| {
        into.push(from[at].clone());
        into.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Function, Line, Location, Module};
    use crate::process::tests::family;

    #[test]
    fn one_process_is_a_profile_of_its_own() {
        let profile = family();
        let one = profile.by_image().unwrap().of(&[3]).unwrap();
        assert_eq!((one.images.len(), one.windows.len(), one.threads.len()), (1, 1, 1));
        assert_eq!((one.images[0].pid, one.images[0].processes, one.rows[0].counts.allocations), (4, 0, 8));
        one.validate().unwrap();
    }

    /// What is left when all rows, threads and windows of other images are struck out of the whole.
    #[test]
    fn a_part_is_the_whole_without_the_rest() {
        let mut whole = family();
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        whole.functions = ["main", "work", "other"].map(function).into();
        let module = |path: &str| Module { path: path.into(), ..Module::default() };
        whole.modules = ["/bin/make", "/bin/sh", "/bin/cc"].map(module).into();
        let location = |module, function| Location {
            module: Some(module),
            lines: vec![Line { function, line: 1 }],
            ..Location::default()
        };
        whole.locations = vec![location(0, 0), location(1, 0), location(1, 1), location(2, 2)];
        whole.stacks = [vec![0], vec![2, 1], vec![3], vec![1]]
            .map(|locations| Stack { locations, ..Stack::default() })
            .into();
        for (at, row) in whole.rows.iter_mut().enumerate() {
            row.stack = at;
        }
        // A second window of the first image, opened after those of others.
        whole.windows.push(Window { name: "late".into(), ..whole.windows[0].clone() });
        whole.rows.push(Row { window: 4, stack: 1, ..whole.rows[1].clone() });
        whole.threads[2].start = Some(2);
        let by_image = whole.by_image().unwrap();
        for images in [&[0][..], &[1], &[3], &[0, 2], &[1, 3], &[0, 1, 2, 3], &[]] {
            let mut expected = whole.clone();
            expected.rows.retain(|row| images.contains(&whole.windows[row.window].image));
            expected.threads.retain(|thread| images.contains(&thread.image));
            let mut kept = Vec::new();
            for (at, window) in whole.windows.iter().enumerate() {
                if let Some(image) = images.iter().position(|image| *image == window.image) {
                    kept.push(at);
                    expected.windows[at].image = image;
                }
            }
            let place = |window: usize| kept.iter().position(|at| *at == window).unwrap();
            expected.rows.iter_mut().for_each(|row| row.window = place(row.window));
            let image_of = |image: usize| images.iter().position(|kept| *kept == image).unwrap();
            expected.threads.iter_mut().for_each(|thread| thread.image = image_of(thread.image));
            expected.windows = kept.iter().map(|at| expected.windows[*at].clone()).collect();
            expected.images =
                images.iter().map(|at| Image { processes: 0, ..whole.images[*at].clone() }).collect();
            expected.normalize().unwrap();
            assert_eq!(by_image.of(images).unwrap(), expected, "{images:?}");
        }
        assert_eq!(by_image.of(&[3, 1, 3]).unwrap(), by_image.of(&[1, 3]).unwrap());
        assert!(matches!(by_image.of(&[4]), Err(Error::Index { target: "image", index: 4, .. })));
    }
}
