//! From build-id and address to function, file and line.
//!
//! [`Symbolizer::symbolize`] names the locations of a [`Profile`](heaptally_profile::model::Profile). Each module is
//! opened once, its addresses are looked up in ascending order, and it is closed again. For a location, the first of
//! these that knows its address tells:
//!
//! 1. DWARF, with inlined functions, files and lines: of the module's file or of its separate debug file (by build-id
//!    or debug link), compressed, split (`.dwp`, `.dwo`) or shared by dwz;
//! 2. `.symtab` of either file, then `.dynsym`, by the symbols' sizes;
//! 3. `.eh_frame`: the function's start is known, not its name: `libfoo.so+0x1234`.
//!
//! Functions of C++ to which GCC gives no linkage name (in unnamed namespaces, static ones, lambdas) get their name for
//! people from where they stand in the debug information, as the demangler would write it.
//!
//! **A file of another build is never used**: build-ids must be equal, a linked debug file must have its CRC, and a
//! file without build-id must have its code where the recorded one had it.
//!
//! **What is missing or was refused** is said once per module, in `modules[].symbol_problem`: reasons divided by `; `,
//! the one that weighs most first. The text before a reason's first `:` is stable, and says which kind it is:
//!
//! | reason | what is lost |
//! |---|---|
//! | `no file` | it was made in memory (the vdso): its functions have no names |
//! | `file gone`, `file unreadable`, `file replaced` | the file is not the one that was loaded: no names but those of its debug file |
//! | `stripped` | names but the exported ones; files, lines, inlined functions |
//! | `no debug information` | files, lines, inlined functions |
//! | `debug information damaged` | the same, at least in a part |
//! | `debug file missing`, `debug file refused`, `debug file incomplete` | what the debug file would have told; the reason before says what is left |
//! | `shared debug file missing`, `split debug information missing` | the parts that lie there |
//! | `names of Swift are not demangled` | nothing, but they are hard to read; said of one module for all |
//!
//! **Features.** `swift`: Swift's names are demangled, by Swift's own demangler, which is written in C++ and needs a C++
//! compiler. It runs in a forked child, since some names end it. Without it they stay mangled and are still known as Swift's.
//!
//! Modules are looked at by several threads, and a large one is split; the result does not depend on their number.
//! Debug information is mapped, not read: what a unit describes is read when an address lies in it, and is given back
//! with the module.
//!
//! It does not read mini debug information (`.gnu_debugdata`), ask debuginfod servers, or run other programs. The caller owes a profile whose module paths are written as
//! [`path_text`](heaptally_profile::path_text) says, and calls it while the program's files are still there.
//!
//! ```
//! use heaptally_profile::model::{Location, Module, Profile};
//! use heaptally_symbolize::{Options, Symbolizer};
//!
//! let mut profile = Profile {
//!     modules: vec![Module { path: "/no/such/file".to_owned(), ..Module::default() }],
//!     locations: vec![Location { module: Some(0), address: 0x1139, ..Location::default() }],
//!     ..Profile::default()
//! };
//! Symbolizer::new(Options::default()).symbolize(&mut profile);
//! assert!(profile.locations[0].lines.is_empty());
//! assert!(profile.modules[0].symbol_problem.as_deref().is_some_and(|problem| problem.contains("cannot be read")));
//! ```

mod cpp_name;
mod debug_file;
mod debug_info;
mod demangle;
mod described;
mod fold;
mod function_list;
mod function_start;
mod function_table;
mod map;
mod module_file;
mod object_file;
mod producer;
mod progress;
mod resolve;
mod symbol_table;
mod symbolizer;
mod unit_table;
mod worker;

pub use debug_file::find_debug_file;
pub use demangle::{demangle, without_clone_suffix};
pub use function_list::{FunctionList, ListedFunction, list_functions, list_named};
pub use progress::Progress;
pub use symbolizer::{Options, Symbolizer};
