//! Arbitrary valid profiles.

use std::collections::BTreeMap;

use heaptally_profile::model::{
    Capture, Counts, Environment, Executor, FrameKind, Function, Image, Line, Location, Losses, Metric,
    Module, Origin, Profile, RepeatValue, Row, Stack, ThreadLife, ThreadTotal, Window, WindowKind,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A profile whose indices are valid and whose counts fit a file. Tables are small, so that equal entries are common.
pub(crate) fn profile() -> impl Strategy<Value = Profile> {
    (one_run(), 0..4_u64, prop::collection::vec([count(), count()], 3 * ROWS)).prop_map(
        |(mut profile, repeats, values)| {
            profile.environment.repeats = repeats;
            if repeats > 1 {
                let runs = repeats as usize;
                for window in &mut profile.windows {
                    window.iterations_per_repeat = vec![window.iterations; runs];
                }
                for (row, values) in profile.rows.iter_mut().zip(values.chunks(3)) {
                    row.repeats = values[..runs]
                        .iter()
                        .map(|&[allocations, bytes]| RepeatValue { allocations, bytes })
                        .collect();
                }
            }
            profile
        },
    )
}

/// As [`profile`], of one run.
pub(crate) fn one_run() -> impl Strategy<Value = Profile> {
    (tables(), rows_and_threads(), losses(), environment()).prop_map(
        |(mut profile, (rows, threads), losses, environment)| {
            fix_up(&mut profile, rows, threads);
            Profile { losses, environment, ..profile }
        },
    )
}

/// So many rows there are at most.
const ROWS: usize = 10;

/// The tables, their indices still arbitrary: each is taken modulo the length of the table it leads to.
fn tables() -> impl Strategy<Value = Profile> {
    (
        prop::collection::vec(image(), 1..3),
        prop::collection::vec(module(), 0..4),
        prop::collection::vec(function(), 0..5),
        prop::collection::vec(location(), 0..6),
        prop::collection::vec(stack(), 0..6),
        prop::collection::vec(window(), 1..4),
    )
        .prop_map(|(images, modules, functions, locations, stacks, windows)| Profile {
            images,
            modules,
            functions,
            locations,
            stacks,
            windows,
            ..Profile::default()
        })
}

type Rows = Vec<(Index, Index, Counts, [Option<u64>; 3])>;
type Threads = Vec<(Index, ThreadLife, Option<Index>, Vec<(Index, ThreadTotal)>)>;

fn rows_and_threads() -> impl Strategy<Value = (Rows, Threads)> {
    let row = (any::<Index>(), any::<Index>(), counts(), [entry(), entry(), entry()]);
    let total = (count(), count(), count(), count()).prop_map(|(allocations, bytes, freed, freed_bytes)| {
        ThreadTotal { allocations, bytes, freed, freed_bytes }
    });
    let totals = prop::collection::vec((any::<Index>(), total), 0..3);
    let life = (0..3_u64, text(), text()).prop_map(|(lives, name, last_name)| ThreadLife {
        lives,
        name,
        last_name,
        ..ThreadLife::default()
    });
    let thread = (any::<Index>(), life, prop::option::of(any::<Index>()), totals);
    (prop::collection::vec(row, 0..ROWS), prop::collection::vec(thread, 0..4))
}

fn fix_up(profile: &mut Profile, rows: Rows, threads: Threads) {
    let (modules, functions) = (profile.modules.len(), profile.functions.len());
    for location in &mut profile.locations {
        location.module = location.module.and_then(|at| at.checked_rem(modules));
        location.lines.retain_mut(|line| {
            line.function = line.function.checked_rem(functions).unwrap_or_default();
            functions > 0
        });
    }
    let locations = profile.locations.len();
    for stack in &mut profile.stacks {
        stack.locations.retain_mut(|at| {
            *at = at.checked_rem(locations).unwrap_or_default();
            locations > 0
        });
    }
    for window in &mut profile.windows {
        window.image %= profile.images.len();
    }
    if !profile.stacks.is_empty() {
        profile.rows = rows
            .into_iter()
            .map(|(window, stack, counts, [entries, first_entry, last_entry])| Row {
                window: window.index(profile.windows.len()),
                stack: stack.index(profile.stacks.len()),
                counts,
                entries,
                first_entry,
                last_entry,
                ..Row::default()
            })
            .collect();
    }
    // Every second stack has an executor, of the frames that stacks have.
    let executor = |(stack, of): (usize, &Stack)| Executor {
        stack,
        locations: of.locations.iter().rev().copied().collect(),
        allocations: stack as u64 + 1,
    };
    profile.executors = profile.stacks.iter().enumerate().step_by(2).map(executor).collect();
    profile.threads = threads
        .into_iter()
        .map(|(image, life, start, totals)| ThreadLife {
            image: image.index(profile.images.len()),
            start: start.filter(|_| locations > 0).map(|start| start.index(locations)),
            totals: totals
                .into_iter()
                .map(|(window, total)| (window.index(profile.windows.len()), total))
                .collect::<BTreeMap<_, _>>(),
            ..life
        })
        .collect();
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(vec!["", "a", "b", "#heaptally {}", "\u{1b}[31m\"\\"]).prop_map(str::to_owned), 1 => any::<String>()]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..4_u64, 1 => 0..=i64::MAX as u64]
}

fn entry() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![1 => Just(None), 3 => (1..6_u64).prop_map(Some), 1 => any::<u64>().prop_map(Some)]
}

