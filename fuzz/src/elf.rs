//! Small ELF files of a C and a C++ compiler.

use std::fs;
use std::path::Path;
use std::process::Command;

const C: &str = "
static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }
__attribute__((noinline)) static int local(int x) { return twice(x) + 1; }
int exported(int x) { return local(x) + twice(x); }
int alias(int) __attribute__((alias(\"exported\")));
void _start(void) { exported(3); for (;;) {} }
";

const CPP: &str = "
namespace mine {
template <typename T> struct Box {
    T value;
    inline __attribute__((always_inline)) T get() const { return value; }
    __attribute__((noinline)) T add(T other) const { return get() + other; }
};
int parse(const Box<int>& box) { return box.add(1) + [](int x) { return x * 3; }(box.get()); }
}
extern \"C\" void _start() { mine::Box<int> box{2}; mine::parse(box); for (;;) {} }
";

/// Each a program, in another form of debug information.
const FORMS: [(&str, &[&str]); 9] = [
    ("c", &["-g", "-O1"]),
    ("c", &["-gdwarf-4", "-O2"]),
    ("c", &["-gdwarf-3", "-O1", "-gstrict-dwarf"]),
    ("c", &["-g", "-O1", "-gz=zlib", "-Wl,--build-id"]),
    ("c", &["-O1", "-s"]),
    ("c", &["-g", "-O1", "-shared", "-fPIC"]),
    ("c++", &["-g", "-O1"]),
    ("c++", &["-gdwarf-4", "-O2", "-ffunction-sections"]),
    ("c++", &["-g1", "-O1"]),
];

/// The files' bytes. Without a compiler that can build one, fewer.
pub fn files() -> Vec<Vec<u8>> {
    let Ok(folder) = tempfile::tempdir() else { return Vec::new() };
    FORMS.iter().filter_map(|(language, flags)| build(folder.path(), language, flags)).collect()
}

fn build(folder: &Path, language: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let (source, output) = (folder.join("source"), folder.join("program"));
    fs::write(&source, if language == "c" { C } else { CPP }).ok()?;
    let mut compiler = Command::new("gcc");
    compiler.args(["-x", language]).args(flags);
    compiler
        .args(["-nostdlib", "-fno-exceptions", "-z", "noseparate-code"])
        .arg(&source)
        .arg("-o")
        .arg(&output);
    let outcome = compiler.output().ok()?;
    if outcome.status.success() { fs::read(&output).ok() } else { None }
}
