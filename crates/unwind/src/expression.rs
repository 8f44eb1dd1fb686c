//! Computes DWARF expressions (DWARF 5, 2.5) as unwind information uses them: over rsp, rbp, the code address and
//! words of the stack.

use crate::End;
use crate::cursor::Cursor;
use crate::x86_64::{BP, BX, RA, SP};

/// No expression that a compiler or an assembly writer made comes near this; it ends loops.
const OPERATIONS_MAX: usize = 1000;

/// The registers whose values are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
    /// Only where it was asked for.
    pub(crate) bx: Option<u64>,
}

impl Registers {
    /// A register by its DWARF number; `None` if its value is not known.
    pub(crate) fn get(&self, register: u64) -> Option<u64> {
        match register {
            BP => Some(self.bp),
            BX => self.bx,
            SP => Some(self.sp),
            RA => Some(self.pc),
            _ => None,
        }
    }
}

struct Stack<'a> {
    values: &'a mut [u64; 32],
    len: usize,
}

impl Stack<'_> {
    fn push(&mut self, value: u64) -> Option<()> {
        *self.values.get_mut(self.len)? = value;
        self.len += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.len = self.len.checked_sub(1)?;
        self.values.get(self.len).copied()
    }

    fn pick(&self, depth: usize) -> Option<u64> {
        self.values.get(self.len.checked_sub(1)?.checked_sub(depth)?).copied()
    }
}

/// The value of an expression.
///
/// `initial` is what lies on its stack at the start (the CFA, for a register's rule). `load` reads a word, or refuses.
///
/// # Errors
/// [`End::CutBadInformation`] if it needs what is not known or makes no sense, [`End::CutBadStack`] if a read was
/// refused.
pub(crate) fn evaluate(
    bytes: Cursor,
    registers: &Registers,
    initial: Option<u64>,
    values: &mut [u64; 32],
    load: &mut dyn FnMut(u64) -> Option<u64>,
) -> Result<u64, End> {
    let mut stack = Stack { values, len: 0 };
    if let Some(value) = initial {
        stack.push(value).ok_or(End::CutBadInformation)?;
    }
    let mut refused = false;
    let value = run(bytes, registers, &mut stack, &mut |address| {
        let word = load(address);
        refused |= word.is_none();
        word
    });
    match value {
        Some(value) => Ok(value),
        None if refused => Err(End::CutBadStack),
        None => Err(End::CutBadInformation),
    }
}

fn run(
    whole: Cursor,
    registers: &Registers,
    stack: &mut Stack<'_>,
    load: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let mut bytes = whole;
    for _ in 0..OPERATIONS_MAX {
        if bytes.len() == 0 {
            return stack.pop();
        }
        let operation = bytes.u8()?;
        let value = match operation {
            // DW_OP_addr, const1u … const8s, constu, consts
            0x03 | 0x0e | 0x0f => bytes.u64()?,
            0x08 => u64::from(bytes.u8()?),
            0x09 => i64::from(bytes.u8()? as i8) as u64,
            0x0a => u64::from(bytes.u16()?),
            0x0b => i64::from(bytes.u16()? as i16) as u64,
            0x0c => u64::from(bytes.u32()?),
            0x0d => i64::from(bytes.u32()? as i32) as u64,
            0x10 => bytes.uleb()?,
            0x11 => bytes.sleb()? as u64,
            // DW_OP_deref
            0x06 => load(stack.pop()?)?,
            // DW_OP_dup, over, pick
            0x12 => stack.pick(0)?,
            0x14 => stack.pick(1)?,
            0x15 => stack.pick(usize::from(bytes.u8()?))?,
            // DW_OP_drop
            0x13 => {
                stack.pop()?;
                continue;
            }
            // DW_OP_swap, rot
            0x16 => {
                let (top, second) = (stack.pop()?, stack.pop()?);
                stack.push(top)?;
                second
            }
            0x17 => {
                let (top, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
                stack.push(top)?;
                stack.push(third)?;
                second
            }
            // DW_OP_abs, neg, not, plus_uconst
            0x19 => (stack.pop()? as i64).unsigned_abs(),
            0x1f => stack.pop()?.wrapping_neg(),
            0x20 => !stack.pop()?,
            0x23 => stack.pop()?.wrapping_add(bytes.uleb()?),
            // DW_OP_and … DW_OP_xor, and the comparisons
            0x1a..=0x1e | 0x21 | 0x22 | 0x24..=0x27 | 0x29..=0x2e => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                binary(operation, left, right)?
            }
            // DW_OP_bra, skip
            0x28 => {
                let offset = i64::from(bytes.u16()? as i16);
                if stack.pop()? != 0 {
                    bytes.jump(offset, &whole)?;
                }
                continue;
            }
            0x2f => {
                let offset = i64::from(bytes.u16()? as i16);
                bytes.jump(offset, &whole)?;
                continue;
            }
            // DW_OP_lit0 … lit31, DW_OP_breg0 … breg31, DW_OP_bregx
            0x30..=0x4f => u64::from(operation - 0x30),
            0x70..=0x8f => {
                let offset = bytes.sleb()?;
                registers.get(u64::from(operation - 0x70))?.wrapping_add_signed(offset)
            }
            0x92 => {
                let register = bytes.uleb()?;
                registers.get(register)?.wrapping_add_signed(bytes.sleb()?)
            }
            // DW_OP_nop
            0x96 => continue,
            _ => return None,
        };
        stack.push(value)?;
    }
    None
}

