//! What a program can do, as the recorder sees it.

/// A thread of the program. After its end the same number is a new thread.
pub(crate) type ThreadId = u8;
/// A whole call stack.
pub(crate) type Stack = u8;
/// A block's address. It is handed out again after it was given back.
pub(crate) type Block = u16;
/// A window's name.
pub(crate) type Name = &'static str;

/// Which function was called (`malloc`, `calloc` …), and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) stack: Stack,
    pub(crate) entry_point: u8,
}

/// How a `realloc` of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It returned a block, at the old address (in place) or at another one (moved).
    Block { block: Block, size: u64 },
    /// It returned null for a size above 0; the old block lives on.
    Failed,
    /// `realloc(p, 0)` returned null; the old block is gone.
    Zero,
}

/// One step of the program. Steps of different threads follow each other: the model knows no races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Allocate { thread: ThreadId, call: Call, block: Block, size: u64 },
    AllocateFailed { thread: ThreadId, call: Call },
    Free { thread: ThreadId, block: Option<Block> },
    Reallocate { thread: ThreadId, call: Call, old: Option<Block>, outcome: Outcome },
    WindowBegin { thread: ThreadId, name: Name },
    WindowEnd { thread: ThreadId, name: Name },
    ThreadWindowBegin { thread: ThreadId, name: Name },
    ThreadWindowEnd { thread: ThreadId, name: Name },
    Iterations { thread: ThreadId, name: Name, n: u64 },
    Pause { thread: ThreadId },
    Resume { thread: ThreadId },
    ThreadEnd { thread: ThreadId },
}

impl Op {
    /// The thread that does it.
    pub(crate) fn thread(&self) -> ThreadId {
        match *self {
            Self::Allocate { thread, .. }
            | Self::AllocateFailed { thread, .. }
            | Self::Free { thread, .. }
            | Self::Reallocate { thread, .. }
            | Self::WindowBegin { thread, .. }
            | Self::WindowEnd { thread, .. }
            | Self::ThreadWindowBegin { thread, .. }
            | Self::ThreadWindowEnd { thread, .. }
            | Self::Iterations { thread, .. }
            | Self::Pause { thread }
            | Self::Resume { thread }
            | Self::ThreadEnd { thread } => thread,
        }
    }

    /// The same, done by another thread.
    pub(crate) fn by(mut self, other: ThreadId) -> Self {
        match &mut self {
            Self::Allocate { thread, .. }
            | Self::AllocateFailed { thread, .. }
            | Self::Free { thread, .. }
            | Self::Reallocate { thread, .. }
            | Self::WindowBegin { thread, .. }
            | Self::WindowEnd { thread, .. }
            | Self::ThreadWindowBegin { thread, .. }
            | Self::ThreadWindowEnd { thread, .. }
            | Self::Iterations { thread, .. }
            | Self::Pause { thread }
            | Self::Resume { thread }
            | Self::ThreadEnd { thread } => *thread = other,
        }
        self
    }

    /// The window's name, if it is a call for a window.
    pub(crate) fn window_name(&self) -> Option<Name> {
        match *self {
            Self::WindowBegin { name, .. }
            | Self::WindowEnd { name, .. }
            | Self::ThreadWindowBegin { name, .. }
            | Self::ThreadWindowEnd { name, .. }
            | Self::Iterations { name, .. } => Some(name),
            _ => None,
        }
    }
}
