//! The functions by which a program can ask for memory.

/// The function that the program called: [`Row::entry_point`](crate::layout::Row::entry_point).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryPoint {
    /// `malloc`
    Malloc = 1,
    /// `calloc`
    Calloc = 2,
    /// `realloc`
    Realloc = 3,
    /// `reallocarray`
    Reallocarray = 4,
    /// `posix_memalign`
    PosixMemalign = 5,
    /// `aligned_alloc`
    AlignedAlloc = 6,
    /// `memalign`
    Memalign = 7,
    /// `valloc`
    Valloc = 8,
    /// `pvalloc`
    Pvalloc = 9,
    /// `operator new(unsigned long)`, another allocator's
    New = 10,
    /// `operator new[](unsigned long)`
    NewArray = 11,
    /// `operator new(unsigned long, std::nothrow_t const&)`
    NewNothrow = 12,
    /// `operator new[](unsigned long, std::nothrow_t const&)`
    NewArrayNothrow = 13,
    /// `operator new(unsigned long, std::align_val_t)`
    NewAligned = 14,
    /// `operator new[](unsigned long, std::align_val_t)`
    NewArrayAligned = 15,
    /// `operator new(unsigned long, std::align_val_t, std::nothrow_t const&)`
    NewAlignedNothrow = 16,
    /// `operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)`
    NewArrayAlignedNothrow = 17,
    /// `__libc_malloc`, the C library's own name for it
    LibcMalloc = 18,
    /// `__libc_calloc`, the C library's own name for it
    LibcCalloc = 19,
    /// `__libc_realloc`, the C library's own name for it
    LibcRealloc = 20,
    /// `__libc_memalign`, the C library's own name for it
    LibcMemalign = 21,
    /// `__libc_valloc`, the C library's own name for it
    LibcValloc = 22,
    /// `__libc_pvalloc`, the C library's own name for it
    LibcPvalloc = 23,
}

impl EntryPoint {
    /// Every entry point, in order of its number.
    pub const ALL: [(Self, &'static str); 23] = [
        (Self::Malloc, "malloc"),
        (Self::Calloc, "calloc"),
        (Self::Realloc, "realloc"),
        (Self::Reallocarray, "reallocarray"),
        (Self::PosixMemalign, "posix_memalign"),
        (Self::AlignedAlloc, "aligned_alloc"),
        (Self::Memalign, "memalign"),
        (Self::Valloc, "valloc"),
        (Self::Pvalloc, "pvalloc"),
        (Self::New, "operator new(unsigned long)"),
        (Self::NewArray, "operator new[](unsigned long)"),
        (Self::NewNothrow, "operator new(unsigned long, std::nothrow_t const&)"),
        (Self::NewArrayNothrow, "operator new[](unsigned long, std::nothrow_t const&)"),
        (Self::NewAligned, "operator new(unsigned long, std::align_val_t)"),
        (Self::NewArrayAligned, "operator new[](unsigned long, std::align_val_t)"),
        (Self::NewAlignedNothrow, "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)"),
        (
            Self::NewArrayAlignedNothrow,
            "operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)",
        ),
        (Self::LibcMalloc, "__libc_malloc"),
        (Self::LibcCalloc, "__libc_calloc"),
        (Self::LibcRealloc, "__libc_realloc"),
        (Self::LibcMemalign, "__libc_memalign"),
        (Self::LibcValloc, "__libc_valloc"),
        (Self::LibcPvalloc, "__libc_pvalloc"),
    ];

    /// The name under which a program knows it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize - 1].1
    }

    /// Whether it is an `operator new`.
    pub fn is_new(self) -> bool {
        (Self::New as u8..=Self::NewArrayAlignedNothrow as u8).contains(&(self as u8))
    }

    /// The entry point of a number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        let (found, _) = Self::ALL.get((number as usize).checked_sub(1)?)?;
        Some(*found)
    }
}
