//! What allocators are known by: the functions by which they are called that nobody else's `malloc` stands in for, how the
//! names of all of their functions begin, their libraries, and what they write into their messages.

/// The prefixes with which jemalloc is built, and what follows them.
const JEMALLOC_PREFIXES: [&[u8]; 4] = [b"_rjem_", b"je_", b"jem_", b""];
const JEMALLOC: [&[u8]; 5] = [b"mallocx", b"rallocx", b"xallocx", b"sdallocx", b"dallocx"];
/// Those that it has of the C library's too: by these names it is known only with a prefix.
const PREFIXED_JEMALLOC: [&[u8]; 7] =
    [b"malloc", b"calloc", b"realloc", b"free", b"posix_memalign", b"aligned_alloc", b"memalign"];

const MIMALLOC: [&[u8]; 34] = [
    b"mi_malloc",
    b"mi_malloc_small",
    b"mi_malloc_aligned",
    b"mi_malloc_aligned_at",
    b"mi_mallocn",
    b"mi_zalloc",
    b"mi_zalloc_small",
    b"mi_zalloc_aligned",
    b"mi_calloc",
    b"mi_calloc_aligned",
    b"mi_realloc",
    b"mi_realloc_aligned",
    b"mi_reallocn",
    b"mi_reallocf",
    b"mi_reallocarray",
    b"mi_rezalloc",
    b"mi_recalloc",
    b"mi_posix_memalign",
    b"mi_memalign",
    b"mi_aligned_alloc",
    b"mi_valloc",
    b"mi_pvalloc",
    b"mi_strdup",
    b"mi_strndup",
    b"mi_new",
    b"mi_new_n",
    b"mi_new_nothrow",
    b"mi_new_aligned",
    b"mi_new_aligned_nothrow",
    b"mi_heap_malloc",
    b"mi_heap_zalloc",
    b"mi_heap_calloc",
    b"mi_heap_realloc",
    b"mi_free",
];

const TCMALLOC: [&[u8]; 22] = [
    b"tc_malloc",
    b"tc_malloc_skip_new_handler",
    b"tc_calloc",
    b"tc_realloc",
    b"tc_memalign",
    b"tc_posix_memalign",
    b"tc_valloc",
    b"tc_pvalloc",
    b"tc_new",
    b"tc_new_nothrow",
    b"tc_new_aligned",
    b"tc_newarray",
    b"tc_newarray_nothrow",
    b"tc_newarray_aligned",
    b"tc_free",
    b"tc_free_sized",
    b"tc_cfree",
    b"tc_delete",
    b"tc_delete_sized",
    b"tc_deletearray",
    b"tc_deletearray_sized",
    b"tc_delete_aligned",
];

const OTHERS: [(&str, &[u8]); 12] = [
    ("snmalloc", b"sn_malloc"),
    ("snmalloc", b"sn_rust_alloc"),
    ("rpmalloc", b"rpmalloc"),
    ("rpmalloc", b"rpcalloc"),
    ("rpmalloc", b"rprealloc"),
    ("rpmalloc", b"rpaligned_alloc"),
    ("tbbmalloc", b"scalable_malloc"),
    ("tbbmalloc", b"scalable_calloc"),
    ("tbbmalloc", b"scalable_realloc"),
    ("tbbmalloc", b"scalable_aligned_malloc"),
    ("tbbmalloc", b"scalable_posix_memalign"),
    ("hoard", b"xxmalloc"),
];

/// A function that a program calls for other things than to allocate.
const TCMALLOC_EXTENSION: &[u8] = b"MallocExtension_GetNumericProperty";

/// How the names of all functions of an allocator begin.
const PREFIXES: [(&str, &[u8]); 9] = [
    ("mimalloc", b"mi_"),
    ("mimalloc", b"_mi_"),
    ("jemalloc", b"_rjem_"),
    ("jemalloc", b"je_"),
    ("jemalloc", b"jem_"),
    ("rpmalloc", b"rpmalloc"),
    ("rpmalloc", b"rpaligned"),
    ("snmalloc", b"sn_"),
    ("tcmalloc", b"tc_"),
];

/// Parts of the names of libraries whose `operator new` does not call malloc, as the recorder knows them.
const LIBRARIES: [&str; 5] = ["jemalloc", "tcmalloc", "mimalloc", "tbbmalloc", "rpmalloc"];

