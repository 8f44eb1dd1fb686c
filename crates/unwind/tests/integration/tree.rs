//! Random call trees: thousands of events on stacks that share more or less of their frames with the last one's.

use std::ffi::c_void;

use crate::frame_shape::{
    ORDINARY, Shape, shape_no_cfi, shape_no_cfi_junk_rbp, shape_r12_cfa, shape_rbx_cfa,
};
use crate::harness::Recorder;
use crate::signal::{RECORDER, handle};

/// What a tree's nodes share.
pub(crate) struct Tree {
    pub(crate) recorder: Recorder,
    random: u64,
    depth: u32,
    depth_max: u32,
    events_max: usize,
    shapes: Vec<Shape>,
    has_signals: bool,
}

impl Tree {
    pub(crate) fn new(seed: u64, depth_max: u32, events_max: usize) -> Self {
        let recorder = Recorder::new();
        Self {
            recorder,
            random: seed,
            depth: 0,
            depth_max,
            events_max,
            shapes: ORDINARY.to_vec(),
            has_signals: false,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % below
    }

    /// Calls a random shape, which calls back into [`node`].
    fn descend(&mut self) {
        let index = self.random(self.shapes.len() as u64) as usize;
        let shape = self.shapes[index];
        // SAFETY: `node` takes a tree.
        unsafe { shape(node, (&raw mut *self).cast()) };
    }
}

pub(crate) extern "C" fn node(tree: *mut c_void) {
    // SAFETY: only `Tree::descend` and `grow` come here, with a tree.
    let tree = unsafe { &mut *tree.cast::<Tree>() };
    tree.depth += 1;
    for _ in 0..tree.random(6) {
        if tree.recorder.events >= tree.events_max {
            break;
        }
        if tree.has_signals && tree.random(5) == 0 {
            RECORDER.set(&raw mut tree.recorder);
            // SAFETY: a signal that the test handles.
            unsafe { libc::raise(libc::SIGWINCH) };
        }
        match tree.random(3) {
            0 => tree.recorder.event(),
            _ if tree.depth >= tree.depth_max => tree.recorder.event(),
            1 => recurse(tree, 3),
            _ => tree.descend(),
        }
    }
    tree.depth -= 1;
}

/// Frames as the compiler makes them.
#[inline(never)]
fn recurse(tree: &mut Tree, levels: u32) {
    let room = std::hint::black_box([levels; 9]);
    if levels == 0 {
        tree.descend()
    } else {
        recurse(tree, room[3] - 1)
    }
    tree.recorder.event();
}

pub(crate) fn grow(mut tree: Tree) -> Recorder {
    while tree.recorder.events < tree.events_max {
        node((&raw mut tree).cast());
    }
    tree.recorder
}

#[test]
fn random_trees_are_walked_as_libgcc_walks_them() {
    let (mut kept, mut frames) = (0, 0);
    for seed in 1..=8 {
        let recorder = grow(Tree::new(seed * 0x1234_5677, 5 + 3 * seed as u32, 1500));
        kept += recorder.kept;
        frames += recorder.frames;
    }
    assert!(kept * 2 > frames, "{kept} of {frames} frames were remembered");
}

/// Frames whose end is in rbx are stepped over anew each time, and what lies further in with them.
#[test]
fn random_trees_with_ends_in_rbx_are_walked_as_libgcc_walks_them() {
    for seed in 1..=8 {
        let mut tree = Tree::new(seed * 0x1357_9bdf, 5 + 3 * seed as u32, 1500);
        tree.shapes.extend([shape_rbx_cfa as Shape, shape_rbx_cfa]);
        let recorder = grow(tree);
        assert!(recorder.kept > 0 && recorder.frames > recorder.kept);
    }
}

/// Where libgcc gives up: signals, code without information, walks that are cut and become whole again.
#[test]
fn random_trees_of_strange_frames_are_remembered_as_they_are_walked() {
    handle(libc::SIGWINCH, 0);
    for seed in 1..=8 {
        let mut tree = Tree::new(seed * 0x7654_3211, 5 + 3 * seed as u32, 1500);
        tree.recorder.asks_libgcc = false;
        tree.has_signals = true;
        for _ in 0..3 {
            tree.shapes.extend(ORDINARY);
        }
        tree.shapes.extend([
            shape_no_cfi as Shape,
            shape_no_cfi,
            shape_no_cfi,
            shape_no_cfi_junk_rbp,
            shape_r12_cfa,
        ]);
        let recorder = grow(tree);
        assert!(recorder.kept * 3 > recorder.frames, "{} of {}", recorder.kept, recorder.frames);
    }
}

#[test]
fn threads_share_the_rules_and_not_the_stacks() {
    let cache = crate::harness::new_cache();
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            scope.spawn(move || {
                let mut tree = Tree::new(seed * 0x9999_1111, 14, 1500);
                tree.recorder.cache = cache;
                grow(tree);
            });
        }
    });
}
