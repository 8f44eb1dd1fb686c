//! What the tables need of the operating system, handed in as functions.

/// The operating system, as the tables see it. None of the functions may allocate through `malloc`.
#[derive(Clone, Copy, Debug)]
pub struct Os {
    /// Maps private, zeroed, writable memory of that many bytes (a multiple of the page size); null when refused.
    pub map: fn(usize) -> *mut u8,
    /// Makes that many bytes from the pointer on (whole pages of a table's mapping) writable and resident, so that a
    /// store there cannot fault. False when refused.
    pub open: fn(*mut u8, usize) -> bool,
    /// The calling thread's kernel id, and its name written to the buffer, NUL-padded.
    pub thread: fn(&mut [u8; 16]) -> u32,
}

/// Where one table of the area is mapped.
#[derive(Clone, Copy, Debug)]
pub struct TableMap {
    /// Its first byte.
    pub base: *mut u8,
    /// How much of it is mapped, in bytes; at most the layout's size.
    pub bytes: u64,
}

/// Where an area's tables are mapped, each by itself: with little address space they are smaller than the layout's.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields are named as the layout's regions are")]
pub struct AreaMap {
    pub header: TableMap,
    pub windows: TableMap,
    pub rows: TableMap,
    pub nodes: TableMap,
    pub modules: TableMap,
    pub strings: TableMap,
    pub threads: TableMap,
    pub totals: TableMap,
    pub directories: TableMap,
    pub counters: TableMap,
    pub attempts: TableMap,
}
