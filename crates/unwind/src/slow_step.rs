//! The steps that need more than a known rule and two words: rules that are not known yet, expressions, signal frames,
//! changes of stacks, and frame pointers where there is no unwind information.

#![expect(unsafe_code, reason = "a walk reads the stack of the thread that it runs on")]

use crate::eh_frame::{self, Found};
use crate::expression::{self, Registers};
use crate::memory::{
    EndCheck, Entry, FRAME_POINTER, INTERRUPTED, SIGNAL, STEP_BARRIER, STEP_REALIGNED, STEP_UNTRUSTED,
};
use crate::row::{Cfa, Find, Scratch};
use crate::unwinder::{FRAME_NEAR_BYTES, Stop, Unwinder, word};
use crate::x86_64::{ADDRESS_END, ADDRESS_MIN, BX, Kind, RED_ZONE, Rule};
use crate::{CodeMap, End};

impl Entry {
    fn is_interrupted(&self) -> bool {
        self.address & INTERRUPTED != 0
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.step & STEP_UNTRUSTED == 0
    }

    /// The address of the instruction that the frame is in: a return address may be the next function's first.
    fn instruction(&self) -> u64 {
        self.pc().wrapping_sub(u64::from(!self.is_interrupted()))
    }
}

impl<M: CodeMap> Unwinder<'_, M> {
    /// Reads the return address below `cfa`, and rbp if it was saved.
    ///
    /// # Safety
    /// Both slots are aligned and readable.
    unsafe fn arrive(frame: &Entry, cfa: u64, slot: u32, flags: u32) -> Result<Entry, Stop> {
        // SAFETY: as the caller promises.
        let pc = unsafe { word(cfa.wrapping_sub(8)) };
        // The unchanged rbp reads the return address's slot too, so that no branch is needed later.
        let slot = slot.max(1);
        // SAFETY: as the caller promises.
        let saved = unsafe { word(cfa.wrapping_sub(8 * u64::from(slot))) };
        if pc.wrapping_sub(1) >= ADDRESS_END - 1 {
            return Err(Stop::redo(if pc == 0 { End::Complete } else { End::CutBadStack }));
        }
        let bp = if slot == 1 { frame.bp } else { saved };
        Ok(Entry { address: pc, node: 0, step: slot | flags | frame.step & STEP_UNTRUSTED, sp: cfa, bp })
    }

    /// All steps that are not plain ones with a known rule to a place nearby.
    ///
    /// # Safety
    /// As for [`Self::step_quick`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn step_slow(
        &self,
        scratch: &mut Scratch,
        frame: &mut Entry,
        rule: Rule,
        cached: bool,
    ) -> Result<Entry, Stop> {
        let rule = if rule.kind() == Kind::Miss {
            // SAFETY: as the caller promises.
            unsafe { self.rule_slow(scratch, frame, cached) }
        } else {
            rule
        };
        match rule.kind() {
            Kind::StackPointer | Kind::BasePointer => {
                let base = if rule.is_stack_pointer() { frame.sp } else { frame.bp };
                let cfa = base.wrapping_add(rule.offset());
                let flags = self.go_to(frame, cfa, rule.slot().max(1))?;
                // SAFETY: `go_to` found the slots readable.
                unsafe { Self::arrive(frame, cfa, rule.slot(), flags) }
            }
            Kind::Realigned => {
                let at = frame.bp.wrapping_sub(rule.offset());
                let is_in_frame = |address: u64| {
                    address.wrapping_sub(frame.sp) < FRAME_NEAR_BYTES
                        && address & 7 == 0
                        && frame.is_trusted()
                };
                if is_in_frame(at) && is_in_frame(frame.bp) {
                    // SAFETY: it is aligned, and lies in the frame that `frame` is the state of.
                    let cfa = unsafe { word(at) };
                    if self.go_to(frame, cfa, 1)? == 0 {
                        // SAFETY: `go_to` found the slot readable.
                        let mut caller = unsafe { Self::arrive(frame, cfa, 0, STEP_REALIGNED) }?;
                        // SAFETY: as for `at`.
                        caller.bp = unsafe { word(frame.bp) };
                        caller.step = STEP_REALIGNED | (rule.offset() / 8) as u32;
                        return Ok(caller);
                    }
                }
                // SAFETY: as the caller promises.
                unsafe { self.find_row_slow(scratch, frame) }?;
                self.step_by_row(scratch, frame, None)
            }
            Kind::Special => {
                // SAFETY: as the caller promises.
                unsafe { self.find_row_slow(scratch, frame) }?;
                self.step_by_row(scratch, frame, None)
            }
            Kind::End => Err(Stop::always(End::Complete)),
            Kind::BadInformation => Err(Stop::always(End::CutBadInformation)),
            // SAFETY: as the caller promises.
            Kind::NoInformation | Kind::Miss => unsafe { self.step_by_frame_pointer(frame) },
        }
    }

    /// Reads the unwind information for a frame's address, and keeps the rule.
    ///
    /// # Safety
    /// As for [`Self::step_quick`].
    #[inline(never)]
    unsafe fn rule_slow(&self, scratch: &mut Scratch, frame: &Entry, cached: bool) -> Rule {
        // A coroutine's start routine may begin right behind a function that has unwind information.
        let rule = if !frame.is_interrupted() && self.map.is_coroutine_start(frame.pc()) {
            Rule::of_kind(Kind::End)
        } else {
            // SAFETY: as the caller promises.
            match unsafe { self.find_row(scratch, frame) } {
                Some(Found::Row) => Rule::of_row(scratch),
                Some(Found::Nothing) => Rule::of_kind(Kind::NoInformation),
                Some(Found::Bad) => Rule::of_kind(Kind::BadInformation),
                // NOTE: not kept, since a library may be loaded here later, and that raises no generation.
                None => return Rule::of_kind(Kind::NoInformation),
            }
        };
        #[cfg(feature = "mutation")]
        let rule = rule.mutated(self.mutation, scratch.is_signal);
        // The same address stands for another row when it is not a return address; those are rare enough.
        if cached && !frame.is_interrupted() {
            self.cache.insert(frame.pc(), rule, self.generation, self.live_generation);
        }
        rule
    }

    /// `None` if the address is in no module.
    ///
    /// # Safety
    /// As for [`Self::step_quick`].
    pub(crate) unsafe fn find_row(&self, scratch: &mut Scratch, frame: &Entry) -> Option<Found> {
        let module = self.map.find(frame.instruction())?;
        // SAFETY: the frame is live, so its module stays loaded, and `CodeMap` says what is where.
        Some(unsafe { eh_frame::find_row(&module, frame.instruction(), scratch) })
    }

    /// Whether the walk may go from `frame` to `cfa` and read the words from `cfa - 8 · slot` up. The result is what
    /// to add to the step: a barrier if the answer may change.
    fn go_to(&self, frame: &Entry, cfa: u64, slot: u32) -> Result<u32, Stop> {
        let bad = Err(Stop::redo(End::CutBadStack));
        let lowest = cfa.wrapping_sub(8 * u64::from(slot));
        if cfa & 7 != 0 || !(ADDRESS_MIN..ADDRESS_END).contains(&lowest) {
            return bad;
        }
        if frame.is_trusted() && cfa.wrapping_sub(frame.sp).wrapping_sub(8) < FRAME_NEAR_BYTES {
            return Ok(0);
        }
        let here = self.map.stack_bounds(frame.sp);
        if let Some((low, high)) = here
            && cfa > low
            && cfa <= high
        {
            return if cfa > frame.sp && lowest >= low { Ok(0) } else { bad };
        }
        if !frame.is_trusted() {
            return bad;
        }
        // Another stack: what runs coroutines, or a function on a stack of its own, restores rbp and rsp by rules.
        match self.map.stack_bounds(cfa.wrapping_sub(8)) {
            Some((low, _)) if lowest >= low => Ok(0),
            Some(_) => bad,
            None if self.map.is_readable(cfa.wrapping_sub(8)) && self.map.is_readable(lowest) => {
                Ok(STEP_BARRIER)
            }
            None => bad,
        }
    }

    /// Reads a word that a rule with an expression, or a saved register at a strange place, asks for.
    pub(crate) fn load(&self, frame: &Entry, address: u64) -> Option<u64> {
        if address & 7 != 0 || !(ADDRESS_MIN..ADDRESS_END).contains(&address) {
            return None;
        }
        let is_near = address.wrapping_sub(frame.sp.wrapping_sub(RED_ZONE)) < FRAME_NEAR_BYTES;
        if !(is_near && frame.is_trusted()) {
            match self.map.stack_bounds(frame.sp) {
                Some((low, high)) if address >= low && address < high => {}
                _ if frame.is_trusted() && self.map.is_readable(address) => {}
                _ => return None,
            }
        }
        // SAFETY: aligned, and part of the frame, of its stack, or found readable.
        Some(unsafe { word(address) })
    }

    /// Looks up the row for [`Self::step_by_row`]; apart from it, since together they would take too much stack.
    ///
    /// # Safety
    /// As for [`Self::step_quick`].
    #[inline(never)]
    pub(crate) unsafe fn find_row_slow(&self, scratch: &mut Scratch, frame: &Entry) -> Result<(), Stop> {
        // SAFETY: as the caller promises.
        match unsafe { self.find_row(scratch, frame) } {
            Some(Found::Row) => Ok(()),
            _ => Err(Stop::redo(End::CutBadInformation)),
        }
    }

    /// A step by the whole row in `scratch`: signal frames, expressions, what does not fit into a [`Rule`].
    #[inline(never)]
    pub(crate) fn step_by_row(
        &self,
        scratch: &mut Scratch,
        frame: &mut Entry,
        bx: Option<u64>,
    ) -> Result<Entry, Stop> {
        let bad_information = Stop::redo(End::CutBadInformation);
        let registers = Registers { pc: frame.pc(), sp: frame.sp, bp: frame.bp, bx };
        let cfa = match scratch.row.cfa {
            Cfa::Register(register, _) if u64::from(register) == BX && bx.is_none() => {
                return Err(Stop { end: End::CutBadInformation, check: EndCheck::Inner });
            }
            Cfa::Register(register, offset) => {
                registers.get(u64::from(register)).ok_or(bad_information)?.wrapping_add_signed(offset)
            }
            Cfa::Expression(bytes) => {
                expression::evaluate(bytes, &registers, None, &mut scratch.values, &mut |at| {
                    self.load(frame, at)
                })
                .map_err(Stop::redo)?
            }
            Cfa::Unsaid => return Err(bad_information),
        };
        let is_signal = scratch.is_signal;
        let (ra, sp, bp) = (scratch.row.ra, scratch.row.sp, scratch.row.bp);
        let pc = match ra {
            // Without a place to find it the walk would go in a circle.
            Find::Unsaid | Find::Same => return Err(bad_information),
            Find::Undefined => return Err(Stop::redo(End::Complete)),
            ra => self.find_register(scratch, frame, &registers, cfa, ra)?,
        };
        let sp = match sp {
            Find::Unsaid => cfa,
            Find::Same => frame.sp,
            Find::Undefined => return Err(bad_information),
            sp => self.find_register(scratch, frame, &registers, cfa, sp)?,
        };
        let bp = match bp {
            Find::Unsaid | Find::Same => frame.bp,
            // Nobody may follow it; 0 leads nowhere.
            Find::Undefined => 0,
            bp => self.find_register(scratch, frame, &registers, cfa, bp)?,
        };
        let mut caller =
            Entry { address: pc, node: 0, step: STEP_BARRIER | frame.step & STEP_UNTRUSTED, sp, bp };
        if is_signal {
            frame.address |= SIGNAL;
            caller.address |= INTERRUPTED;
            // The walk goes on as if the instruction had been interrupted at its own place.
            if let Some((original, pushed)) = self.map.moved(pc) {
                caller.address = original & (ADDRESS_END - 1) | INTERRUPTED;
                caller.sp = sp.wrapping_add(8 * pushed);
            }
        } else {
            self.go_to(frame, sp, 1)?;
            if pc == 0 {
                return Err(Stop::redo(End::Complete));
            }
        }
        if pc >= ADDRESS_END || sp & 7 != 0 {
            return Err(Stop::redo(End::CutBadStack));
        }
        Ok(caller)
    }

    fn find_register(
        &self,
        scratch: &mut Scratch,
        frame: &Entry,
        registers: &Registers,
        cfa: u64,
        find: Find,
    ) -> Result<u64, Stop> {
        let at = match find {
            Find::At(offset) => cfa.wrapping_add_signed(offset),
            Find::Value(offset) => return Ok(cfa.wrapping_add_signed(offset)),
            Find::Register(register) => {
                return registers.get(u64::from(register)).ok_or(Stop::redo(End::CutBadInformation));
            }
            Find::AtExpression(bytes) | Find::ValueExpression(bytes) => {
                let load = &mut |at| self.load(frame, at);
                let value = expression::evaluate(bytes, registers, Some(cfa), &mut scratch.values, load);
                let value = value.map_err(Stop::redo)?;
                if matches!(find, Find::ValueExpression(_)) {
                    return Ok(value);
                }
                value
            }
            Find::Unsaid | Find::Same | Find::Undefined => return Err(Stop::redo(End::CutBadInformation)),
        };
        self.load(frame, at).ok_or(Stop::redo(End::CutBadStack))
    }

    /// A step where there is no unwind information: by rbp, if what it points to can be a frame.
    ///
    /// # Safety
    /// As for [`Self::step_quick`].
    #[inline(never)]
    unsafe fn step_by_frame_pointer(&self, frame: &Entry) -> Result<Entry, Stop> {
        let no_information = Err(Stop::redo(End::CutNoInformation));
        let Some((low, high)) = self.map.stack_bounds(frame.sp) else { return no_information };
        let slot = frame.bp;
        if slot & 7 != 0 || slot < frame.sp.max(low) || slot >= high || high - slot < 16 {
            return no_information;
        }
        // SAFETY: both words are aligned and lie inside the stack.
        let (bp, pc) = unsafe { (word(slot), word(slot + 8)) };
        if pc == 0 || pc >= ADDRESS_END {
            return no_information;
        }
        let is_in_module = self.is_module_code(pc - 1);
        if !is_in_module && !self.map.is_other_code(pc - 1) {
            return no_information;
        }
        // What is known of modules holds for the whole generation; other code comes and goes.
        let is_lasting = is_in_module && self.map.find(frame.instruction()).is_some();
        let barrier = if is_lasting { 0 } else { STEP_BARRIER };
        Ok(Entry {
            address: pc | FRAME_POINTER,
            node: 0,
            step: 2 | barrier | STEP_UNTRUSTED,
            sp: slot + 16,
            bp,
        })
    }

    fn is_module_code(&self, pc: u64) -> bool {
        self.map.find(pc).is_some_and(|module| (module.text_start..module.text_end).contains(&pc))
    }
}
