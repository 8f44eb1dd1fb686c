//! The lists, and the reading of a rule file.

use std::sync::LazyLock;

use super::language::{Language, language, qualified, type_path};
use crate::Error;
use crate::glob;
use crate::kind::KindRules;
use crate::model::Function;
use crate::swift_name;

/// The lists of frames that are nobody's call site. The form of a rule file is told in `rules/call_site.txt`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    modules: Vec<String>,
    files: Vec<String>,
    file_names: Vec<String>,
    symbols: Vec<String>,
    functions: Vec<String>,
    allocations: Vec<String>,
    functions_rust: Vec<String>,
    functions_cpp: Vec<String>,
    functions_swift: Vec<String>,
    modules_swift: Vec<String>,
    functions_go: Vec<String>,
    kinds: KindRules,
}

/// The list of a section.
type Section = fn(&mut Rules) -> &mut Vec<String>;

/// The sections by their titles.
const SECTIONS: [(&str, Section); 11] = [
    ("[module]", |rules| &mut rules.modules),
    ("[file]", |rules| &mut rules.files),
    ("[file name]", |rules| &mut rules.file_names),
    ("[symbol]", |rules| &mut rules.symbols),
    ("[function]", |rules| &mut rules.functions),
    ("[allocation]", |rules| &mut rules.allocations),
    ("[function rust]", |rules| &mut rules.functions_rust),
    ("[function c++]", |rules| &mut rules.functions_cpp),
    ("[function swift]", |rules| &mut rules.functions_swift),
    ("[module swift]", |rules| &mut rules.modules_swift),
    ("[function go]", |rules| &mut rules.functions_go),
];

/// The one pattern that looks like a title.
const KERNELS_MODULE: &str = "[vdso]";

/// The rule files that come with heaptally.
const EMBEDDED: &str =
    concat!(include_str!("../../rules/call_site.txt"), "\n", include_str!("../../rules/kind.txt"));

/// How the title of a section begins that has functions of one kind of allocation.
const KIND: &str = "[kind ";

/// The list that a pattern belongs to.
#[derive(Clone, Copy)]
enum List {
    Section(Section),
    Kind(usize),
}

impl Rules {
    /// The rules that come with heaptally.
    pub fn embedded() -> &'static Self {
        // NOTE: a test reads the embedded file, so this cannot fail.
        static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::parse(EMBEDDED).unwrap_or_default());
        &RULES
    }

    /// The sections that a rule file can have, as they stand in it.
    pub fn sections() -> impl Iterator<Item = &'static str> {
        SECTIONS.iter().map(|(title, _)| *title)
    }

    /// Reads a rule file.
    ///
    /// # Errors
    /// [`Error::Rule`] for an unknown section and for a pattern before the first one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut rules = Self::default();
        let mut list: Option<List> = None;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let rule_error = |reason: String| Error::Rule { line: at + 1, reason };
            if let Some((_, found)) = SECTIONS.iter().find(|(title, _)| *title == line) {
                list = Some(List::Section(*found));
                continue;
            }
            if let Some(title) = line.strip_prefix(KIND).and_then(|title| title.strip_suffix(']')) {
                let kind = rules.kinds.section(title);
                list = Some(List::Kind(
                    kind.ok_or_else(|| rule_error(format!("{} names no kind", shown(line))))?,
                ));
                continue;
            }
            let Some(list) = list else {
                return Err(rule_error(format!("{} stands before the first section", shown(line))));
            };
            let is_title = line.starts_with('[') && line.ends_with(']');
            if is_title && line != KERNELS_MODULE {
                return Err(rule_error(format!("unknown section {}", shown(line))));
            }
            match list {
                List::Section(section) => section(&mut rules).push(line.to_owned()),
                List::Kind(kind) => rules.kinds.add(kind, line),
            }
        }
        Ok(rules)
    }

    /// Adds the patterns of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.modules.extend_from_slice(&other.modules);
        self.files.extend_from_slice(&other.files);
        self.file_names.extend_from_slice(&other.file_names);
        self.symbols.extend_from_slice(&other.symbols);
        self.functions.extend_from_slice(&other.functions);
        self.allocations.extend_from_slice(&other.allocations);
        self.functions_rust.extend_from_slice(&other.functions_rust);
        self.functions_cpp.extend_from_slice(&other.functions_cpp);
        self.functions_swift.extend_from_slice(&other.functions_swift);
        self.modules_swift.extend_from_slice(&other.modules_swift);
        self.functions_go.extend_from_slice(&other.functions_go);
        self.kinds.extend(&other.kinds);
    }

    /// What allocations are.
    pub(crate) fn kinds(&self) -> &KindRules {
        &self.kinds
    }

    /// Whether a module is listed, by its path.
    pub fn lists_module(&self, path: &str) -> bool {
        let file_name = path.rsplit_once('/').map_or(path, |(_, file_name)| file_name);
        self.modules
            .iter()
            .any(|pattern| glob::matches(pattern, if pattern.contains('/') { path } else { file_name }))
    }

    /// Whether a function is listed, by its file or one of its names.
    pub fn lists_function(&self, function: &Function) -> bool {
        if any(&self.files, &function.file)
            || (!function.file.contains('/') && any(&self.file_names, &function.file))
            || self.allocates(function)
            || any(&self.symbols, &function.system_name)
            || any(&self.functions, &function.name)
        {
            return true;
        }
        let name = function.name.as_str();
        match language(function) {
            Language::Rust => self.lists_rust(name),
            Language::Cpp { mangled: true } => false,
            Language::Cpp { mangled: false } => any(&self.functions_cpp, name),
            Language::Swift => self.lists_swift(name),
            Language::Go => any(&self.functions_go, name),
            Language::Other => {
                self.lists_rust(name) || any(&self.functions_cpp, name) || self.lists_swift(name)
            }
        }
    }

    /// Whether a function is listed as one that does nothing but allocate.
    pub fn allocates(&self, function: &Function) -> bool {
        any(&self.allocations, &function.name)
    }

    /// Whether the lists hold a Rust function: both the type and the trait, where its name has them.
    fn lists_rust(&self, name: &str) -> bool {
        match qualified(name) {
            Some((of_type, of_trait)) => {
                self.lists_rust_type(of_type)
                    && of_trait.is_none_or(|of_trait| self.lists_rust_type(of_trait))
            }
            None => any(&self.functions_rust, name),
        }
    }

    /// Whether the lists hold a Swift function, or the module that declares it.
    fn lists_swift(&self, name: &str) -> bool {
        any(&self.functions_swift, name)
            || swift_name::module(name).is_some_and(|module| any(&self.modules_swift, module))
    }

    fn lists_rust_type(&self, of_type: &str) -> bool {
        type_path(of_type).is_none_or(|path| self.lists_rust(path))
    }
}

