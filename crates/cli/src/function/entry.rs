//! What has to be done so that a jump can stand at a function's entry.
//!
//! The jump has five bytes. The instructions that lie there are moved, whole, to an *island* near the module, behind
//! what calls the recorder:
//!
//! ```text
//! entry   jmp island          island   (calls the recorder)
//! rest    …  ◀──────────┐              moved instructions
//!                       └──────────── jmp rest
//! ```
//!
//! Operands relative to the instruction pointer and jumps are made to reach what they reached before; a call pushes the
//! address that it pushed before, and jumps. Until the island has its place, such operands are [`Fixup`]s. A jump from
//! anywhere in the module into the first bytes, but for one to the entry itself from another function (a tail call),
//! would land in the middle of the new jump, so the whole module is looked through for one, and its code and its data for the
//! address of such a place, or the distance to one.
//!
//! An `endbr64` stays at its place, and the jump comes behind it.

use iced_x86::{
    Code as OpCode, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register,
};

use super::code::Code;
use super::refusal::Refusal;
use super::{distance, pointer};

/// How many bytes the jump has.
pub(crate) const JUMP_BYTES: u64 = 5;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// How an operand is made from an address once the island has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixupKind {
    /// Its distance from the end of the instruction.
    Distance,
    /// Its lower 32 bits.
    Low,
    /// Its upper 32 bits.
    High,
}

/// Four bytes of the moved instructions that depend on places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixup {
    pub(crate) kind: FixupKind,
    /// Where the four bytes are, from the first moved byte.
    pub(crate) at: u16,
    /// Where their instruction ends.
    pub(crate) end: u16,
    /// The address, as the file states it.
    pub(crate) target: u64,
}

/// From which byte on the moved code stands for which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The first byte for which it holds.
    pub(crate) at: u16,
    /// How many words more than there are on the stack.
    pub(crate) pushed: u16,
    /// The address that it stands for, as the file states it.
    pub(crate) original: u64,
}

/// An entry that can be patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Where the jump comes, as the file states it.
    pub(crate) at: u64,
    /// What lies there: whole instructions.
    pub(crate) original: Vec<u8>,
    /// What comes to the island, with zeroes where there are fixups.
    pub(crate) code: Vec<u8>,
    pub(crate) fixups: Vec<Fixup>,
    pub(crate) steps: Vec<Step>,
}

impl Moved {
    /// In place of the function, behind what calls the recorder: it returns true.
    pub(crate) fn answering_yes(self) -> Self {
        // mov eax, 1; ret
        let code = vec![0xb8, 1, 0, 0, 0, 0xc3];
        let steps = vec![Step { at: 0, pushed: 0, original: self.at }];
        Self { code, fixups: Vec::new(), steps, ..self }
    }
}

/// Moves the first instructions of the function in a range.
pub(crate) fn move_entry(code: &Code, (start, end): (u64, u64)) -> Result<Moved, Refusal> {
    let bytes = code.from(start);
    if bytes.is_empty() {
        return Err(Refusal::NoCode);
    }
    // Behind the mark where a jump still fits, else with it.
    let has_mark = bytes.starts_with(&ENDBR64);
    let behind_mark =
        if has_mark { Some(move_at(code, start + ENDBR64.len() as u64, (start, end))) } else { None };
    match behind_mark {
        Some(Ok(moved)) => Ok(moved),
        Some(Err(refusal)) => move_at(code, start, (start, end)).map_err(|_| refusal),
        None => move_at(code, start, (start, end)),
    }
}

fn move_at(code: &Code, at: u64, (start, end): (u64, u64)) -> Result<Moved, Refusal> {
    let limit = code.next_start(start).unwrap_or(u64::MAX);
    let bytes = code.from(at);
    let mut moving = Moving { code: Vec::new(), fixups: Vec::new(), steps: Vec::new() };
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut goes_on = true;
    while decoder.ip() < at + JUMP_BYTES {
        let here = decoder.ip();
        if !decoder.can_decode() {
            return Err(Refusal::TooShort(end - start));
        }
        decoder.decode_out(&mut instruction);
        if here >= end || decoder.ip() > limit {
            if here < end && limit < end {
                return Err(Refusal::Overlapped(limit));
            }
            // Behind a short function there may be padding, which nobody needs.
            let is_padding = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if here < end || !is_padding || decoder.ip() > limit || goes_on {
                return Err(Refusal::TooShort(end - start));
            }
            continue;
        }
        if instruction.is_invalid() {
            return Err(Refusal::Unknown(here));
        }
        if goes_on && traps(&instruction) {
            return Err(Refusal::Trap(here));
        }
        if goes_on {
            let offset = usize::try_from(here - at).unwrap_or(0);
            let own = bytes.get(offset..offset + instruction.len()).unwrap_or_default();
            moving.add(&instruction, own, decoder.ip() < at + JUMP_BYTES)?;
            goes_on = !ends_flow(&instruction);
        }
    }
    let behind = decoder.ip();
    if goes_on {
        moving.step(behind, 0);
        moving.jump(behind);
    }
    for branch in code.branches_into(start, behind) {
        let is_own = branch.source >= start && branch.source < end;
        if branch.target > start && branch.target != at || branch.target == at && at != start && is_own {
            return Err(Refusal::JumpedInto { from: branch.source, to: branch.target });
        }
        if is_own {
            return Err(Refusal::Loop(branch.source));
        }
    }
    if let Some(pointer) = code.pointers_into(start + 1, behind).first() {
        return Err(Refusal::PointedInto { place: pointer.place, to: pointer.target });
    }
    if let Some(named) = code.named_into(start + 1, behind).first() {
        return Err(Refusal::NamedInto { from: named.place, to: named.target });
    }
    for lead in distance::leads(code, (start, end)) {
        match lead.target {
            target if target == start => return Err(Refusal::LoopByTable(lead.place)),
            target if target < behind => {
                return Err(Refusal::PointedInto { place: lead.place, to: target });
            }
            _ => {}
        }
    }
    if let Some(place) = pointer::label_at_start(code.pointers_into(start, end), start) {
        return Err(Refusal::LoopByTable(place));
    }
    let length = usize::try_from(behind - at).unwrap_or(0);
    let original = bytes.get(..length).unwrap_or_default().to_vec();
    Ok(Moved { at, original, code: moving.code, fixups: moving.fixups, steps: moving.steps })
}

