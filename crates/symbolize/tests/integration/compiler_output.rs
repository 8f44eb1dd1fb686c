//! Names as compilers make them: clones, huge ones, lambdas, Rust's two schemes, odd paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use heaptally_profile::model::FrameKind;
use heaptally_symbolize::{Options, Symbolizer};

use crate::build::{Workshop, address_of, frames_of, module_of, names, profile_of, symbolize, symbols_of};

const CLONES: &str = r#"
#include <stdlib.h>
#include <stdio.h>
static void *volatile sink;
static int volatile flag = 1;
__attribute__((noinline)) static void helper(int n, int mode) {
  if (mode == 3) { sink = malloc((size_t)n); free(sink); } else { puts("never"); puts("never2"); abort(); }
}
__attribute__((noinline)) static void big(int n, int m) {
  if (m != 7) abort();
  for (int i = 0; i < n; i++) { sink = malloc((size_t)i + 1); free(sink); }
}
__attribute__((noinline,noclone)) static void drive(void) {
  for (int i = 0; i < 4; i++) helper(i + flag, 3);
  big(1 + flag, 7);
}
int main(void) { drive(); return 0; }
"#;

#[test]
fn clones_of_c_functions_have_the_functions_name() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write("clones.c", CLONES);
    workshop.sh("gcc -O2 -g -o clones clones.c");
    let path = workshop.path("clones");
    let clone = symbols_of(&path).into_iter().find(|symbol| symbol.1.starts_with("helper.")).unwrap();
    assert_eq!(names(&symbolize(&path, &[clone.0])), [["helper"]]);

    workshop.sh("strip -g clones");
    let profile = symbolize(&path, &[clone.0]);
    assert_eq!(names(&profile), [[clone.1]], "as the symbol has it, where there is nothing to demangle");
    assert!(profile.modules[0].symbol_problem.as_ref().unwrap().contains("no debug information"));
}

#[test]
fn clones_of_cpp_functions_are_told_in_brackets() {
    let Some(workshop) = Workshop::with(&["g++"]) else { return };
    workshop.write("clones.cpp", CLONES);
    workshop.sh("g++ -O2 -o clones clones.cpp");
    let path = workshop.path("clones");
    let clone = symbols_of(&path).into_iter().find(|symbol| symbol.1.starts_with("_ZL6helperii.")).unwrap();
    let name = &names(&symbolize(&path, &[clone.0]))[0][0];
    assert!(name.starts_with("helper(int, int) [clone .") && name.ends_with(']'), "{name}");
}

#[test]
fn a_name_of_twenty_kilobytes_comes_whole() {
    let Some(workshop) = Workshop::with(&["g++"]) else { return };
    workshop.write(
        "huge.cpp",
        r#"
template <class A, class B> struct Pair {};
template <int D> struct Deep { using t = Pair<typename Deep<D - 1>::t, typename Deep<D - 1>::t>; };
template <> struct Deep<0> { using t = int; };
template <class T> struct N { __attribute__((noinline)) static void go() { __asm__ volatile(""); } };
int main() { N<Deep<11>::t>::go(); }
"#,
    );
    workshop.sh("g++ -O0 -g -std=c++17 -o huge huge.cpp");
    let path = workshop.path("huge");
    let address = address_of(&path, "1NI4Pair");
    let profile = symbolize(&path, &[address + 4]);
    let name = &names(&profile)[0][0];
    assert!(name.len() > 20_000, "{} bytes", name.len());
    assert!(name.starts_with("N<Pair<Pair<") && name.ends_with(">::go()"));
    assert_eq!(name.matches("int").count(), 2048);
}

#[test]
fn lambdas_are_told_in_full() {
    let Some(workshop) = Workshop::with(&["g++"]) else { return };
    workshop.write(
        "lambda.cpp",
        r#"
#include <functional>
static int volatile sink;
namespace app {
__attribute__((noinline)) void call(const std::function<void(int)> &f) { f(1); }
struct S { void run() { auto f = [this](int n) __attribute__((noinline)) { sink = n; __asm__ volatile(""); }; f(2); call(f); } };
}
int main() { app::S s; s.run(); }
"#,
    );
    workshop.sh("g++ -O0 -g -std=c++17 -o lambda lambda.cpp");
    let path = workshop.path("lambda");
    let lambda = symbols_of(&path).into_iter().find(|symbol| symbol.1.ends_with("ENKUliE_clEi")).unwrap();
    let name = &names(&symbolize(&path, &[lambda.0 + 4]))[0][0];
    assert!(name.starts_with("app::S::run()::{lambda(int)#1}::operator()(int)"), "{name}");
}

const RUST: &str = r#"
pub mod outer { pub mod inner {
    #[inline(never)]
    pub fn generic<T: std::fmt::Debug>(value: &T) -> String { std::hint::black_box(format!("{value:?}")) }
    #[inline(always)]
    pub fn inlined(n: u64) -> String { generic(&(n + 1)) }
}}
fn main() { std::hint::black_box(outer::inner::inlined(std::hint::black_box(3))); std::hint::black_box(outer::inner::generic(&"x")); }
"#;