/// What allocators write into their messages: it stays when the symbols are stripped.
pub(crate) const MESSAGES: [(&str, &[u8]); 3] =
    [("jemalloc", b"<jemalloc>"), ("mimalloc", b"mimalloc: "), ("tcmalloc", b"tcmalloc: large alloc")];

/// The allocator that a file holds which defines a function of this name.
pub(crate) fn of_definition(function: &[u8]) -> Option<&'static str> {
    if function == TCMALLOC_EXTENSION { Some("tcmalloc") } else { allocator(function) }
}

/// The allocator to which a function belongs, by how its name begins: for code through which a call leads.
pub(crate) fn of_function(name: &[u8]) -> Option<&'static str> {
    PREFIXES.iter().find(|(_, start)| name.starts_with(start)).map(|(allocator, _)| *allocator)
}

/// Whether a library is an allocator's, by its file name.
pub(crate) fn is_library(name: &str) -> bool {
    LIBRARIES.iter().any(|allocator| name.contains(allocator))
}

/// The allocator of which a symbol is an own name.
pub(crate) fn allocator(symbol: &[u8]) -> Option<&'static str> {
    let of_jemalloc = JEMALLOC_PREFIXES.iter().any(|prefix| {
        let rest = symbol.strip_prefix(*prefix);
        rest.is_some_and(|rest| {
            JEMALLOC.contains(&rest) || (!prefix.is_empty() && PREFIXED_JEMALLOC.contains(&rest))
        })
    });
    if of_jemalloc {
        return Some("jemalloc");
    }
    if MIMALLOC.contains(&symbol) {
        return Some("mimalloc");
    }
    if TCMALLOC.contains(&symbol) {
        return Some("tcmalloc");
    }
    OTHERS.iter().find(|(_, name)| *name == symbol).map(|(allocator, _)| *allocator)
}

/// Whether a program may name a function only to see whether an allocator is there, as a weak reference does.
pub(crate) fn is_asked_for(symbol: &[u8]) -> bool {
    JEMALLOC.contains(&symbol) || symbol.starts_with(b"mi_") || symbol.starts_with(b"tc_")
}

/// An allocator's own names in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// The allocator.
    pub(crate) allocator: &'static str,
    /// The symbols, in alphabetical order, each once.
    pub(crate) symbols: Vec<String>,
}

impl Names {
    /// Adds a symbol to the list of its allocator.
    pub(crate) fn add(lists: &mut Vec<Self>, allocator: &'static str, symbol: &str) {
        let at = lists.iter().position(|names| names.allocator == allocator).unwrap_or_else(|| {
            lists.push(Self { allocator, symbols: Vec::new() });
            lists.len() - 1
        });
        let symbols = &mut lists[at].symbols;
        if let Err(place) = symbols.binary_search_by(|known| known.as_str().cmp(symbol)) {
            symbols.insert(place, symbol.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_allocator() {
        for (name, of) in [
            ("mallocx", Some("jemalloc")),
            ("_rjem_malloc", Some("jemalloc")),
            ("je_sdallocx", Some("jemalloc")),
            ("mi_malloc", Some("mimalloc")),
            ("tc_newarray", Some("tcmalloc")),
            ("scalable_malloc", Some("tbbmalloc")),
            ("malloc", None),
            ("free", None),
            ("mi_version", None),
            ("xmallocx", None),
        ] {
            assert_eq!(allocator(name.as_bytes()), of, "{name}");
        }
    }

    #[test]
    fn functions_and_libraries_tell_the_allocator() {
        assert_eq!(of_function(b"mi_malloc_aligned"), Some("mimalloc"));
        assert_eq!(of_function(b"_mi_page_malloc"), Some("mimalloc"));
        assert_eq!(of_function(b"_rjem_je_arena_choose"), Some("jemalloc"));
        assert_eq!(of_function(b"malloc"), None);
        assert_eq!(of_definition(b"MallocExtension_GetNumericProperty"), Some("tcmalloc"));
        assert_eq!(of_definition(b"mallocx"), Some("jemalloc"));
        assert_eq!(of_definition(b"malloc"), None);
        assert!(is_library("libtcmalloc_minimal.so.4") && !is_library("libc.so.6"));
    }
}