/// Whether it hands over to a handler, which may look where it happened.
fn traps(instruction: &Instruction) -> bool {
    let is_exception = instruction.flow_control() == FlowControl::Exception;
    is_exception || instruction.flow_control() == FlowControl::Interrupt
}

/// Whether what follows is not reached from there.
fn ends_flow(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    )
}

struct Moving {
    code: Vec<u8>,
    fixups: Vec<Fixup>,
    steps: Vec<Step>,
}

impl Moving {
    fn here(&self) -> u16 {
        u16::try_from(self.code.len()).unwrap_or(u16::MAX)
    }

    fn step(&mut self, original: u64, pushed: u16) {
        self.steps.push(Step { at: self.here(), pushed, original });
    }

    /// Appends a place for four bytes; `behind`: how many bytes of the instruction follow.
    fn fix(&mut self, kind: FixupKind, target: u64, behind: u16) {
        let at = self.here();
        self.fixups.push(Fixup { kind, at, end: at + 4 + behind, target });
        self.code.extend([0; 4]);
    }

    fn jump(&mut self, target: u64) {
        self.code.push(0xe9);
        self.fix(FixupKind::Distance, target, 0);
    }

    /// Pushes a return address as the call did that ends there.
    fn push_return(&mut self, call: u64, address: u64) {
        self.code.push(0x68);
        self.fix(FixupKind::Low, address, 0);
        self.step(call, 1);
        self.code.extend([0xc7, 0x44, 0x24, 0x04]);
        self.fix(FixupKind::High, address, 0);
    }

    fn add(&mut self, instruction: &Instruction, bytes: &[u8], is_short: bool) -> Result<(), Refusal> {
        let (ip, next) = (instruction.ip(), instruction.next_ip());
        self.step(ip, 0);
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                match instruction.condition_code() {
                    ConditionCode::None => {
                        // By a counter, which knows short distances only: over a jump that is not taken otherwise.
                        let (_, opcode) = bytes.split_last().ok_or(Refusal::Unknown(ip))?;
                        self.code.extend(opcode);
                        self.code.extend([0x02, 0xeb, 0x05]);
                        self.jump(target);
                    }
                    condition => {
                        self.code.extend([0x0f, 0x80 + (condition as u8 - ConditionCode::o as u8)]);
                        self.fix(FixupKind::Distance, target, 0);
                    }
                }
                Ok(())
            }
            FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
                self.jump(instruction.near_branch_target());
                Ok(())
            }
            FlowControl::Call if instruction.code() == OpCode::Call_rel32_64 => {
                if is_short {
                    return Err(Refusal::ShortCall);
                }
                self.push_return(ip, next);
                self.jump(instruction.near_branch_target());
                Ok(())
            }
            FlowControl::IndirectCall if instruction.code() == OpCode::Call_rm64 => {
                if is_short {
                    return Err(Refusal::ShortCall);
                }
                let uses_stack =
                    [instruction.op0_register(), instruction.memory_base()].contains(&Register::RSP);
                if uses_stack {
                    return Err(Refusal::StackCall);
                }
                self.push_return(ip, next);
                // The same operand, of a jump: another number in the byte behind the opcode.
                let opcode = bytes.iter().position(|byte| *byte == 0xff).ok_or(Refusal::Unknown(ip))?;
                let mut bytes = bytes.to_vec();
                let operand = bytes.get_mut(opcode + 1).ok_or(Refusal::Unknown(ip))?;
                *operand = *operand & 0xc7 | 4 << 3;
                self.copy(instruction, &bytes);
                Ok(())
            }
            FlowControl::Call | FlowControl::IndirectCall => match instruction.mnemonic() {
                Mnemonic::Syscall | Mnemonic::Sysenter => {
                    self.copy(instruction, bytes);
                    Ok(())
                }
                _ => Err(Refusal::Unknown(ip)),
            },
            FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
                Err(Refusal::Transaction)
            }
            _ if instruction.is_jmp_far() => Err(Refusal::Unknown(ip)),
            _ => {
                self.copy(instruction, bytes);
                Ok(())
            }
        }
    }

    /// Appends an instruction; an operand relative to its end is fixed up.
    fn copy(&mut self, instruction: &Instruction, bytes: &[u8]) {
        let begin = self.here();
        self.code.extend(bytes);
        if instruction.is_ip_rel_memory_operand()
            && let Some(displacement) = displacement_offset(bytes, instruction.ip())
        {
            let at = begin + displacement;
            if let Some(place) = self.code.get_mut(usize::from(at)..usize::from(at) + 4) {
                place.fill(0);
            }
            let target = instruction.ip_rel_memory_address();
            self.fixups.push(Fixup { kind: FixupKind::Distance, at, end: self.here(), target });
        }
    }
}

/// Where an instruction's displacement is in its bytes.
fn displacement_offset(bytes: &[u8], ip: u64) -> Option<u16> {
    let mut decoder = Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let offsets = decoder.get_constant_offsets(&instruction);
    (offsets.displacement_size() == 4).then(|| offsets.displacement_offset() as u16)
}

#[cfg(test)]
mod tests;
