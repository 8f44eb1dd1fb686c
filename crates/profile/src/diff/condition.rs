//! What two recordings were made with, and what is wrong with them: what differs may change counts although the program
//! is the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::call_site::CallSites;
use crate::frame::{Frame, file_name, frame_at};
use crate::model::{Capture, Environment, Metric, Profile, Window, WindowKind};

/// So many windows are named.
const MOST_WINDOWS: usize = 5;

/// Something that is not the same on both sides, or not as it should be on either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What.
    pub what: What,
    /// By side.
    pub values: [String; 2],
}

/// What a recording depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The machine's.
    Architecture,
    /// The processor's model, and how many there are.
    Machine,
    /// The C library.
    Libc,
    /// The allocators behind the recorder.
    Allocator,
    /// The compilers that debug information names.
    Compilers,
    /// heaptally's version, or the other tool that recorded.
    Recorder,
    /// Whether blocks were followed: what one side alone knows is not compared.
    Lifetimes,
    /// Whether stacks in tasks go on with what created the task: where one side's alone do, they are other stacks.
    TaskOrigins,
    /// How allocations were sampled.
    Sampling,
    /// How many allocations were lost, or have a stack that was cut. Also where both sides lost as many: they need not be
    /// the same ones.
    Incomplete,
    /// How the program ended, where it did not end with 0: a run that failed may not have done all of its work.
    Ending,
    /// The windows that the program opened, where the other side's format knows none: these are allocations of the whole
    /// run.
    Windows,
    /// How windows of both sides are defined at functions: they may not be the same part of the program.
    Definitions,
    /// That the numbers of both sides are estimates, by the same sampling.
    Estimates,
    /// That both sides count only the blocks that were live when their files were written.
    LiveOnly,
    /// That no call site of a side, or of both, has a name: the program was stripped. The values are empty for a side with
    /// names.
    Nameless,
}

impl What {
    /// Whether it is of the place where a program is built and run, and not of the recording.
    pub fn is_of_place(self) -> bool {
        match self {
            Self::Architecture | Self::Machine | Self::Libc | Self::Allocator | Self::Compilers => true,
            Self::Recorder | Self::Lifetimes | Self::TaskOrigins | Self::Sampling => false,
            Self::Incomplete | Self::Ending | Self::Windows | Self::Nameless | Self::Definitions => false,
            Self::Estimates | Self::LiveOnly => false,
        }
    }

    /// Whether it says what all numbers are, on both sides.
    pub fn is_of_numbers(self) -> bool {
        matches!(self, Self::Sampling | Self::Estimates | Self::LiveOnly)
    }
}