fn counts() -> impl Strategy<Value = Counts> {
    prop::collection::vec(count(), 14).prop_flat_map(|values| {
        any::<u64>().prop_map(move |reallocs_to_zero| Counts {
            allocations: values[0],
            bytes: values[1],
            freed: values[2],
            freed_bytes: values[3],
            freed_later: values[4],
            freed_later_bytes: values[5],
            reallocs: values[6],
            reallocs_in_place: values[7],
            reallocs_moved: values[8],
            temporary: values[9],
            temporary_bytes: values[10],
            failed: values[11],
            reallocs_to_zero,
            discarded: values[12],
            discarded_bytes: values[13],
        })
    })
}

fn image() -> impl Strategy<Value = Image> {
    let texts = prop::collection::vec(text(), 0..3);
    (text(), text(), any::<bool>(), any::<bool>(), text(), texts, 0..3_u64).prop_map(
        |(label, path, replaced, in_path, allocator, warnings, processes)| Image {
            label,
            path,
            pid: 0,
            replaced,
            in_path,
            allocator,
            warnings,
            processes,
        },
    )
}

fn module() -> impl Strategy<Value = Module> {
    (text(), text(), 0..3_u64, any::<u64>(), 0..3_u64, prop::option::of(text())).prop_map(
        |(path, build_id, text_svma, text_svma_end, text_offset, symbol_problem)| Module {
            path,
            build_id,
            text_svma,
            text_svma_end,
            text_offset,
            symbol_problem,
        },
    )
}

fn function() -> impl Strategy<Value = Function> {
    (text(), text(), text(), any::<bool>()).prop_map(|(name, system_name, file, is_folded)| Function {
        name,
        system_name,
        file,
        is_folded,
    })
}

fn location() -> impl Strategy<Value = Location> {
    let kind = select(vec![
        FrameKind::Return,
        FrameKind::Interrupted,
        FrameKind::Signal,
        FrameKind::FramePointer,
        FrameKind::Async,
        FrameKind::Elided,
        FrameKind::TaskOrigin,
        FrameKind::EntryPoint,
    ]);
    let line = (any::<usize>(), any::<u32>()).prop_map(|(function, line)| Line { function, line });
    let address = prop_oneof![3 => 0..4_u64, 1 => any::<u64>()];
    (prop::option::of(any::<usize>()), address, kind, prop::collection::vec(line, 0..3))
        .prop_map(|(module, address, kind, lines)| Location { module, address, kind, lines })
}

fn stack() -> impl Strategy<Value = Stack> {
    let capture = select(vec![Capture::Complete, Capture::FramePointer, Capture::Cut, Capture::AsyncUnknown]);
    (prop::collection::vec(any::<usize>(), 0..5), capture, text())
        .prop_map(|(locations, capture, cut_reason)| Stack { locations, capture, cut_reason })
}

fn window() -> impl Strategy<Value = Window> {
    let kind =
        select(vec![WindowKind::Process, WindowKind::Thread, WindowKind::Automatic, WindowKind::Harness]);
    let flags = (any::<bool>(), any::<bool>());
    let numbers = prop::collection::vec(any::<u64>(), 8);
    (text(), any::<usize>(), kind, flags, numbers, prop::option::of(any::<u64>())).prop_map(
        |(name, image, kind, (iterations_told, unfinished), numbers, peak_bytes)| Window {
            name,
            image,
            kind,
            entries: numbers[0],
            iterations: numbers[1],
            iterations_told,
            unfinished,
            crossed_ends: numbers[2],
            stray_ends: numbers[3],
            peak_bytes,
            peak_uncertainty_bytes: numbers[4],
            lost: numbers[5],
            ended_by_thread: numbers[6],
            discarded_entries: numbers[7],
            ..Window::default()
        },
    )
}

fn losses() -> impl Strategy<Value = Losses> {
    prop::collection::vec(prop_oneof![Just(0), any::<u64>()], 15).prop_map(|values| Losses {
        reentrant: values[0],
        table_full: values[1],
        thread: values[2],
        blocks: values[3],
        unseen_frees: values[4],
        windows: values[5],
        window_calls: values[6],
        stray_ends: values[7],
        modules: values[8],
        thread_totals: values[9],
        images: values[10],
        damaged: values[11],
        stray_resumes: values[12],
        restarts: values[13],
        unplaced: values[14],
    })
}

fn environment() -> impl Strategy<Value = Environment> {
    let texts = || prop::collection::vec(text(), 0..3);
    let machine = select(vec!["", "alpha, 1 processor", "beta, 2 processors"]);
    let origin = (text(), text(), any::<bool>()).prop_map(|(format, sampling, live_only)| Origin {
        format,
        sampling,
        live_only,
    });
    let unknown =
        prop::collection::btree_set(select(&[Metric::Windows, Metric::Bytes, Metric::Threads][..]), 0..3);
    let rest = (prop::option::of(origin), unknown, machine, any::<bool>());
    (text(), text(), texts(), texts(), any::<bool>(), any::<u64>(), any::<Option<i32>>(), rest).prop_map(
        |(recorder, libc, command, compilers, lifetimes, frees_from_before, exit_code, rest)| Environment {
            recorder,
            architecture: "x86_64".to_owned(),
            libc,
            command,
            compilers,
            lifetimes,
            frees_from_before,
            exit_code,
            repeats: 0,
            origin: rest.0,
            unknown: rest.1,
            machine: rest.2.to_owned(),
            task_origins: rest.3,
        },
    )
}
