//! Loaded ELF objects, as the loader's records and their own headers say.
#![expect(unsafe_code, reason = "reads program headers of loaded objects")]

use core::ffi::{CStr, c_int, c_void};
use core::slice;

use heaptally_unwind::ModuleSections;

use crate::{memory_map, sys};

/// What the program headers of a loaded object say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) name: &'static CStr,
    pub(crate) bias: u64,
    pub(crate) sections: ModuleSections,
    pub(crate) text_offset: u64,
    pub(crate) dynamic: u64,
    pub(crate) build_id: &'static [u8],
}

impl Found {
    /// # Safety
    /// The record is of an object that stays loaded while the result is used.
    pub(crate) unsafe fn read(info: &libc::dl_phdr_info) -> Option<Self> {
        let bias = info.dlpi_addr;
        let none = ModuleSections {
            start: u64::MAX,
            end: 0,
            text_start: u64::MAX,
            text_end: 0,
            eh_frame_hdr: 0,
            eh_frame_hdr_len: 0,
            mapped_end: 0,
        };
        // SAFETY: by the caller.
        let name = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } };
        let mut found = Self { name, bias, sections: none, text_offset: 0, dynamic: 0, build_id: &[] };
        // SAFETY: the loader keeps the program headers as long as the object.
        let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        let sections = &mut found.sections;
        for header in headers {
            let start = bias.wrapping_add(header.p_vaddr);
            let end = start.wrapping_add(header.p_memsz);
            match header.p_type {
                libc::PT_LOAD => {
                    sections.start = sections.start.min(start);
                    sections.end = sections.end.max(end);
                    if header.p_flags & libc::PF_X != 0 {
                        if start < sections.text_start {
                            found.text_offset = header.p_offset;
                        }
                        sections.text_start = sections.text_start.min(start);
                        sections.text_end = sections.text_end.max(end);
                    }
                }
                libc::PT_GNU_EH_FRAME => {
                    sections.eh_frame_hdr = start;
                    sections.eh_frame_hdr_len = header.p_memsz;
                }
                libc::PT_DYNAMIC => found.dynamic = start,
                libc::PT_NOTE if found.build_id.is_empty() => {
                    // SAFETY: notes lie in a loaded segment, by the program header.
                    found.build_id =
                        unsafe { crate::elf::build_id(start as *const u8, header.p_memsz as usize) };
                }
                _ => {}
            }
        }
        if sections.start >= sections.end || sections.text_start >= sections.text_end {
            return None;
        }
        for header in headers {
            let start = bias.wrapping_add(header.p_vaddr);
            let end = start.wrapping_add(header.p_filesz);
            if header.p_type == libc::PT_LOAD && start <= sections.eh_frame_hdr && sections.eh_frame_hdr < end
            {
                sections.mapped_end = end;
            }
        }
        Some(found)
    }

    pub(crate) fn holds(&self, address: u64) -> bool {
        self.sections.start <= address && address < self.sections.end
    }

    /// Whether this is the recorder's library.
    pub(crate) fn is_own(&self) -> bool {
        self.holds(is_own as *const () as u64)
    }

    pub(crate) fn build_id_digest(&self) -> u64 {
        self.build_id.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// The last bytes of the path, as many as a [`Loaded`] keeps.
    pub(crate) fn path_end(&self) -> ([u8; 48], u8) {
        let path = self.name.to_bytes();
        let end = path.get(path.len().saturating_sub(48)..).unwrap_or(path);
        let mut kept = [0; 48];
        kept[..end.len()].copy_from_slice(end);
        (kept, end.len() as u8)
    }

    /// The path; the loader does not name the program itself, nor does the vdso have one.
    pub(crate) fn path<'a>(&'a self, buffer: &'a mut [u8; 512]) -> &'a [u8] {
        if !self.name.is_empty() {
            let name = self.name.to_bytes();
            return if name.starts_with(b"linux-vdso") { b"" } else { name };
        }
        let len = program_path(self.sections.text_start, buffer);
        &buffer[..len]
    }
}