/// What differs, in a fixed order. What one side does not know is not compared.
pub(super) fn conditions(profiles: [&Profile; 2], sites: [&CallSites<'_>; 2]) -> Vec<Condition> {
    let environments = profiles.map(|profile| &profile.environment);
    let known = |what: What, values: [String; 2]| {
        let is_unlike = values.iter().all(|value| !value.is_empty()) && values[0] != values[1];
        is_unlike.then_some(Condition { what, values })
    };
    let unlike =
        |what: What, values: [String; 2]| (values[0] != values[1]).then_some(Condition { what, values });
    let task_origins = |joined: bool| if joined { "joined" } else { "not joined" }.to_owned();
    let lifetimes = |followed: bool| if followed { "followed" } else { "not followed" }.to_owned();
    [
        known(What::Architecture, environments.map(|of| of.architecture.clone())),
        known(What::Machine, environments.map(|of| of.machine.clone())),
        known(What::Libc, environments.map(|of| of.libc.clone())),
        known(What::Allocator, profiles.map(allocators)),
        known(What::Compilers, environments.map(|of| of.compilers.join(", "))),
        known(What::Recorder, environments.map(|of| of.recorder.clone())),
        unlike(What::Lifetimes, environments.map(|of| lifetimes(of.lifetimes))),
        unlike(What::TaskOrigins, environments.map(|of| task_origins(of.task_origins))),
        unlike(
            What::Sampling,
            environments.map(|of| of.origin.as_ref().map(|of| of.sampling.clone()).unwrap_or_default()),
        ),
        estimates(environments),
        live_only(environments),
        incomplete_sides(profiles),
        endings(environments),
        windows(profiles),
        definitions(profiles),
        nameless(profiles, sites),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The file names of the allocators that were recorded.
fn allocators(profile: &Profile) -> String {
    let of_images = profile.images.iter().filter(|image| image.in_path);
    let names: BTreeSet<&str> =
        of_images.map(|image| file_name(&image.allocator)).filter(|name| !name.is_empty()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// How the programs ended, where one did not end well.
fn endings(environments: [&Environment; 2]) -> Option<Condition> {
    let has_failed = environments.iter().any(|of| of.exit_code.is_some_and(|code| code != 0));
    let ending = |of: &Environment| match of.exit_code {
        None => "unknown".to_owned(),
        // NOTE: a program may also end with such a code by itself; a profile keeps the code alone.
        Some(code @ 129..=192) => format!("{code} (signal {})", code - 128),
        Some(code) => code.to_string(),
    };
    has_failed.then(|| Condition { what: What::Ending, values: environments.map(ending) })
}

/// The windows of the one side that knows them.
fn windows(profiles: [&Profile; 2]) -> Option<Condition> {
    let names = |profile: &Profile| {
        let opened = profile.windows.iter().filter(|window| window.kind != WindowKind::Automatic);
        let mut names: Vec<String> = opened.map(|window| format!("\"{}\"", window.name)).collect();
        if names.len() > MOST_WINDOWS {
            let more = names.len() - MOST_WINDOWS;
            names.truncate(MOST_WINDOWS);
            names.push(format!("{more} more"));
        }
        match profile.environment.knows(Metric::Windows) {
            false => "none".to_owned(),
            true => names.join(", "),
        }
    };
    let knows = profiles.map(|profile| profile.environment.knows(Metric::Windows));
    let values = profiles.map(names);
    let is_mixed = knows[0] != knows[1] && values.iter().all(|value| !value.is_empty());
    is_mixed.then_some(Condition { what: What::Windows, values })
}

/// Windows of one name that are defined otherwise.
fn definitions(profiles: [&Profile; 2]) -> Option<Condition> {
    if !profiles.iter().all(|profile| profile.environment.knows(Metric::Windows)) {
        return None;
    }
    let mut of_name: BTreeMap<&str, [BTreeSet<&BTreeSet<String>>; 2]> = BTreeMap::new();
    for (side, profile) in profiles.iter().enumerate() {
        let is_own = |window: &&Window| !matches!(window.kind, WindowKind::Automatic | WindowKind::Harness);
        for window in profile.windows.iter().filter(is_own) {
            of_name.entry(&window.name).or_default()[side].insert(&window.definition);
        }
    }
    let unlike = of_name
        .into_iter()
        .filter(|(_, sides)| sides[0] != sides[1] && sides.iter().all(|definitions| !definitions.is_empty()));
    let mut values = [const { Vec::new() }; 2];
    for (name, sides) in unlike.take(MOST_WINDOWS) {
        for (value, definitions) in values.iter_mut().zip(sides) {
            let phrases = |definition: &BTreeSet<String>| match definition.is_empty() {
                true => "opened by the program".to_owned(),
                false => definition.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
            };
            let phrases: Vec<String> = definitions.into_iter().map(phrases).collect();
            value.push(format!("\"{name}\" ({})", phrases.join("; or ")));
        }
    }
    let values = values.map(|value: Vec<String>| value.join(", "));
    (!values[0].is_empty()).then_some(Condition { what: What::Definitions, values })
}

/// The sampling of both sides, where it is the same.
fn estimates(environments: [&Environment; 2]) -> Option<Condition> {
    let values = environments.map(|of| of.origin.as_ref().map_or("", |of| &of.sampling));
    let is_same = !values[0].is_empty() && values[0] == values[1];
    is_same.then(|| Condition { what: What::Estimates, values: values.map(str::to_owned) })
}

fn live_only(environments: [&Environment; 2]) -> Option<Condition> {
    let is_so = |of: &&Environment| of.origin.as_ref().is_some_and(|of| of.live_only);
    let value = || "live blocks".to_owned();
    environments.iter().all(is_so).then(|| Condition { what: What::LiveOnly, values: [value(), value()] })
}

/// The sides without a name at any call site.
fn nameless(profiles: [&Profile; 2], sites: [&CallSites<'_>; 2]) -> Option<Condition> {
    let is_nameless = |side: usize| {
        let profile = profiles[side];
        let mut found = profile.rows.iter().filter_map(|row| sites[side].of(row.stack)).peekable();
        found.peek().is_some()
            && found.all(|(location, line)| {
                frame_at(profile, location, line).is_some_and(|frame| !has_name(&frame))
            })
    };
    let value = |side: usize| if is_nameless(side) { "no call site has a name" } else { "" };
    let values = [value(0), value(1)];
    let is_any = values.iter().any(|value| !value.is_empty());
    is_any.then(|| Condition { what: What::Nameless, values: values.map(str::to_owned) })
}

/// Whether a frame has a name, and not only the place where its function starts: `libfoo.so+0x1234`.
fn has_name(frame: &Frame<'_>) -> bool {
    let Some(name) = frame.name() else { return false };
    let module = frame.module.map_or("", |module| file_name(&module.path));
    let start = name.strip_prefix(module).and_then(|name| name.strip_prefix("+0x"));
    start.is_none_or(|digits| digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn incomplete_sides(profiles: [&Profile; 2]) -> Option<Condition> {
    let values = profiles.map(incomplete);
    let has_lost = profiles.iter().any(|profile| profile.lost_allocations() > 0);
    (has_lost || values[0] != values[1]).then_some(Condition { what: What::Incomplete, values })
}

/// Allocations whose stacks are not known, or not whole; in words.
fn incomplete(profile: &Profile) -> String {
    let lost = profile.lost_allocations();
    let cut = profile
        .rows
        .iter()
        .filter(|row| profile.stacks.get(row.stack).is_some_and(|stack| stack.capture == Capture::Cut));
    let cut = cut.map(|row| row.counts.allocations).fold(0, u64::saturating_add);
    match (lost, cut) {
        (0, 0) => "none".to_owned(),
        (lost, 0) => format!("{lost} lost"),
        (0, cut) => format!("{cut} with a cut stack"),
        (lost, cut) => format!("{lost} lost, {cut} with a cut stack"),
    }
}
