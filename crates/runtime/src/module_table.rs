//! The loaded ELF objects, for the walker (where is the unwind information of this address?) and for the segment
//! (which file was at this address, and when?).
#![expect(unsafe_code, reason = "reads program headers of loaded objects")]

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{MODULE_LIMIT, Module};
use heaptally_tally::{Pages, Spin, Tally};
use heaptally_unwind::ModuleSections;

use crate::sys;

/// One loaded object, as the walker needs it. Never changed once `is_loaded` was set, but for that flag.
#[derive(Debug)]
struct Loaded {
    is_loaded: AtomicBool,
    /// The end of the path, as far as it fits.
    file_name: [u8; 48],
    file_name_len: u8,
    sections: ModuleSections,
    bias: u64,
    dynamic: u64,
    build_id: u64,
    segment_entry: u32,
    seen_in_round: AtomicU32,
}

impl Loaded {
    fn holds(&self, address: u64) -> bool {
        self.sections.start <= address && address < self.sections.end
    }

    fn file_name(&self) -> &[u8] {
        &self.file_name[..usize::from(self.file_name_len)]
    }
}

/// All objects, in the order in which they were seen. Those that went away stay, marked.
#[derive(Debug)]
pub(crate) struct ModuleTable {
    loaded: *mut Loaded,
    used: AtomicU32,
    entries: Pages,
    /// Held while the list is brought up to date.
    updating: Spin<u32>,
    /// The loader's counts of loads and unloads at the latest update.
    changes: AtomicU64,
    /// How many objects were looked at by [`ModuleTable::find_bypass`].
    looked_at: AtomicU32,
}

// SAFETY: `loaded` points to memory that stays mapped; entries are written before `used` is raised, under a lock.
unsafe impl Sync for ModuleTable {}
// SAFETY: as above.
unsafe impl Send for ModuleTable {}

/// What an update found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes {
    /// Code came.
    pub(crate) loaded: u32,
    /// Code went away.
    pub(crate) unloaded: u32,
}

impl ModuleTable {
    pub(crate) fn new(entries: Pages) -> Self {
        let bytes = (MODULE_LIMIT as usize * size_of::<Loaded>()).next_multiple_of(sys::PAGE);
        Self::over(sys::map_private(bytes).cast(), entries)
    }

    fn over(loaded: *mut Loaded, entries: Pages) -> Self {
        Self {
            loaded,
            used: AtomicU32::new(0),
            entries,
            updating: Spin::new(0),
            changes: AtomicU64::new(0),
            looked_at: AtomicU32::new(0),
        }
    }

    fn all(&self) -> &[Loaded] {
        if self.loaded.is_null() {
            return &[];
        }
        // SAFETY: entries below `used` are written; see the type's notes.
        unsafe { slice::from_raw_parts(self.loaded, self.used.load(Ordering::Acquire) as usize) }
    }

    fn live(&self) -> impl Iterator<Item = &Loaded> {
        self.all().iter().rev().filter(|module| module.is_loaded.load(Ordering::Acquire))
    }

    fn at(&self, address: u64) -> Option<&Loaded> {
        self.live().find(|module| module.holds(address))
    }