fn any(patterns: &[String], text: &str) -> bool {
    !text.is_empty() && patterns.iter().any(|pattern| glob::matches(pattern, text))
}

/// A line for a message: short, and with everything in it visible.
fn shown(line: &str) -> String {
    const SHOWN: usize = 60;
    let mut text = line.chars().take(SHOWN).collect::<String>().escape_debug().to_string();
    if line.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, system_name: &str, file: &str) -> bool {
        Rules::embedded().lists_function(&Function {
            name: name.into(),
            system_name: if system_name.is_empty() { name.into() } else { system_name.into() },
            file: file.into(),
            ..Function::default()
        })
    }

    #[test]
    fn the_embedded_file_is_valid() {
        let rules = Rules::parse(EMBEDDED).unwrap();
        assert!(rules.modules.contains(&"[vdso]".to_owned()));
        assert!(!rules.functions_swift.is_empty());
    }

    #[test]
    fn rust_paths_are_judged_by_type_and_trait() {
        for std in [
            "alloc::vec::Vec<T,A>::push",
            "<alloc::string::String as core::clone::Clone>::clone",
            "<T as core::convert::Into<U>>::into",
            "<[T]>::to_vec",
            "<&mut core::iter::Map<I, F> as core::iter::Iterator>::next",
            "<<alloc::vec::Vec<T> as core::ops::Deref>::Target as core::fmt::Debug>::fmt",
            "std::rt::lang_start::{{closure}}",
            "hashbrown::raw::RawTable<T,A>::reserve_rehash",
            "__rust_alloc",
            "__rustc::__rust_realloc",
        ] {
            assert!(listed(std, "_RNv", ""), "{std}");
        }
        for user in [
            "mine::Header::push_value",
            "<mine::Header as core::clone::Clone>::clone",
            "<alloc::vec::Vec<T> as mine::Extend>::extend",
            "<&[mine::Header] as core::fmt::Debug>::fmt",
            "serde_json::to_string",
            "stdx::foo",
            "coreutils::main",
        ] {
            assert!(!listed(user, "_RNv", ""), "{user}");
        }
    }

    #[test]
    fn a_blanket_impl_is_known_by_its_file() {
        let name = "<mine::Header as alloc::string::ToString>::to_string";
        assert!(!listed(name, "_RNv", "src/header.rs"));
        assert!(listed(name, "_RNv", "/rustc/0123/library/alloc/src/string.rs"));
        assert!(listed(
            "push",
            "",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs"
        ));
    }

    #[test]
    fn cpp_is_judged_by_its_mangled_name() {
        assert!(listed("std::vector<int>::push_back(int&&)", "_ZNSt6vectorIiSaIiEE9push_backEOi", ""));
        assert!(listed("std::string::reserve(unsigned long)", "_ZNSs7reserveEm", ""));
        assert!(listed("operator new(unsigned long)", "_Znwm", ""));
        // A user's template function whose return type is std's.
        assert!(!listed("std::string make<int>(int)", "_Z4makeIiESsT_", ""));
        // A user's namespace that has the name of a Rust crate.
        assert!(!listed("core::Parser::parse()", "_ZN4core6Parser5parseEv", ""));
        assert!(listed("_M_realloc_insert", "", "/usr/include/c++/12/bits/vector.tcc"));
        assert!(!listed("mine::grow", "", "/src/vector.cc"));
    }

    /// As valgrind writes them: inlined functions by their last name, files without folder.
    #[test]
    fn sources_without_folder_are_known_by_their_name() {
        for (name, file) in [
            ("allocate", "new_allocator.h"),
            ("_M_allocate_node<std::tuple<> >", "hashtable_policy.h"),
            ("operator[]", "unordered_map.h"),
            ("operator()", "std_function.h"),
            ("alloc", "library/alloc/src/alloc.rs"),
            ("UnknownInlinedFun", "library/core/src/ops/function.rs"),
            ("strdup", "strdup.c"),
            ("_dl_init", "dl-init.c"),
            ("call_init", "./elf/dl-init.c"),
            ("pthread_create@@GLIBC_2.34", "pthread_create.c"),
        ] {
            assert!(listed(name, "", file), "{name} {file}");
        }
        for (name, file) in [
            ("grow", "src/hashtable.h"),
            ("grow", "/p/vector.tcc"),
            ("string", "string.c"),
            ("alloc", "src/library/alloc/src/alloc.rs"),
        ] {
            assert!(!listed(name, "", file), "{name} {file}");
        }
    }

    #[test]
    fn go_is_judged_by_its_package() {
        for (name, file) in [
            ("strings.(*Builder).grow", "/usr/lib/go-1.19/src/strings/builder.go"),
            ("strings.Repeat", "strings/strings.go"),
            ("encoding/json.Marshal", "/usr/local/go/src/encoding/json/encode.go"),
            ("slices.Grow[go.shape.int]", "slices/slices.go"),
            ("runtime.goexit", "runtime/asm_amd64.s"),
            ("internal/poll.(*FD).Read", "internal/poll/fd_unix.go"),
            (
                "vendor/golang.org/x/net/http2/hpack.NewDecoder",
                "vendor/golang.org/x/net/http2/hpack/hpack.go",
            ),
        ] {
            assert!(listed(name, "", file), "{name}");
        }
        for (name, file) in [
            ("main.extra", "extra.go"),
            ("github.com/me/strings.Repeat", "/home/me/go/pkg/mod/github.com/me/strings@v1/x.go"),
            ("shop/strings.Repeat", "/home/me/shop/strings/x.go"),
            ("shop.Repeat", "shop/x.go"),
            // A clone that a C compiler made.
            ("log.part.0", "log.c"),
            ("memcpy", "memcpy.s"),
        ] {
            assert!(!listed(name, "", file), "{name}");
        }
    }

    #[test]
    fn c_and_swift() {
        assert!(listed("__libc_start_main_impl", "", ""));
        assert!(listed("xmalloc", "", "lib/xmalloc.c"));
        assert!(!listed("xmalloc_init", "", "lib/xmalloc.c"));
        assert!(listed("swift_allocObject", "", ""));
        assert!(listed("Swift.Array.append(__owned A) -> ()", "$sSa6appendyyxnF", ""));
        assert!(listed(
            "generic specialization <Swift.Int> of Swift.Array.append(__owned A) -> ()",
            "$sSa6appendyyxnFSi_Tg5",
            ""
        ));
        assert!(!listed("(extension in mine):Swift.Array.twice() -> ()", "$sSa4mineE5twiceyyF", ""));
        assert!(!listed("mine.Parser.parse() -> ()", "$s4mine6ParserV5parseyyF", ""));
    }

    #[test]
    fn modules_are_known_by_file_name() {
        let rules = Rules::embedded();
        for path in
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/libc-2.31.so", "/usr/lib/libstdc++.so.6.0.30", "[vdso]"]
        {
            assert!(rules.lists_module(path), "{path}");
        }
        for path in ["/usr/lib/libcurl.so.4", "/opt/libc/bench", "/usr/lib/libmine.so", "/bin/ld-bench"] {
            assert!(!rules.lists_module(path), "{path}");
        }
    }

    #[test]
    fn a_rule_file_with_an_unknown_section_is_refused_by_line() {
        let error = Rules::parse("# x\n[file]\n[modules]\nlibx.so").unwrap_err();
        assert_eq!(error.to_string(), "rule file line 3: unknown section [modules]");
        let error = Rules::parse("libx.so").unwrap_err();
        assert_eq!(error.to_string(), "rule file line 1: libx.so stands before the first section");
        let error = Rules::parse(&"\0".repeat(5000)).unwrap_err().to_string();
        assert!(error.len() < 200 && error.contains("\\0…"), "{error}");
    }

    #[test]
    fn a_users_rules_are_added() {
        let mut rules = Rules::embedded().clone();
        rules.extend(&Rules::parse("[function]\nmine::wrap*\n[module]\n/opt/own/*").unwrap());
        assert!(rules.lists_function(&Function { name: "mine::wrap_vec".into(), ..Function::default() }));
        assert!(rules.lists_module("/opt/own/lib.so"));
    }
}
