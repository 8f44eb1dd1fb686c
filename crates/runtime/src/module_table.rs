//! The loaded ELF objects, for the walker (where is the unwind information of this address?) and for the segment
//! (which file was at this address, and when?).
#![expect(unsafe_code, reason = "keeps its entries in mapped memory")]

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{MODULE_LIMIT, Module, NOTE_BYPASS, NOTE_NAMESPACE, NOTE_NAMESPACE_FIRST};
use heaptally_tally::{Pages, Spin, Tally};
use heaptally_unwind::ModuleSections;

use crate::bypass::{Reach, Slots};
use crate::namespace::{self, Place};
use crate::object::{Found, ask_objects, is_own};
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
    /// Whether it lies in a namespace of its own: nothing in the program's own one is bound to it.
    is_apart: bool,
    slots: Slots,
    /// Whether the loader listed it the last time that [`ModuleTable::note_bypasses`] asked.
    is_listed: AtomicBool,
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
    /// How many objects have places whose reach is not known yet: see [`ModuleTable::note_bypasses`].
    open: AtomicU32,
}

// SAFETY: `loaded` points to memory that stays mapped; entries are written before `used` is raised, under a lock.
unsafe impl Sync for ModuleTable {}
// SAFETY: as above.
unsafe impl Send for ModuleTable {}

/// Where a loaded object's code lies (AVMA).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleCode {
    /// AVMA = SVMA + bias.
    pub(crate) bias: u64,
    /// All of it: the first address, and one past the last.
    pub(crate) whole: (u64, u64),
    /// Its executable segments.
    pub(crate) text: (u64, u64),
}

