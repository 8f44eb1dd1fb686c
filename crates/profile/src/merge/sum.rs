//! Profiles that are no repeats of each other, added.

use super::{ImageKey, Merger, Numbers, Table, unite_symbol_problems};
use crate::Error;
use crate::model::{Environment, Profile};

/// Adds profiles, in whatever order and groups. See the [module](super).
///
/// # Errors
/// As [`merge`](super::merge).
pub fn sum(mut profiles: Vec<Profile>) -> Result<Profile, Error> {
    unite_symbol_problems(&mut profiles);
    for profile in &mut profiles {
        profile.normalize()?;
        forget_runs(profile);
    }
    if profiles.is_empty() {
        return Err(Error::NothingToMerge);
    }
    let mut merger = Merger::new(&profiles)?;
    // Nothing is kept by run.
    merger.runs = 0;
    let environments: Vec<Environment> = profiles.iter().map(|profile| profile.environment.clone()).collect();
    let allocators = least_allocators(&profiles);
    for profile in profiles {
        merger.add(profile);
    }
    let mut profile = merger.into_profile()?;
    let environment = &mut profile.environment;
    environment.repeats = 1;
    let commands = environments.iter().map(|of| &of.command).filter(|command| !command.is_empty());
    environment.command = commands.min().cloned().unwrap_or_default();
    environment.exit_code = environments.iter().filter_map(|of| of.exit_code).max();
    for (image, allocator) in profile.images.iter_mut().zip(allocators) {
        image.allocator = allocator;
        image.warnings.sort();
    }
    put_in_order(&mut profile);
    profile.normalize()?;
    Ok(profile)
}

/// Makes several runs one.
fn forget_runs(profile: &mut Profile) {
    profile.environment.repeats = 1;
    profile.windows.iter_mut().for_each(|window| window.iterations_per_repeat.clear());
    profile.rows.iter_mut().for_each(|row| row.repeats.clear());
}

/// The least allocator that is known of each image, in the order in which they are merged.
fn least_allocators(profiles: &[Profile]) -> Vec<String> {
    let mut allocators: Table<ImageKey, String> = Table::new();
    for profile in profiles {
        let mut numbers = Numbers::new();
        for image in &profile.images {
            let key = numbers.number((image.path.clone(), image.label.clone(), image.processes > 0));
            allocators.put(key, image.allocator.clone(), |into, from| {
                if into.is_empty() || (!from.is_empty() && from < *into) {
                    *into = from;
                }
            });
        }
    }
    allocators.entries
}

/// Orders images and windows by what they are. Those that are alike stay in the order of their numbers.
fn put_in_order(profile: &mut Profile) {
    let images = ordered(&mut profile.images, |a, b| {
        (&a.path, &a.label, a.processes > 0).cmp(&(&b.path, &b.label, b.processes > 0))
    });
    profile.windows.iter_mut().for_each(|window| window.image = images[window.image]);
    profile.threads.iter_mut().for_each(|thread| thread.image = images[thread.image]);
    let windows =
        ordered(&mut profile.windows, |a, b| (a.image, &a.name, a.kind).cmp(&(b.image, &b.name, b.kind)));
    profile.rows.iter_mut().for_each(|row| row.window = windows[row.window]);
    for thread in &mut profile.threads {
        let totals = std::mem::take(&mut thread.totals);
        thread.totals = totals.into_iter().map(|(window, total)| (windows[window], total)).collect();
    }
}

/// Sorts a table; the new index of each old one.
fn ordered<T>(table: &mut Vec<T>, compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> Vec<usize> {
    let mut entries: Vec<(usize, T)> = table.drain(..).enumerate().collect();
    entries.sort_by(|a, b| compare(&a.1, &b.1));
    let mut new = vec![0; entries.len()];
    for (at, (old, entry)) in entries.into_iter().enumerate() {
        new[old] = at;
        table.push(entry);
    }
    new
}
