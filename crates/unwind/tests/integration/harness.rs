//! Everything that a walk needs, in a test process: a code map, memories, the machine state, and libgcc to compare with.

use std::alloc::{Layout, alloc_zeroed};
use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_unwind::{
    ADDRESS_MASK, CodeMap, End, FRAMES_MAX, FrameState, ModuleSections, RuleCache, Unwinder, Walk, WalkMemory,
};

use crate::modules::loaded_modules;

/// The modules and stacks of this process.
#[derive(Debug)]
pub(crate) struct Process {
    modules: Vec<ModuleSections>,
    /// The one address that is taken for a coroutine's start.
    pub(crate) coroutine_start: AtomicU64,
}

thread_local! {
    static STACK: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// A stack of the test's own, if it made one.
    pub(crate) static OTHER_STACK: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// A page of code of the test's own, if it made one.
    pub(crate) static OTHER_CODE: Cell<u64> = const { Cell::new(0) };
}

impl CodeMap for Process {
    fn find(&self, pc: u64) -> Option<ModuleSections> {
        self.modules.iter().find(|module| (module.start..module.end).contains(&pc)).copied()
    }

    fn is_other_code(&self, pc: u64) -> bool {
        OTHER_CODE.get() != 0 && pc & !4095 == OTHER_CODE.get()
    }

    fn stack_bounds(&self, sp: u64) -> Option<(u64, u64)> {
        if STACK.get().0 == 0 {
            STACK.set(thread_stack());
        }
        [STACK.get(), OTHER_STACK.get()].into_iter().find(|stack| stack.0 <= sp && sp < stack.1)
    }

    fn is_coroutine_start(&self, pc: u64) -> bool {
        pc == self.coroutine_start.load(Ordering::Relaxed)
    }
}

pub(crate) fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| Process {
        modules: loaded_modules().into_iter().map(|(_, module)| module).collect(),
        coroutine_start: AtomicU64::new(0),
    })
}

fn thread_stack() -> (u64, u64) {
    // SAFETY: an all-zero attribute object is what `pthread_getattr_np` fills.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the calls get places of the right types, in the right order.
    unsafe {
        assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes), 0);
        assert_eq!(libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size), 0);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    (low as u64, low as u64 + size as u64)
}

static GENERATION: AtomicU32 = AtomicU32::new(1);

/// A new, empty rule cache. It stays for good.
pub(crate) fn new_cache() -> &'static RuleCache {
    // SAFETY: the layout is the type's, and the memory is leaked.
    unsafe { RuleCache::from_memory(alloc_zeroed(Layout::new::<RuleCache>())) }
}

/// A new, empty thread memory. It stays for good.
pub(crate) fn new_memory() -> &'static mut WalkMemory {
    // SAFETY: the layout is the type's, the memory is leaked, and nobody else has it.
    unsafe { &mut *WalkMemory::init(alloc_zeroed(Layout::new::<WalkMemory>())) }
}

/// An unwinder with right rules.
pub(crate) fn unwinder(cache: &RuleCache) -> Unwinder<'_, Process> {
    Unwinder {
        cache,
        map: process(),
        generation: 1,
        live_generation: &GENERATION,
        #[cfg(feature = "mutation")]
        mutation: 0,
    }
}

/// Calls `callback` with the state of the frame that called this, as the recorder's entry points take it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn with_state(
    callback: extern "C" fn(&FrameState, *mut c_void),
    data: *mut c_void,
) {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "mov rax, [rsp + 40]",
        "mov [rsp], rax",
        "lea rax, [rsp + 48]",
        "mov [rsp + 8], rax",
        "mov [rsp + 16], rbp",
        "mov rax, rdi",
        "mov rdi, rsp",
        "call rax",
        "add rsp, 40",
        ".cfi_adjust_cfa_offset -40",
        "ret",
        ".cfi_endproc"
    )
}

unsafe extern "C" {
    fn _Unwind_Backtrace(trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void)
    -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> u64;
    fn _Unwind_GetCFA(context: *mut c_void) -> u64;
}

struct Trace {
    start: FrameState,
    has_begun: bool,
    frames: Vec<u64>,
}

/// libgcc's frames from `start` on, leaf first, whose frame must be live.
pub(crate) fn libgcc_frames(start: FrameState) -> Vec<u64> {
    extern "C" fn trace(context: *mut c_void, data: *mut c_void) -> c_int {
        // SAFETY: libgcc passes on the pointer that it got below.
        let trace = unsafe { &mut *data.cast::<Trace>() };
        // SAFETY: libgcc gives a valid context.
        let (pc, sp) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
        trace.has_begun |= (pc, sp) == (trace.start.pc, trace.start.sp);
        if trace.has_begun && pc != 0 {
            trace.frames.push(pc);
        }
        0
    }
    let mut found = Trace { start, has_begun: false, frames: Vec::new() };
    // SAFETY: `trace` takes what it gets here.
    unsafe { _Unwind_Backtrace(trace, (&raw mut found).cast()) };
    found.frames
}