#[test]
fn rust_names_have_no_hashes_in_either_scheme() {
    let Some(workshop) = Workshop::with(&["rustc"]) else { return };
    workshop.write("names.rs", RUST);
    for scheme in ["", "-Csymbol-mangling-version=v0"] {
        for debuginfo in ["0", "line-tables-only", "1", "2"] {
            workshop.sh(&format!(
                "rustc -O --crate-name names {scheme} -Cdebuginfo={debuginfo} -o names names.rs"
            ));
            let path = workshop.path("names");
            let address = address_of(&path, "7generic");
            let name = names(&symbolize(&path, &[address + 1]))[0].last().unwrap().clone();
            assert!(name.starts_with("names::outer::inner::generic"), "{scheme} {debuginfo}: {name}");
            assert!(!name.contains("::h") && !name.contains('['), "{scheme} {debuginfo}: {name}");
        }
    }
}

#[test]
fn the_compilers_are_named_once_and_in_order() {
    let Some(workshop) = Workshop::with(&["gcc", "g++"]) else { return };
    workshop.write("a.c", "int a(void) { return 1; }");
    workshop.write("b.c", "int b(void) { return 2; }");
    workshop.write("m.cpp", "extern \"C\" int a(); extern \"C\" int b(); int main() { return a() + b(); }");
    workshop.sh("gcc -g -c a.c b.c");
    workshop.sh("g++ -g -o program m.cpp a.o b.o");
    let path = workshop.path("program");
    let compilers = symbolize(&path, &[]).environment.compilers;
    assert_eq!(compilers.len(), 2, "{compilers:?}");
    assert!(compilers[0].starts_with("GNU C++") && compilers[1].starts_with("GNU C1"), "{compilers:?}");
}

#[test]
fn paths_may_have_spaces_backslashes_and_any_bytes() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write("odd.c", CLONES);
    workshop.sh("gcc -O0 -g -o odd odd.c");
    let folder = workshop.path(OsStr::from_bytes(b"dir with space n\xffm \\xff"));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("odd bin");
    std::fs::rename(workshop.path("odd"), &path).unwrap();
    let address = address_of(&path, "drive");
    let profile = symbolize(&path, &[address + 1]);
    assert!(
        profile.modules[0].path.ends_with("dir with space n\\xffm \\\\xff/odd bin"),
        "{}",
        profile.modules[0].path
    );
    assert_eq!(names(&profile), [["drive"]]);

    workshop.run("strip", [OsStr::new("-s"), path.as_os_str()]);
    assert_eq!(names(&symbolize(&path, &[address + 1])), [[format!("odd bin+{address:#x}")]]);
}

#[test]
fn return_addresses_are_looked_up_inside_their_call() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    // The call is the last instruction: the return address is the next function's.
    workshop.write(
        "noreturn.c",
        "#include <stdlib.h>\n\
         __attribute__((noreturn,noinline)) static void end(void) { for (;;) __asm__ volatile(\"\"); }\n\
         __attribute__((noinline)) void caller(void) { end(); }\n\
         __attribute__((aligned(1))) int after(int n) { return n; }\n\
         int main(void) { caller(); return after(1); }\n",
    );
    workshop.sh("gcc -O1 -fno-toplevel-reorder -falign-functions=1 -g -o noreturn noreturn.c");
    let path = workshop.path("noreturn");
    let after = address_of(&path, "after");
    for (kind, name) in [
        (FrameKind::Return, "caller"),
        (FrameKind::FramePointer, "caller"),
        (FrameKind::Interrupted, "after"),
        (FrameKind::Signal, "after"),
        (FrameKind::Async, "after"),
    ] {
        let mut profile = profile_of(module_of(&path), kind, &[after]);
        Symbolizer::new(Options::default()).symbolize(&mut profile);
        assert_eq!(frames_of(&profile)[0].last().unwrap().1, name, "{kind:?}");
    }
}

const COROUTINE: &str = r#"
#include <coroutine>
struct Task {
  struct promise_type {
    int value;
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int n) { value = n; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};
namespace app { Task gen(int n) { for (int i = 0; i < n; i++) co_yield i; } }
int main() { auto task = app::gen(3); task.handle.resume(); task.handle.destroy(); }
"#;

#[test]
fn the_parts_of_a_coroutine_have_its_name() {
    let Some(workshop) = Workshop::with(&["g++"]) else { return };
    workshop.write("coroutine.cpp", COROUTINE);
    for flags in ["-O0 -g", "-O2 -g", "-O0"] {
        workshop.sh(&format!("g++ -std=c++20 {flags} -o coroutine coroutine.cpp"));
        let path = workshop.path("coroutine");
        for part in ["actor", "destroy"] {
            let address = symbols_of(&path)
                .into_iter()
                .find(|symbol| symbol.1.ends_with(&format!(".Frame.{part}")))
                .map(|symbol| symbol.0)
                .unwrap();
            let name = names(&symbolize(&path, &[address + 4]))[0].last().unwrap().clone();
            assert_eq!(name, format!("app::gen(int) [clone .{part}]"), "{flags}");
        }
    }
}

#[test]
fn the_last_address_of_all_is_looked_up_and_has_no_name() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write("plain.c", "int main(void) { return 0; }\n");
    workshop.sh("gcc -g -o plain plain.c");
    let path = workshop.path("plain");
    let main = address_of(&path, "main");
    assert_eq!(names(&symbolize(&path, &[main, u64::MAX])), [vec!["main".to_owned()], Vec::new()]);
}