fn binary(operation: u8, left: u64, right: u64) -> Option<u64> {
    let (signed_left, signed_right) = (left as i64, right as i64);
    let shift = u32::try_from(right).ok().filter(|bits| *bits < 64);
    Some(match operation {
        0x1a => left & right,
        0x1b => signed_left.checked_div(signed_right)? as u64,
        0x1c => left.wrapping_sub(right),
        0x1d => left.checked_rem(right)?,
        0x1e => left.wrapping_mul(right),
        0x21 => left | right,
        0x22 => left.wrapping_add(right),
        0x24 => shift.map_or(0, |bits| left << bits),
        0x25 => shift.map_or(0, |bits| left >> bits),
        0x26 => (signed_left >> shift.unwrap_or(63)) as u64,
        0x27 => left ^ right,
        0x29 => u64::from(signed_left == signed_right),
        0x2a => u64::from(signed_left >= signed_right),
        0x2b => u64::from(signed_left > signed_right),
        0x2c => u64::from(signed_left <= signed_right),
        0x2d => u64::from(signed_left < signed_right),
        0x2e => u64::from(signed_left != signed_right),
        _ => return None,
    })
}

/// The offset of the single `DW_OP_breg` of this register that the expression is, with a
/// `DW_OP_deref` behind it if `deref`.
pub(crate) fn register_offset(mut bytes: Cursor, register: u64, deref: bool) -> Option<i64> {
    if u64::from(bytes.u8()?) != 0x70 + register {
        return None;
    }
    let offset = bytes.sleb()?;
    if deref && bytes.u8()? != 0x06 {
        return None;
    }
    (bytes.len() == 0).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(bytes: &'static [u8]) -> Cursor {
        crate::cursor::tests::over(bytes)
    }

    fn value_of(bytes: &'static [u8]) -> Result<u64, End> {
        let registers = Registers { pc: 0x40_100c, sp: 0x7000, bp: 0x7100, bx: None };
        let load = &mut |address| (address == 0x70f8).then_some(0x7200);
        evaluate(over(bytes), &registers, None, &mut [0; 32], load)
    }

    #[test]
    fn a_procedure_linkage_stub_at_both_of_its_places() {
        // rsp + 8 + ((rip & 15) >= 11) << 3
        let stub = &[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(value_of(stub), Ok(0x7010));
    }

    #[test]
    fn a_realigned_frame() {
        let expression = &[0x76, 0x78, 0x06];
        assert_eq!(value_of(expression), Ok(0x7200));
        assert_eq!(register_offset(over(expression), BP, true), Some(-8));
        assert_eq!(register_offset(over(expression), BP, false), None);
        assert_eq!(register_offset(over(expression), SP, true), None);
    }

    #[test]
    fn what_is_unknown_or_refused_is_told_apart() {
        assert_eq!(value_of(&[0x73, 0]), Err(End::CutBadInformation), "rbx");
        assert_eq!(value_of(&[0x76, 0, 0x06]), Err(End::CutBadStack), "a word that may not be read");
        assert_eq!(value_of(&[0x22]), Err(End::CutBadInformation), "nothing to add");
        assert_eq!(value_of(&[0x2f, 0xfd, 0xff]), Err(End::CutBadInformation), "a loop");
        assert_eq!(value_of(&[]), Err(End::CutBadInformation), "no value");
        assert_eq!(value_of(&[0x31, 0x30, 0x1b]), Err(End::CutBadInformation), "a division by 0");
    }
}