/// A thread's recorder as the tests have it: every event is walked in all ways, and the results are compared.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) cache: &'static RuleCache,
    pub(crate) memory: &'static mut WalkMemory,
    out: Vec<u64>,
    /// The nodes given so far: (parent, address) by number, from 1.
    nodes: Vec<(u64, u64)>,
    /// Whether libgcc is asked too.
    pub(crate) asks_libgcc: bool,
    pub(crate) events: usize,
    /// Makes one kind of rule wrong; then differences from libgcc are counted, and fail no test by themselves.
    #[cfg(feature = "mutation")]
    pub(crate) mutation: u8,
    pub(crate) differences: usize,
    /// Frames that the memory kept, of all.
    pub(crate) kept: usize,
    pub(crate) frames: usize,
    /// The last walk.
    pub(crate) walk: Option<Walk>,
    /// The last stack, leaf first, with flags.
    pub(crate) stack: Vec<u64>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            cache: new_cache(),
            memory: new_memory(),
            out: vec![0; FRAMES_MAX],
            nodes: Vec::new(),
            asks_libgcc: true,
            events: 0,
            #[cfg(feature = "mutation")]
            mutation: 0,
            differences: 0,
            kept: 0,
            frames: 0,
            walk: None,
            stack: Vec::new(),
        }
    }

    /// An event in the caller of this function.
    #[inline(never)]
    pub(crate) fn event(&mut self) {
        // SAFETY: `on_event` takes what it gets here.
        unsafe { with_state(on_event, (&raw mut *self).cast()) };
        std::hint::black_box(());
    }

    fn is_mutated(&self) -> bool {
        #[cfg(feature = "mutation")]
        return self.mutation != 0;
        #[cfg(not(feature = "mutation"))]
        false
    }

    fn check(&mut self, state: FrameState) {
        let unwinder = unwinder(self.cache);
        #[cfg(feature = "mutation")]
        let unwinder = Unwinder { mutation: self.mutation, ..unwinder };
        // SAFETY: `state` is that of a frame of this thread, which waits for us. Here and below.
        let walk = unsafe { unwinder.walk(self.memory, state) };
        let entries = self.memory.entries();
        self.stack.clear();
        self.stack.extend(entries.iter().rev().map(|entry| entry.address));
        assert!(walk.kept <= entries.len());
        self.fill_nodes(walk);
        // SAFETY: as above.
        let (len, end) = unsafe { unwinder.walk_full(self.memory, state, &mut self.out) };
        assert_eq!((walk.end, &self.stack[..]), (end, &self.out[..len]), "remembered and full");
        // SAFETY: as above.
        let (len, end) = unsafe { unwinder.walk_uncached(self.memory, state, &mut self.out) };
        assert_eq!((walk.end, &self.stack[..]), (end, &self.out[..len]), "remembered and uncached");
        if self.asks_libgcc {
            let libgcc = libgcc_frames(state);
            let ours: Vec<u64> = self.stack.iter().map(|address| address & ADDRESS_MASK).collect();
            let is_right = walk.end == End::Complete && ours == libgcc;
            assert!(is_right || self.is_mutated(), "{walk:?}\n  ours {ours:x?}\nlibgcc {libgcc:x?}");
            self.differences += usize::from(!is_right);
        }
        self.events += 1;
        self.kept += walk.kept;
        self.frames += self.stack.len();
        self.walk = Some(walk);
    }

    /// Gives the new entries nodes, and checks that the old ones' say the right stack.
    fn fill_nodes(&mut self, walk: Walk) {
        let root = u64::MAX - walk.end as u64;
        let mut parent = root;
        for (index, entry) in self.memory.entries_mut().iter_mut().enumerate() {
            let node = (parent, entry.address);
            if index < walk.kept {
                assert_eq!(
                    self.nodes[entry.node as usize - 1],
                    node,
                    "a kept node at {index} of {}",
                    walk.kept
                );
            } else {
                self.nodes.push(node);
                entry.node = self.nodes.len() as u32;
            }
            parent = u64::from(entry.node);
        }
    }
}

extern "C" fn on_event(state: &FrameState, data: *mut c_void) {
    // SAFETY: `Recorder::event` passes itself.
    unsafe { &mut *data.cast::<Recorder>() }.check(*state);
}