/// The path of the program, part of whose code lies at an address, as far as it fits: how long it is. Where the loader
/// was called by its name, with the program as its argument, the kernel takes the loader for the program.
pub(crate) fn program_path(text: u64, buffer: &mut [u8]) -> usize {
    // SAFETY: has no effect.
    if unsafe { libc::getauxval(libc::AT_BASE) } == 0 {
        return memory_map::path_at(text, buffer, &mut [0; memory_map::BUFFER_BYTES]);
    }
    sys::read_link(c"/proc/self/exe", buffer).min(buffer.len())
}

/// Where the loader lies.
pub(crate) fn loader_base() -> u64 {
    // SAFETY: has no effect.
    match unsafe { libc::getauxval(libc::AT_BASE) } {
        // It was called by its name. Its first address is that of its file.
        0 => ask_objects(|object| {
            crate::elf::defines(object.bias, object.dynamic, c"__tls_get_addr").then_some(object.bias)
        })
        .unwrap_or(0),
        base => base,
    }
}

/// Asks all loaded objects in the loader's order, until one has an answer.
pub(crate) fn ask_objects<T, F: FnMut(&Found) -> Option<T>>(mut ask: F) -> Option<T> {
    struct Question<'a, T, F> {
        ask: &'a mut F,
        answer: Option<T>,
    }
    unsafe extern "C" fn visit<T, F: FnMut(&Found) -> Option<T>>(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the question below, which nobody else uses meanwhile.
        let question = unsafe { &mut *data.cast::<Question<'_, T, F>>() };
        // SAFETY: the loader passes a valid record of an object that is loaded.
        if let Some(found) = unsafe { Found::read(&*info) } {
            question.answer = (question.ask)(&found);
        }
        c_int::from(question.answer.is_some())
    }
    let mut question = Question { ask: &mut ask, answer: None };
    // SAFETY: the callback has the right form, and the question outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit::<T, F>), (&raw mut question).cast()) };
    question.answer
}

/// The address of the first definition of a function, in the order in which the loader looks for it.
///
/// Not by `dlsym`: in a program at a fixed address that takes the function's address, it says where the program's own
/// jump to it is.
pub(crate) fn first_definition(name: &CStr) -> u64 {
    ask_objects(|object| crate::elf::definition(object.bias, object.dynamic, name)).unwrap_or(0)
}

/// Whether an address lies in this library.
///
/// Its exported functions' addresses do not tell: a reference to them may reach another object's of the same name.
pub(crate) fn is_own(address: u64) -> bool {
    ask_objects(|object| object.is_own().then(|| object.holds(address))).unwrap_or(false)
}

/// Whether an address lies in the C library, by the name of the object that holds it.
pub(crate) fn is_in_libc(address: u64) -> bool {
    let is_libc = |object: &Found| {
        let file = object.name.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or(&[]);
        file == b"libc.so.6" || (file.starts_with(b"libc-") && file.ends_with(b".so"))
    };
    ask_objects(|object| object.holds(address).then(|| is_libc(object))).unwrap_or(false)
}

/// Where a definition is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In all objects but this library.
    Elsewhere,
    /// In those that the loader lists behind this library, as `RTLD_NEXT` does.
    Behind,
}

/// Whether a loaded object other than this library defines a function of that name.
///
/// To be asked before `dlsym`: one that fails makes an error message, which allocates, leaves an error for the program
/// to find, and crashes while the C library is not set up (an indirect function's resolver allocates).
pub fn is_defined(name: &CStr, scope: Scope) -> bool {
    let mut is_in_scope = scope == Scope::Elsewhere;
    let answer = ask_objects(|object| {
        if object.is_own() {
            is_in_scope = true;
            return None;
        }
        (is_in_scope && crate::elf::defines(object.bias, object.dynamic, name)).then_some(())
    });
    answer.is_some()
}
