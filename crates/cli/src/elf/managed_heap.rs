//! Programs with a heap of their own, of whose objects malloc sees nothing: known by a section, a function or a library.

/// A language's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// What it is called.
    name: &'static str,
    /// What is seen nevertheless.
    seen: &'static str,
    /// What shows the rest.
    advice: &'static str,
}

/// The sections that Go's linker makes.
const GO_SECTIONS: [&[u8]; 2] = [b".go.buildinfo", b".note.go.buildid"];
const GO: Runtime = Runtime {
    name: "Go",
    seen: "what C code called by it allocates",
    advice: "use Go's own profiler (runtime/pprof) for the rest",
};
const JAVA: Runtime = Runtime {
    name: "Java",
    seen: "what the virtual machine and native libraries allocate",
    advice: "use a profiler of the virtual machine for Java objects (JFR)",
};
const V8: Runtime = Runtime {
    name: "V8, JavaScript",
    seen: "what the engine and native modules allocate",
    advice: "use --heap-prof for JavaScript objects",
};
const PYTHON: Runtime = Runtime {
    name: "Python",
    seen: "large objects, and what native modules allocate",
    advice: "set PYTHONMALLOC=malloc for small objects too",
};
const PHP: Runtime = Runtime {
    name: "PHP",
    seen: "what native libraries allocate",
    advice: "set USE_ZEND_ALLOC=0 for the rest",
};
const OCAML: Runtime = Runtime {
    name: "OCaml",
    seen: "what C code allocates",
    advice: "use statistical memprof (memtrace) for OCaml values",
};
const HASKELL: Runtime = Runtime {
    name: "Haskell",
    seen: "what C code allocates",
    advice: "use GHC's heap profiles (+RTS -h) for the rest",
};

/// Functions that give a runtime away.
const FUNCTIONS: [(&[u8], Runtime); 6] = [
    (b"node_module_register", V8),
    (b"Py_BytesMain", PYTHON),
    (b"zend_startup", PHP),
    (b"caml_startup", OCAML),
    (b"caml_main", OCAML),
    (b"hs_main", HASKELL),
];
/// How the names of libraries begin that give one away.
const LIBRARIES: [(&str, Runtime); 5] =
    [("libjli.so", JAVA), ("libjvm.so", JAVA), ("libnode.so", V8), ("libpython", PYTHON), ("libphp", PHP)];

/// By a section's name.
pub(crate) fn by_section(name: &[u8]) -> Option<Runtime> {
    GO_SECTIONS.contains(&name).then_some(GO)
}

/// By a symbol's name.
pub(crate) fn by_function(name: &[u8]) -> Option<Runtime> {
    FUNCTIONS.iter().find(|(function, _)| *function == name).map(|(_, runtime)| *runtime)
}

/// By a needed library's name.
pub(crate) fn by_library(name: &str) -> Option<Runtime> {
    LIBRARIES.iter().find(|(library, _)| name.starts_with(library)).map(|(_, runtime)| *runtime)
}

impl Runtime {
    /// What to do where nothing at all can be seen.
    pub(crate) fn advice(&self) -> &'static str {
        self.advice
    }

    /// What is seen nevertheless.
    pub(crate) fn seen(&self) -> &'static str {
        self.seen
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}
