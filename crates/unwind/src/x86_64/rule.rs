//! One step of a walk in 32 bits.
//!
//! ```text
//! bits 0–2   kind
//! bits 3–20  n: the CFA is register + 8·n; for a realigned frame, the word at rbp − 8·n
//! bits 21–31 k: rbp is saved at CFA − 8·k; 0: it is unchanged
//! ```
//! Example: `push rbp; mov rbp, rsp` with CFA = rbp+16 and rbp at CFA−16 is kind `BasePointer`, n = 2, k = 2.

use crate::cursor::Cursor;
use crate::expression::register_offset;
use crate::row::{Cfa, Find, Scratch};

use super::{BP, BX, SP};

const KIND: u32 = 7;
const NUMBER_SHIFT: u32 = 3;
const NUMBER_MAX: u32 = (1 << 18) - 1;
const SLOT_SHIFT: u32 = 21;
const SLOT_MAX: u32 = (1 << 11) - 1;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// No rule: it is not in the cache.
    Miss = 0,
    /// CFA = rsp + 8·n.
    StackPointer = 1,
    /// CFA = rbp + 8·n.
    BasePointer = 2,
    /// CFA = the word at rbp − 8·n; rbp is saved where it points to.
    Realigned = 3,
    /// There is no caller.
    End = 4,
    /// The row has to be looked up each time.
    Special = 5,
    /// The code has no unwind information.
    NoInformation = 6,
    /// It has, and nothing can be done with it.
    BadInformation = 7,
}

/// One step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Rule(u32);

impl Rule {
    /// What the cache answers when it has no rule.
    pub(crate) const MISS: Self = Self(Kind::Miss as u32);

    #[inline(always)]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn of_kind(kind: Kind) -> Self {
        Self(kind as u32)
    }

    fn new(kind: Kind, number: u32, slot: u32) -> Self {
        Self(kind as u32 | number << NUMBER_SHIFT | slot << SLOT_SHIFT)
    }

    pub(crate) fn kind(self) -> Kind {
        match self.0 & KIND {
            0 => Kind::Miss,
            1 => Kind::StackPointer,
            2 => Kind::BasePointer,
            3 => Kind::Realigned,
            4 => Kind::End,
            5 => Kind::Special,
            6 => Kind::NoInformation,
            _ => Kind::BadInformation,
        }
    }

    /// Whether the CFA is a register and a number, the kinds that a walk takes without a call.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        (self.0 & KIND).wrapping_sub(1) < 2
    }

    /// Of a plain rule: whether that register is rsp.
    #[inline(always)]
    pub(crate) fn is_stack_pointer(self) -> bool {
        self.0 & KIND == Kind::StackPointer as u32
    }

    /// 8·n.
    #[inline(always)]
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.0 & NUMBER_MAX << NUMBER_SHIFT)
    }

    /// k.
    #[inline(always)]
    pub(crate) fn slot(self) -> u32 {
        self.0 >> SLOT_SHIFT
    }

    /// The rule of the row in `scratch`.
    pub(crate) fn of_row(scratch: &Scratch) -> Self {
        let row = &scratch.row;
        if row.ra == Find::Undefined {
            return Self::of_kind(Kind::End);
        }
        let special = Self::of_kind(Kind::Special);
        if scratch.is_signal || row.ra != Find::At(-8) || row.sp != Find::Unsaid {
            return special;
        }
        match row.cfa {
            Cfa::Register(register, offset) => {
                let kind = match u64::from(register) {
                    SP => Kind::StackPointer,
                    BP => Kind::BasePointer,
                    BX => return special,
                    _ => return Self::of_kind(Kind::BadInformation),
                };
                let slot = match row.bp {
                    Find::Unsaid | Find::Same => Some(0),
                    Find::At(at) => words(at.wrapping_neg(), SLOT_MAX).filter(|slot| *slot >= 2),
                    _ => None,
                };
                let (Some(number), Some(slot)) = (words(offset, NUMBER_MAX), slot) else { return special };
                // A slot below the stack pointer is a lie, or a red zone: have it checked.
                if kind == Kind::StackPointer && slot > number {
                    return special;
                }
                Self::new(kind, number, slot)
            }
            Cfa::Expression(cfa) => Self::realigned(cfa, row.bp).unwrap_or(special),
            Cfa::Unsaid => Self::of_kind(Kind::BadInformation),
        }
    }

    /// gcc's frames with a larger alignment than the caller's: CFA = the word below the saved rbp.
    fn realigned(cfa: Cursor, bp: Find) -> Option<Self> {
        let Find::AtExpression(bp) = bp else { return None };
        if register_offset(bp, BP, false)? != 0 {
            return None;
        }
        let offset = register_offset(cfa, BP, true)?;
        Some(Self::new(Kind::Realigned, words(offset.wrapping_neg(), NUMBER_MAX)?, 0))
    }

    /// Wrong on purpose, by the kind of rule: see `Unwinder::mutation`.
    #[cfg(feature = "mutation")]
    pub(crate) fn mutated(self, mutation: u8, is_signal: bool) -> Self {
        match (mutation, self.kind()) {
            (1, Kind::StackPointer) | (2, Kind::BasePointer) => Self(self.0 + (1 << NUMBER_SHIFT)),
            (3, Kind::StackPointer | Kind::BasePointer) if self.slot() != 0 => {
                Self(self.0 & !(SLOT_MAX << SLOT_SHIFT))
            }
            (4, Kind::End) => Self::of_kind(Kind::NoInformation),
            (5, Kind::Special) if is_signal => Self::of_kind(Kind::End),
            _ => self,
        }
    }
}