/// An object, for who looks into its file.
#[derive(Debug)]
pub(crate) struct NewModule<'a> {
    pub(crate) path: &'a CStr,
    /// AVMA = SVMA + bias.
    pub(crate) bias: u64,
    /// Whether it is the program itself.
    pub(crate) is_program: bool,
    /// `NOTE_*` bits of its entry.
    pub(crate) notes: &'a AtomicU32,
}

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
            open: AtomicU32::new(0),
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

    /// Where the code of the loaded object of an entry lies.
    pub(crate) fn code_of(&self, number: u32) -> Option<ModuleCode> {
        let module = self.live().find(|module| module.segment_entry == number)?;
        let sections = &module.sections;
        Some(ModuleCode {
            bias: module.bias,
            whole: (sections.start, sections.end),
            text: (sections.text_start, sections.text_end),
        })
    }

    /// Shows the objects from number `from` on, in the order in which they were seen; the number behind the last one.
    pub(crate) fn visit(&self, tally: &Tally, from: u32, mut see: impl FnMut(&NewModule<'_>)) -> u32 {
        let all = self.all();
        for (number, module) in all.iter().enumerate().skip(from as usize) {
            let Some(entry) = self.entry(module.segment_entry) else { continue };
            let mut buffer = [0; 1024];
            // The last byte stays 0.
            let Some((_, room)) = buffer.split_last_mut() else { continue };
            tally.text(entry.path.load(Ordering::Relaxed), entry.path_len.load(Ordering::Relaxed), room);
            let Ok(path) = CStr::from_bytes_until_nul(&buffer) else { continue };
            see(&NewModule { path, bias: module.bias, is_program: number == 0, notes: &entry.notes });
        }
        all.len() as u32
    }

    /// The number that an entry of this table has in one that inherited it.
    pub(crate) fn inherited(&self, number: u32, by: &Self) -> u32 {
        let entry = self.entry(number).map(|entry| entry.start.load(Ordering::Relaxed));
        entry.and_then(|start| by.at(start)).map_or(u32::MAX, |module| module.segment_entry)
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
            .filter(|module| !module.holds(except) && !module.is_apart)
            .find_map(|module| crate::elf::definition(module.bias, module.dynamic, name))
    }

    /// Looks where the allocation functions' names lead in objects that were loaded at run time, as far as that was not
    /// known the last time, and marks those from which they lead past the recorder: these were loaded with
    /// `RTLD_DEEPBIND`. An object that is loaded just now is not bound yet, and a call that is bound late not before it
    /// is made: so this is asked again and again, but not inside of an allocation, since it takes the loader's lock,
    /// under which no object goes away.
    pub(crate) fn note_bypasses(&self) {
        if self.open.load(Ordering::Relaxed) != 0 {
            namespace::with_lock(&mut || self.note_bypasses_locked());
        }
    }

    /// With the loader's lock held.
    fn note_bypasses_locked(&self) {
        // What went away just now may still stand in the table.
        self.live().for_each(|module| module.is_listed.store(false, Ordering::Relaxed));
        ask_objects(|object| {
            let is_it = |module: &&Loaded| module.bias == object.bias && module.dynamic == object.dynamic;
            if let Some(module) = self.live().find(is_it) {
                module.is_listed.store(true, Ordering::Relaxed);
            }
            None::<()>
        });
        let listed = || self.live().filter(|module| module.is_listed.load(Ordering::Relaxed));
        let recorder = self.at(is_own as *const () as u64);
        let Some(recorder) = recorder.map(|module| module.sections) else { return };
        let mut open = 0;
        for module in listed().filter(|module| module.slots.are_open()) {
            let is_past = module.slots.look(|address, name| {
                if recorder.start <= address && address < recorder.end {
                    return Reach::Elsewhere;
                }
                if module.holds(address) {
                    return Reach::Open;
                }
                match listed().find(|other| other.holds(address)) {
                    Some(other) => {
                        let is_it = crate::elf::definition(other.bias, other.dynamic, name) == Some(address);
                        if is_it { Reach::Allocator } else { Reach::Elsewhere }
                    }
                    // Not bound yet: what the file has there.
                    None => Reach::Open,
                }
            });
            if is_past && let Some(entry) = self.entry(module.segment_entry) {
                entry.notes.fetch_or(NOTE_BYPASS, Ordering::Release);
            }
            open += u32::from(module.slots.are_open());
        }
        self.open.store(open, Ordering::Relaxed);
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
        let is_first = *round == 1;
        let mut update = Update {
            table: self,
            tally,
            round: *round,
            is_first,
            has_namespaces: false,
            changes: Changes::default(),
            counts: 0,
        };
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

    /// The object that holds an address, found by the loader's own table, which needs no lock, and added: for an address of
    /// a live frame, where the loader cannot be watched. May be called inside of an allocation.
    #[cold]
    pub(crate) fn find_unwatched(&self, address: u64, tally: &Tally) -> Option<ModuleSections> {
        let found = namespace::object_at(address)?;
        // Who holds the lock may wait for the loader's, which a thread may hold that waits for this one.
        let round = self.updating.try_lock()?;
        if self.find(address).is_none() {
            self.add(&found, tally, *round, Place::Program, false);
        }
        Some(found.sections)
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
        child.open.store(self.open.load(Ordering::Relaxed), Ordering::Relaxed);
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
        entry.notes.store(from.notes.load(Ordering::Relaxed), Ordering::Relaxed);
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
    fn add(&self, found: &Found, tally: &Tally, round: u32, place: Place, is_first: bool) {
        let number = self.used.load(Ordering::Relaxed);
        if self.loaded.is_null() || number >= MODULE_LIMIT {
            tally.header().lost_modules.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (file_name, file_name_len) = found.path_end();
        // What the program was linked with is bound as the program itself is.
        let slots = if place == Place::Program && !is_first && !found.is_own() {
            Slots::of(found)
        } else {
            Slots::default()
        };
        if slots.are_open() {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        let loaded = Loaded {
            is_loaded: AtomicBool::new(true),
            file_name,
            file_name_len,
            sections: found.sections,
            bias: found.bias,
            dynamic: found.dynamic,
            build_id: found.build_id_digest(),
            segment_entry: self.publish(found, tally, place),
            seen_in_round: AtomicU32::new(round),
            is_apart: place != Place::Program,
            slots,
            is_listed: AtomicBool::new(false),
        };
        // SAFETY: the place is inside the mapping, and unused until `used` says otherwise.
        unsafe { self.loaded.add(number as usize).write(loaded) };
        self.used.store(number + 1, Ordering::Release);
    }

    /// Writes the object to the segment: its entry's number, or `u32::MAX` when there is no place.
    fn publish(&self, found: &Found, tally: &Tally, place: Place) -> u32 {
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
        let notes = match place {
            Place::Program => 0,
            Place::First => NOTE_NAMESPACE | NOTE_NAMESPACE_FIRST,
            Place::Apart => NOTE_NAMESPACE,
        };
        entry.notes.store(notes, Ordering::Relaxed);
        Self::finish_entry(number, entry, tally)
    }
}

struct Update<'a> {
    table: &'a ModuleTable,
    tally: &'a Tally,
    round: u32,
    /// Whether this is the update at the recorder's start.
    is_first: bool,
    /// Whether the namespaces were looked at.
    has_namespaces: bool,
    changes: Changes,
    counts: u64,
}

impl Update<'_> {
    fn see(&mut self, found: &Found, place: Place) {
        let digest = found.build_id_digest();
        let known = self.table.live().find(|module| {
            module.sections.start == found.sections.start
                && module.sections.end == found.sections.end
                && module.bias == found.bias
                && module.build_id == digest
        });
        match known {
            Some(module) => module.seen_in_round.store(self.round, Ordering::Relaxed),
            None => {
                self.table.add(found, self.tally, self.round, place, self.is_first);
                self.changes.loaded += 1;
            }
        }
    }
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the `Update` that `ModuleTable::update` passed, and nobody else uses it meanwhile.
    let update = unsafe { &mut *data.cast::<Update<'_>>() };
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    update.counts = info.dlpi_adds.wrapping_add(info.dlpi_subs << 32);
    // Once, and here, since the loader's lock is held.
    if !core::mem::replace(&mut update.has_namespaces, true) {
        namespace::visit(&mut |found, place| update.see(found, place));
    }
    // SAFETY: the record is of an object that is loaded, and the loader's lock keeps it so.
    if let Some(found) = unsafe { Found::read(info) } {
        update.see(&found, Place::Program);
    }
    0
}
