//! Runs the call frame instructions of one function up to one address (DWARF 5, 6.4.2), keeping only what a walk
//! needs: the CFA and how rbp, rsp and the return address are found, and rbx and r14 where they are asked for.

use crate::cursor::Cursor;
use crate::x86_64::{BP, BX, R14, RA, SP};

/// How deep `DW_CFA_remember_state` may nest; compilers use 1.
const REMEMBERED_MAX: usize = 8;

/// Where to find a register's value in the calling frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, u8)]
pub(crate) enum Find {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// It is what it is in this frame.
    Same,
    /// It cannot be known; for the return address: there is no caller.
    Undefined,
    /// In memory at CFA + n.
    At(i64),
    /// It is CFA + n.
    Value(i64),
    /// In another register of this frame.
    Register(u16),
    /// In memory at the address that an expression gives.
    AtExpression(Cursor),
    /// It is what an expression gives.
    ValueExpression(Cursor),
}

/// How the CFA is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, u8)]
pub(crate) enum Cfa {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// A register and an offset in bytes.
    Register(u16, i64),
    /// An expression's value.
    Expression(Cursor),
}

/// One row of the unwind table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Row {
    pub(crate) cfa: Cfa,
    pub(crate) bp: Find,
    pub(crate) bx: Find,
    pub(crate) r14: Find,
    pub(crate) sp: Find,
    pub(crate) ra: Find,
}

impl Row {
    /// Remembers how `register` is found, if a walk needs it.
    fn set(&mut self, register: u64, find: Find) {
        match register {
            BP => self.bp = find,
            BX => self.bx = find,
            R14 => self.r14 = find,
            SP => self.sp = find,
            RA => self.ra = find,
            _ => {}
        }
    }

    fn restore(&mut self, register: u64, initial: &Self) {
        match register {
            BP => self.bp = initial.bp,
            BX => self.bx = initial.bx,
            R14 => self.r14 = initial.r14,
            SP => self.sp = initial.sp,
            RA => self.ra = initial.ra,
            _ => {}
        }
    }
}

/// Room to run instructions and expressions in, outside of the stack. Zero is a valid value of all of it.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The row that was found last.
    pub(crate) row: Row,
    /// Whether that row's function is a signal trampoline.
    pub(crate) is_signal: bool,
    initial: Row,
    remembered: [Row; REMEMBERED_MAX],
    /// The values on an expression's stack.
    pub(crate) values: [u64; 32],
}

impl Scratch {
    pub(crate) fn begin(&mut self, is_signal: bool) {
        self.row = Row::default();
        self.initial = Row::default();
        self.is_signal = is_signal;
    }

    /// What the common instructions gave is what `DW_CFA_restore` goes back to.
    pub(crate) fn keep_initial(&mut self) {
        self.initial = self.row;
    }
}

/// What the instructions' numbers mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    pub(crate) code: u64,
    pub(crate) data: i64,
    /// The encoding of `DW_CFA_set_loc`'s address.
    pub(crate) address_encoding: u8,
}

/// Runs `instructions`, which begin to hold at `location`, until the next row would begin above `target`. The result
/// is in `scratch.row`. `None` when they make no sense.
pub(crate) fn run(
    mut instructions: Cursor,
    factors: Factors,
    mut location: u64,
    target: u64,
    scratch: &mut Scratch,
) -> Option<()> {
    let mut remembered = 0usize;
    while instructions.len() > 0 {
        let byte = instructions.u8()?;
        let low = u64::from(byte & 0x3f);
        let delta = match byte >> 6 {
            1 => low,
            2 => {
                let n = instructions.uleb()?;
                scratch.row.set(low, Find::At((n as i64).wrapping_mul(factors.data)));
                continue;
            }
            3 => {
                let initial = scratch.initial;
                scratch.row.restore(low, &initial);
                continue;
            }
            _ => match byte {
                0x01 => {
                    let to = instructions.encoded_pointer(factors.address_encoding)?;
                    if to < location {
                        return None;
                    }
                    if to > target {
                        return Some(());
                    }
                    location = to;
                    continue;
                }
                0x02 => u64::from(instructions.u8()?),
                0x03 => u64::from(instructions.u16()?),
                0x04 => u64::from(instructions.u32()?),
                0x0a => {
                    *scratch.remembered.get_mut(remembered)? = scratch.row;
                    remembered += 1;
                    continue;
                }
                0x0b => {
                    remembered = remembered.checked_sub(1)?;
                    scratch.row = *scratch.remembered.get(remembered)?;
                    continue;
                }
                _ => {
                    change_row(byte, &mut instructions, factors, scratch)?;
                    continue;
                }
            },
        };
        location = location.checked_add(delta.checked_mul(factors.code)?)?;
        if location > target {
            break;
        }
    }
    Some(())
}