/// A number of bytes as words, if it is a whole one from 1 to `max`.
fn words(bytes: i64, max: u32) -> Option<u32> {
    let words = u32::try_from(bytes).ok()?;
    (words % 8 == 0 && words > 0 && words / 8 <= max).then_some(words / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;

    fn scratch_of(row: Row, is_signal: bool) -> Scratch {
        let mut scratch = Scratch::default();
        scratch.begin(is_signal);
        scratch.row = row;
        scratch
    }

    fn row(register: u64, offset: i64, bp: Find) -> Row {
        Row { cfa: Cfa::Register(register as u16, offset), bp, ra: Find::At(-8), ..Row::default() }
    }

    fn rule_of(row: Row) -> Rule {
        Rule::of_row(&scratch_of(row, false))
    }

    #[test]
    fn plain_rows_come_back_as_they_were() {
        for words in [1u64, 2, 3, 77, 4096, u64::from(NUMBER_MAX)] {
            for slot in [0u32, 2, 3, 100, SLOT_MAX] {
                let bp = if slot == 0 { Find::Unsaid } else { Find::At(-8 * i64::from(slot)) };
                for register in [SP, BP] {
                    let rule = rule_of(row(register, 8 * words as i64, bp));
                    if register == SP && u64::from(slot) > words {
                        assert_eq!(rule.kind(), Kind::Special);
                        continue;
                    }
                    assert!(rule.is_plain());
                    assert_eq!(rule.is_stack_pointer(), register == SP);
                    assert_eq!((rule.offset(), rule.slot()), (8 * words, slot));
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_looked_up_each_time() {
        let too_far = i64::from(NUMBER_MAX) * 8 + 8;
        for row in [
            row(SP, too_far, Find::Unsaid),
            row(SP, 12, Find::Unsaid),
            row(BP, -16, Find::Unsaid),
            row(BP, 16, Find::At(16)),
            row(BP, 16, Find::At(-8)),
            row(BP, 16, Find::At(-8 * i64::from(SLOT_MAX) - 8)),
            row(BP, 16, Find::Register(3)),
            Row { ra: Find::At(-16), ..row(SP, 16, Find::Unsaid) },
            Row { ra: Find::Unsaid, ..row(SP, 16, Find::Unsaid) },
            Row { sp: Find::Value(0), ..row(SP, 16, Find::Unsaid) },
        ] {
            assert_eq!(rule_of(row).kind(), Kind::Special, "{row:?}");
        }
        assert_eq!(
            Rule::of_row(&scratch_of(row(SP, 16, Find::Unsaid), true)).kind(),
            Kind::Special,
            "signal"
        );
    }

    #[test]
    fn ends_and_unknown_registers() {
        let end = Row { ra: Find::Undefined, ..row(3, 16, Find::Unsaid) };
        assert_eq!(rule_of(end).kind(), Kind::End);
        assert_eq!(rule_of(row(3, 16, Find::Unsaid)).kind(), Kind::Special, "rbx");
        assert_eq!(rule_of(row(12, 16, Find::Unsaid)).kind(), Kind::BadInformation);
        assert_eq!(
            rule_of(Row { cfa: Cfa::Unsaid, ..row(SP, 8, Find::Unsaid) }).kind(),
            Kind::BadInformation
        );
    }

    #[test]
    fn a_realigned_frame_fits() {
        static CFA: [u8; 3] = [0x76, 0x78, 0x06];
        static SAVED: [u8; 2] = [0x76, 0];
        let at = crate::cursor::tests::over;
        let row = Row {
            cfa: Cfa::Expression(at(&CFA)),
            bp: Find::AtExpression(at(&SAVED)),
            ra: Find::At(-8),
            ..Row::default()
        };
        let rule = rule_of(row);
        assert_eq!((rule.kind(), rule.offset()), (Kind::Realigned, 8));
        assert_eq!(rule_of(Row { bp: Find::Unsaid, ..row }).kind(), Kind::Special);
    }
}
