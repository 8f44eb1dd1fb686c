//! Why an entry cannot be patched.

use std::fmt;

use super::entry::JUMP_BYTES;

/// Why an entry cannot be patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All its calls are inlined.
    OnlyInlined,
    /// It chooses an implementation.
    Indirect,
    /// It is a part that was split off, not entered by a call.
    Part,
    /// It lies outside of the file's code.
    NoCode,
    /// It has fewer bytes than the jump.
    TooShort(u64),
    /// Another symbol begins at this address, behind the first byte.
    Overlapped(u64),
    /// The bytes at this address are no instruction that is known.
    Unknown(u64),
    /// A jump at `from` goes to `to`, behind the first byte.
    JumpedInto { from: u64, to: u64 },
    /// The data at `place` holds the address `to`, behind the first byte.
    PointedInto { place: u64, to: u64 },
    /// The instruction at `from` names the address `to`, behind the first byte.
    NamedInto { from: u64, to: u64 },
    /// Its first instruction is where a loop of its own begins anew.
    Loop(u64),
    /// The same, by a jump through the data at this address.
    LoopByTable(u64),
    /// The instruction at this address traps.
    Trap(u64),
    /// It begins with a call that leaves no room for the jump.
    ShortCall,
    /// A call through a place relative to the stack pointer.
    StackCall,
    /// It begins a transaction.
    Transaction,
}

impl Refusal {
    /// A word for it, for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::OnlyInlined => "inlined",
            Self::Indirect => "indirect",
            Self::Part => "part",
            Self::NoCode => "no_code",
            Self::TooShort(_) => "too_short",
            Self::Overlapped(_) => "overlapped",
            Self::Unknown(_) => "unknown_instruction",
            Self::JumpedInto { .. } => "jumped_into",
            Self::PointedInto { .. } | Self::NamedInto { .. } => "pointed_into",
            Self::Loop(_) | Self::LoopByTable(_) => "loop",
            Self::Trap(_) => "trap",
            Self::ShortCall => "short_call",
            Self::StackCall => "stack_call",
            Self::Transaction => "transaction",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyInlined => formatter.write_str("all its calls are inlined"),
            Self::Indirect => formatter.write_str("it only chooses an implementation (an indirect function)"),
            Self::Part => formatter.write_str("it is a part that was split off a function"),
            Self::NoCode => formatter.write_str("it lies outside of the file's code"),
            Self::TooShort(size) => write!(formatter, "it has {size} bytes, and the jump needs {JUMP_BYTES}"),
            Self::Overlapped(address) => {
                write!(formatter, "another function begins at {address:#x}, inside its first instructions")
            }
            Self::Unknown(address) => write!(formatter, "the instruction at {address:#x} is not known"),
            Self::JumpedInto { from, to } => {
                write!(formatter, "a jump at {from:#x} goes to {to:#x}, inside its first instructions")
            }
            Self::PointedInto { place, to } => {
                write!(formatter, "the data at {place:#x} leads to {to:#x}, inside its first instructions")
            }
            Self::Loop(from) => {
                write!(formatter, "its first instruction is the head of a loop (jump at {from:#x})")
            }
            Self::NamedInto { from, to } => {
                write!(
                    formatter,
                    "the instruction at {from:#x} takes the address {to:#x}, inside its first instructions"
                )
            }
            Self::LoopByTable(place) => {
                write!(
                    formatter,
                    "its first instruction is the head of a loop (the data at {place:#x} leads there)"
                )
            }
            Self::Trap(address) => {
                write!(
                    formatter,
                    "the instruction at {address:#x} traps, and a handler would see another address"
                )
            }
            Self::ShortCall => formatter.write_str("it begins with a call that is too short for the jump"),
            Self::StackCall => formatter.write_str("it begins with a call through the stack"),
            Self::Transaction => formatter.write_str("it begins a transaction"),
        }
    }
}