/// The instructions that change the row in place.
fn change_row(byte: u8, instructions: &mut Cursor, factors: Factors, scratch: &mut Scratch) -> Option<()> {
    let row = &mut scratch.row;
    match byte {
        // DW_CFA_nop
        0x00 => {}
        // DW_CFA_offset_extended, _sf; DW_CFA_GNU_negative_offset_extended
        0x05 => {
            let register = instructions.uleb()?;
            let n = instructions.uleb()? as i64;
            row.set(register, Find::At(n.wrapping_mul(factors.data)));
        }
        0x11 => {
            let register = instructions.uleb()?;
            let n = instructions.sleb()?;
            row.set(register, Find::At(n.wrapping_mul(factors.data)));
        }
        0x2f => {
            let register = instructions.uleb()?;
            let n = instructions.uleb()? as i64;
            row.set(register, Find::At(n.wrapping_mul(factors.data).wrapping_neg()));
        }
        // DW_CFA_restore_extended
        0x06 => {
            let register = instructions.uleb()?;
            let initial = scratch.initial;
            row.restore(register, &initial);
        }
        // DW_CFA_undefined, DW_CFA_same_value, DW_CFA_register
        0x07 => row.set(instructions.uleb()?, Find::Undefined),
        0x08 => row.set(instructions.uleb()?, Find::Same),
        0x09 => {
            let register = instructions.uleb()?;
            let other = instructions.uleb()?;
            row.set(register, Find::Register(u16::try_from(other).ok()?));
        }
        // DW_CFA_def_cfa, _sf
        0x0c => {
            let register = u16::try_from(instructions.uleb()?).ok()?;
            row.cfa = Cfa::Register(register, instructions.uleb()? as i64);
        }
        0x12 => {
            let register = u16::try_from(instructions.uleb()?).ok()?;
            row.cfa = Cfa::Register(register, instructions.sleb()?.wrapping_mul(factors.data));
        }
        // DW_CFA_def_cfa_register, _offset, _offset_sf: only after a register and offset
        0x0d => {
            let register = u16::try_from(instructions.uleb()?).ok()?;
            let Cfa::Register(_, offset) = row.cfa else { return None };
            row.cfa = Cfa::Register(register, offset);
        }
        0x0e => {
            let offset = instructions.uleb()? as i64;
            let Cfa::Register(register, _) = row.cfa else { return None };
            row.cfa = Cfa::Register(register, offset);
        }
        0x13 => {
            let offset = instructions.sleb()?.wrapping_mul(factors.data);
            let Cfa::Register(register, _) = row.cfa else { return None };
            row.cfa = Cfa::Register(register, offset);
        }
        // DW_CFA_def_cfa_expression, DW_CFA_expression, DW_CFA_val_expression
        0x0f => row.cfa = Cfa::Expression(expression(instructions)?),
        0x10 => {
            let register = instructions.uleb()?;
            row.set(register, Find::AtExpression(expression(instructions)?));
        }
        0x16 => {
            let register = instructions.uleb()?;
            row.set(register, Find::ValueExpression(expression(instructions)?));
        }
        // DW_CFA_val_offset, _sf
        0x14 => {
            let register = instructions.uleb()?;
            let n = instructions.uleb()? as i64;
            row.set(register, Find::Value(n.wrapping_mul(factors.data)));
        }
        0x15 => {
            let register = instructions.uleb()?;
            let n = instructions.sleb()?;
            row.set(register, Find::Value(n.wrapping_mul(factors.data)));
        }
        // DW_CFA_GNU_args_size says nothing of where the frame ends.
        0x2e => {
            instructions.uleb()?;
        }
        _ => return None,
    }
    Some(())
}

fn expression(instructions: &mut Cursor) -> Option<Cursor> {
    let len = instructions.uleb()?;
    instructions.split(len)
}