    /// The object that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<ModuleSections> {
        self.at(address).map(|module| module.sections)
    }

    /// The offset and length of the path, in the segment's strings, of the object that holds an address.
    pub(crate) fn path_of(&self, address: u64) -> Option<(u32, u32)> {
        let entry = self.entry(self.at(address)?.segment_entry)?;
        Some((entry.path.load(Ordering::Relaxed), entry.path_len.load(Ordering::Relaxed)))
    }

    /// Asks something of the path of the object that holds an address; an address in no object has an empty one.
    pub(crate) fn with_path<R>(&self, address: u64, ask: impl FnOnce(&[u8]) -> R) -> R {
        ask(self.at(address).map_or(b"", |module| module.file_name()))
    }

    /// The address of a function that an object other than the one around `except` defines. The object around `near`
    /// is asked first, then all others in the order in which they were loaded.
    pub(crate) fn definition(&self, name: &CStr, except: u64, near: u64) -> Option<u64> {
        let is_at =
            |module: &Loaded, address| module.sections.start <= address && address < module.sections.end;
        let own = self.live().find(|module| is_at(module, near));
        let others = self.all().iter().filter(|module| module.is_loaded.load(Ordering::Acquire));
        own.into_iter()
            .chain(others)
            .filter(|module| !module.holds(except))
            .find_map(|module| crate::elf::definition(module.bias, module.dynamic, name))
    }

    /// Looks, among the objects that came since the latest look, for one whose calls of the allocation functions go past
    /// the recorder to `real_malloc`'s object: it was loaded with `RTLD_DEEPBIND`. Gives its path in the segment.
    #[inline]
    pub(crate) fn find_bypass(&self, real_malloc: u64) -> Option<(u32, u32)> {
        let used = self.used.load(Ordering::Acquire);
        if self.looked_at.load(Ordering::Relaxed) == used {
            None
        } else {
            self.find_bypass_slow(real_malloc, used)
        }
    }

    #[cold]
    #[inline(never)]
    fn find_bypass_slow(&self, real_malloc: u64, used: u32) -> Option<(u32, u32)> {
        const NAMES: [&CStr; 3] = [c"malloc", c"calloc", c"realloc"];
        let first = self.looked_at.swap(used, Ordering::AcqRel);
        let real = self.find(real_malloc)?;
        let is_real = |address| real.start <= address && address < real.end;
        let module = self.all().get(first as usize..used as usize)?.iter().find(|module| {
            module.is_loaded.load(Ordering::Acquire)
                && !is_own(module.sections.text_start)
                && !is_real(module.sections.text_start)
                && crate::elf::calls(module.bias, module.dynamic, &NAMES, is_real)
        })?;
        let entry = self.entry(module.segment_entry)?;
        Some((entry.path.load(Ordering::Relaxed), entry.path_len.load(Ordering::Relaxed)))
    }

    /// Whether the loader has loaded or unloaded something since the latest update, told by the counts that it keeps.
    pub(crate) fn is_stale(&self) -> bool {
        unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
            // SAFETY: the loader passes a valid record; `data` is the word below.
            unsafe { *data.cast::<u64>() = (*info).dlpi_adds.wrapping_add((*info).dlpi_subs << 32) };
            1
        }
        let mut now = 0_u64;
        // SAFETY: the callback has the right form and writes to `now` only.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut now).cast()) };
        now != self.changes.load(Ordering::Relaxed)
    }

    /// Brings the table up to date with the loader. Not to be called from inside an allocation: it takes the loader's
    /// lock, unless the calling thread holds it.
    pub(crate) fn update(&self, tally: &Tally) -> Changes {
        let mut round = self.updating.lock();
        *round += 1;
        let mut update = Update { table: self, tally, round: *round, changes: Changes::default(), counts: 0 };
        // SAFETY: the callback has the right form, and `update` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut update).cast()) };
        self.changes.store(update.counts, Ordering::Relaxed);
        let mut changes = update.changes;
        for module in self.all() {
            if module.is_loaded.load(Ordering::Relaxed)
                && module.seen_in_round.load(Ordering::Relaxed) != *round
            {
                module.is_loaded.store(false, Ordering::Release);
                changes.unloaded += 1;
                if let Some(entry) = self.entry(module.segment_entry) {
                    entry.unload_node.store(tally.node_count(), Ordering::Relaxed);
                    entry.state.store(2, Ordering::Release);
                }
            }
        }
        changes
    }

    /// The table of a forked child, with entries of its own in the segment: what this copy of the parent's holds. An
    /// update that another thread was making is left as far as it came.
    pub(crate) fn inherit(&self, entries: Pages, parent: &Tally, tally: &Tally) -> Self {
        let child = Self::over(self.loaded, entries);
        let used = self.used.load(Ordering::Acquire);
        if self.loaded.is_null() {
            return child;
        }
        for number in 0..used as usize {
            // SAFETY: an entry below `used`, in memory of this process's own, which nobody else reads yet.
            let loaded = unsafe { &mut *self.loaded.add(number) };
            let parents = self.entry(loaded.segment_entry).filter(|_| *loaded.is_loaded.get_mut());
            loaded.segment_entry = parents.map_or(u32::MAX, |entry| child.copy_entry(entry, parent, tally));
        }
        child.used.store(used, Ordering::Release);
        child.looked_at.store(self.looked_at.load(Ordering::Relaxed), Ordering::Relaxed);
        child
    }

    /// Writes what another area's entry says to this one's: the entry's number, or `u32::MAX`.
    fn copy_entry(&self, from: &Module, from_tally: &Tally, tally: &Tally) -> u32 {
        let mut buffer = [0; 1024];
        let (path, len) = (from.path.load(Ordering::Relaxed), from.path_len.load(Ordering::Relaxed));
        let path = from_tally.text(path, len, &mut buffer);
        let Some((number, entry)) = self.take_entry(path, tally) else { return u32::MAX };
        let pairs = [
            (&entry.bias, &from.bias),
            (&entry.start, &from.start),
            (&entry.end, &from.end),
            (&entry.text_svma, &from.text_svma),
            (&entry.text_svma_end, &from.text_svma_end),
            (&entry.text_offset, &from.text_offset),
            (&entry.inode, &from.inode),
            (&entry.device, &from.device),
        ];
        for (into, value) in pairs {
            into.store(value.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (into, word) in entry.build_id.iter().zip(&from.build_id) {
            into.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        entry.build_id_len.store(from.build_id_len.load(Ordering::Relaxed), Ordering::Relaxed);
        Self::finish_entry(number, entry, tally)
    }

    /// The area's next entry, with its path; `None`: there is no place.
    fn take_entry(&self, path: &[u8], tally: &Tally) -> Option<(u32, &'static Module)> {
        let header = tally.header();
        let number = header.modules.load(Ordering::Relaxed);
        let end = (u64::from(number) + 1) * size_of::<Module>() as u64;
        let (true, Some(offset)) = (number < MODULE_LIMIT && self.entries.reserve(end), tally.intern(path))
        else {
            header.lost_modules.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let entry = self.entry(number)?;
        entry.path.store(offset, Ordering::Relaxed);
        entry.path_len.store(path.len() as u32, Ordering::Relaxed);
        Some((number, entry))
    }

    /// Makes an entry valid: its number.
    fn finish_entry(number: u32, entry: &Module, tally: &Tally) -> u32 {
        // What is loaded when the recorder starts owns all nodes.
        entry.load_node.store(if number == 0 { 0 } else { tally.node_count() }, Ordering::Relaxed);
        entry.unload_node.store(u32::MAX, Ordering::Relaxed);
        entry.state.store(1, Ordering::Release);
        tally.header().modules.store(number + 1, Ordering::Release);
        number
    }

    fn entry(&self, number: u32) -> Option<&'static Module> {
        if number == u32::MAX {
            return None;
        }
        let offset = u64::from(number) * size_of::<Module>() as u64;
        // SAFETY: `publish` opened the entry's page before it handed the number out.
        Some(unsafe { &*self.entries.address(offset).cast::<Module>() })
    }

    /// With the lock held.
    fn add(&self, found: &Found, tally: &Tally, round: u32) {
        let number = self.used.load(Ordering::Relaxed);
        if self.loaded.is_null() || number >= MODULE_LIMIT {
            tally.header().lost_modules.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (file_name, file_name_len) = found.path_end();
        let loaded = Loaded {
            is_loaded: AtomicBool::new(true),
            file_name,
            file_name_len,
            sections: found.sections,
            bias: found.bias,
            dynamic: found.dynamic,
            build_id: found.build_id_digest(),
            segment_entry: self.publish(found, tally),
            seen_in_round: AtomicU32::new(round),
        };
        // SAFETY: the place is inside the mapping, and unused until `used` says otherwise.
        unsafe { self.loaded.add(number as usize).write(loaded) };
        self.used.store(number + 1, Ordering::Release);
    }

    /// Writes the object to the segment: its entry's number, or `u32::MAX` when there is no place.
    fn publish(&self, found: &Found, tally: &Tally) -> u32 {
        let mut buffer = [0; 512];
        let path = found.path(&mut buffer);
        let Some((number, entry)) = self.take_entry(path, tally) else { return u32::MAX };
        for (at, byte) in found.build_id.iter().take(32).enumerate() {
            let word = &entry.build_id[at / 4];
            word.store(word.load(Ordering::Relaxed) | (u32::from(*byte) << (at % 4 * 8)), Ordering::Relaxed);
        }
        entry.build_id_len.store(found.build_id.len().min(32) as u32, Ordering::Relaxed);
        entry.bias.store(found.bias, Ordering::Relaxed);
        entry.start.store(found.sections.start, Ordering::Relaxed);
        entry.end.store(found.sections.end, Ordering::Relaxed);
        entry.text_svma.store(found.sections.text_start.wrapping_sub(found.bias), Ordering::Relaxed);
        entry.text_svma_end.store(found.sections.text_end.wrapping_sub(found.bias), Ordering::Relaxed);
        entry.text_offset.store(found.text_offset, Ordering::Relaxed);
        Self::finish_entry(number, entry, tally)
    }
}

struct Update<'a> {
    table: &'a ModuleTable,
    tally: &'a Tally,
    round: u32,
    changes: Changes,
    counts: u64,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the `Update` that `ModuleTable::update` passed, and nobody else uses it meanwhile.
    let update = unsafe { &mut *data.cast::<Update<'_>>() };
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    update.counts = info.dlpi_adds.wrapping_add(info.dlpi_subs << 32);
    // SAFETY: the record is of an object that is loaded, and the loader's lock keeps it so.
    let Some(found) = (unsafe { Found::read(info) }) else { return 0 };
    let digest = found.build_id_digest();
    let known = update.table.live().find(|module| {
        module.sections.start == found.sections.start
            && module.sections.end == found.sections.end
            && module.bias == found.bias
            && module.build_id == digest
    });
    match known {
        Some(module) => module.seen_in_round.store(update.round, Ordering::Relaxed),
        None => {
            update.table.add(&found, update.tally, update.round);
            update.changes.loaded += 1;
        }
    }
    0
}

/// What the program headers of a loaded object say.
struct Found {
    name: &'static CStr,
    bias: u64,
    sections: ModuleSections,
    text_offset: u64,
    dynamic: u64,
    build_id: &'static [u8],
}

impl Found {
    /// # Safety
    /// The record is of an object that stays loaded while the result is used.
    unsafe fn read(info: &libc::dl_phdr_info) -> Option<Self> {
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

    fn holds(&self, address: u64) -> bool {
        self.sections.start <= address && address < self.sections.end
    }

    /// Whether this is the recorder's library.
    fn is_own(&self) -> bool {
        self.holds(is_own as *const () as u64)
    }

    fn build_id_digest(&self) -> u64 {
        self.build_id.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// The last bytes of the path, as many as a [`Loaded`] keeps.
    fn path_end(&self) -> ([u8; 48], u8) {
        let path = self.name.to_bytes();
        let end = path.get(path.len().saturating_sub(48)..).unwrap_or(path);
        let mut kept = [0; 48];
        kept[..end.len()].copy_from_slice(end);
        (kept, end.len() as u8)
    }

    /// The path; the loader does not name the program itself, nor does the vdso have one.
    fn path<'a>(&'a self, buffer: &'a mut [u8; 512]) -> &'a [u8] {
        if !self.name.is_empty() {
            let name = self.name.to_bytes();
            return if name.starts_with(b"linux-vdso") { b"" } else { name };
        }
        let len = sys::read_link(c"/proc/self/exe", buffer).min(512);
        &buffer[..len]
    }
}

/// Asks all loaded objects in the loader's order, until one has an answer.
fn ask_objects<T, F: FnMut(&Found) -> Option<T>>(mut ask: F) -> Option<T> {
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
