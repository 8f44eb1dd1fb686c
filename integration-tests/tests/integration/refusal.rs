//! Programs that cannot be recorded, or only in part: each kind is said by name, with what to do, by `heaptally run` and
//! beforehand by `heaptally doctor`; the exit code is the documented one.
//!
//! One row of the table is one program. `doctor` looks at the program that `run` starts; what comes later, by an exec,
//! it cannot know.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};

use integration_tests::command::heaptally;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

mod file;
mod heap;
mod program;

/// What `heaptally doctor` says of it.
enum Doctor {
    /// It can be recorded, and of this it warns.
    Yes(&'static [&'static str]),
    /// It cannot, and this is why.
    No(&'static [&'static str]),
}

use Doctor::{No, Yes};

struct Row {
    /// What is needed to make it.
    tools: &'static [&'static str],
    /// The shell commands that make it in an empty folder, where `plain.c` lies.
    make: &'static str,
    program: &'static [&'static str],
    code: i32,
    /// What `run` says.
    says: &'static [&'static str],
    doctor: Doctor,
}

const PLAIN: &str = "#include <stdlib.h>\nint main(int count, char **words) {\n  (void)words;\n  \
                     for (int i = 0; i < 10; i++) free(malloc((size_t)count + i));\n  return 3;\n}\n";
const GO_SOURCE: &str = "package main\nimport \"fmt\"\nfunc main() { fmt.Println(len(make([]byte, 100))) }\n";
const CGO_SOURCE: &str = "package main\n// #include <stdlib.h>\nimport \"C\"\n\
                          func main() { for i := 0; i < 10; i++ { C.free(C.malloc(10)) } }\n";

const fn row(
    tools: &'static [&'static str],
    make: &'static str,
    program: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
    doctor: Doctor,
) -> Row {
    Row { tools, make, program, code, says, doctor }
}

/// A folder with the sources of all programs.
fn folder() -> Scratch {
    const BUMP: &str = "use std::alloc::{GlobalAlloc, Layout};\nuse std::sync::atomic::{AtomicUsize, Ordering::SeqCst};\n\
        unsafe extern \"C\" { fn mmap(at: *mut u8, len: usize, access: i32, flags: i32, file: i32, from: i64) -> *mut u8; }\n\
        struct Bump;\nstatic AT: AtomicUsize = AtomicUsize::new(0);\nunsafe impl GlobalAlloc for Bump {\n\
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {\n\
        if AT.load(SeqCst) == 0 { AT.store(unsafe { mmap(std::ptr::null_mut(), 1 << 24, 3, 0x22, -1, 0) } as usize, SeqCst); }\n\
        let at = AT.load(SeqCst).next_multiple_of(layout.align()); AT.store(at + layout.size(), SeqCst); at as *mut u8 }\n\
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {} }\n#[global_allocator]\nstatic A: Bump = Bump;\n";
    const MI: &str = "use std::alloc::{GlobalAlloc, Layout};\n\
        unsafe extern \"C\" { fn mi_malloc_aligned(size: usize, align: usize) -> *mut u8; fn mi_free(block: *mut u8); }\n\
        struct Mi;\nunsafe impl GlobalAlloc for Mi {\n\
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 { unsafe { mi_malloc_aligned(layout.size(), layout.align()) } }\n\
        unsafe fn dealloc(&self, block: *mut u8, _: Layout) { unsafe { mi_free(block) } } }\n\
        #[global_allocator]\nstatic A: Mi = Mi;\n";
    const COUNTING: &str = "use std::alloc::{GlobalAlloc, Layout, System};\nuse std::sync::atomic::{AtomicUsize, Ordering::Relaxed};\n\
        struct Counting;\nstatic COUNT: AtomicUsize = AtomicUsize::new(0);\nunsafe impl GlobalAlloc for Counting {\n\
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 { COUNT.fetch_add(1, Relaxed); unsafe { System.alloc(layout) } }\n\
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) { unsafe { System.dealloc(block, layout) } } }\n\
        #[global_allocator]\nstatic A: Counting = Counting;\n";
    const MAIN: &str =
        "fn main() { for len in 1..100_usize { std::hint::black_box(Vec::<u8>::with_capacity(len)); } }\n";
    const MI_C: &str = "#include <stddef.h>\nstatic char heap[1 << 24];\nstatic size_t used;\n\
        void *mi_malloc_aligned(size_t size, size_t align) { used = (used + align - 1) / align * align; used += size; \
        return heap + used - size; }\nvoid mi_free(void *block) { (void)block; }\n";
    let scratch = Scratch::new();
    scratch.write("plain.c", PLAIN);
    scratch.write("plain.go", GO_SOURCE);
    scratch.write("cgo.go", CGO_SOURCE);
    scratch.write("mi.c", MI_C);
    scratch.write("plain.rs", MAIN);
    for (name, allocator) in [("bump.rs", BUMP), ("mi.rs", MI), ("counting.rs", COUNTING)] {
        scratch.write(name, format!("{allocator}{MAIN}"));
    }
    scratch
}

/// `heaptally doctor` in the folder: its exit code and output.
fn doctor(scratch: &Scratch, program: &str) -> (Option<i32>, String) {
    let output = Command::new(heaptally())
        .args(["doctor", "--", program])
        .current_dir(scratch.folder())
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn warnings(text: &str) -> Vec<&str> {
    // What is printed last tells of the runs; names and lines are no matter of coverage.
    text.lines().map(str::trim).filter(|line| line.starts_with("warning: ")).collect()
}

fn problems_of_run(row: &Row, outcome: &Outcome) -> Vec<String> {
    let mut problems = Vec::new();
    if outcome.code != row.code {
        problems.push(format!("run: exit code {}, not {}", outcome.code, row.code));
    }
    for word in row.says.iter().filter(|word| !outcome.stderr.contains(**word)) {
        problems.push(format!("run does not say {word:?}"));
    }
    if row.says.is_empty() && !warnings(&outcome.stderr).is_empty() {
        problems.push("run warns".to_owned());
    }
    // One message of what, why and what next; the program's own words and the loader's are not among these.
    let own: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("heaptally: ")).collect();
    if own.len() != 1 {
        problems.push(format!("run has {} messages", own.len()));
    }
    for word in ["ld.so", "panicked", "Segmentation", "relocating"] {
        if outcome.stderr.contains(word) {
            problems.push(format!("{word} in the output"));
        }
    }
    problems
}

fn problems_of_doctor(row: &Row, code: Option<i32>, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (expected, verdict, words) = match row.doctor {
        Yes(words) => (0, "can be recorded: yes", words),
        No(words) => (4, "can be recorded: no", words),
    };
    if code != Some(expected) || !text.starts_with(verdict) {
        problems.push(format!("doctor: exit code {code:?}, not {expected}"));
    }
    for word in words.iter().filter(|word| !text.contains(**word)) {
        problems.push(format!("doctor does not say {word:?}"));
    }
    if words.is_empty() && text.contains("coverage is incomplete") {
        problems.push("doctor warns".to_owned());
    }
    problems
}

/// Makes, runs and examines all programs of a table.
fn check(rows: &[Row]) {
    let mut problems = Vec::new();
    for row in rows {
        if !row.tools.is_empty() && !tool::have(row.tools) {
            continue;
        }
        let scratch = folder();
        // Go's own library is built once.
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/go-cache");
        scratch.shell(&format!("export GOCACHE='{cache}' GO111MODULE=off; {}", row.make));
        let outcome = Run::new(&scratch, row.program).run();
        let (code, text) = doctor(&scratch, row.program[0]);
        let mut of_row = problems_of_run(row, &outcome);
        of_row.extend(problems_of_doctor(row, code, &text));
        if !of_row.is_empty() {
            let of_row = of_row.join("; ");
            problems.push(format!("{} => {:?}: {of_row}\n{}\n{text}", row.make, row.program, outcome.stderr));
        }
    }
    assert!(problems.is_empty(), "{} of {} rows:\n{}", problems.len(), rows.len(), problems.join("\n"));
}

/// Children that the recorder would break are left as they are, and named.
#[test]
fn children_that_cannot_bear_the_recorder() {
    if !tool::have(&["gcc", "musl-gcc"]) {
        return;
    }
    let scratch = folder();
    for compiler in ["musl-gcc", "gcc -fsanitize=address", "gcc -fsanitize=thread"] {
        scratch.shell(&format!("{compiler} -o p plain.c"));
        for script in ["./p; exit $?", "PATH=. p; exit $?"] {
            let outcome = Run::new(&scratch, ["sh", "-c", script]).options(["--follow-children"]).run();
            assert_eq!(outcome.code, 3, "{compiler}, {script}; stderr:\n{}", outcome.stderr);
            assert_eq!(outcome.report().children.text(), "p ×1", "{compiler}, {script}");
        }
    }
}

/// What gains privileges is refused beforehand, and named behind an exec.
#[test]
fn programs_that_gain_privileges() {
    const NOBODY: u32 = 65534;
    if !tool::is_root() {
        println!("skipped: only root can make such programs");
        return;
    }
    if !tool::have(&["gcc", "setpriv"]) {
        return;
    }
    let scratch = folder();
    scratch.shell("gcc -o plain plain.c; cp plain setuid; cp plain setgid; mkdir home; chmod 755 .");
    // The other user has to reach it.
    fs::copy(heaptally(), scratch.path("heaptally")).expect("a copy");
    chown(scratch.path("home"), Some(NOBODY), Some(NOBODY)).expect("chown");
    for (name, mode) in [("setuid", 0o4755), ("setgid", 0o2755)] {
        fs::set_permissions(scratch.path(name), fs::Permissions::from_mode(mode)).expect("permissions");
    }
    let as_nobody = |words: &[&str]| {
        let script = "cd \"$1\"; export HOME=$1/home XDG_CACHE_HOME=; shift; exec setpriv --reuid=65534 --regid=65534 \
                      --clear-groups \"$@\"";
        let output = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(scratch.folder())
            .args(words)
            .stdin(Stdio::null())
            .output()
            .expect("sh starts");
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text)
    };
    let expect = |words: &[&str], code: i32, says: &[&str]| {
        let (found, text) = as_nobody(words);
        assert_eq!(found, Some(code), "{words:?}:\n{text}");
        for word in says {
            assert!(text.contains(word), "{words:?} does not say {word:?}:\n{text}");
        }
    };
    let run = ["./heaptally", "run", "-o", "home/p.pb.gz", "--"];
    let of = |program: &[&'static str]| [&run[..], program].concat();
    expect(&of(&["./plain"]), 3, &["all complete"]);
    for name in ["./setuid", "./setgid"] {
        let kind = name.trim_start_matches("./");
        expect(&of(&[name]), 125, &[kind, "AT_SECURE", "record a copy"]);
        expect(&["./heaptally", "doctor", name], 4, &["can be recorded: no", kind, "AT_SECURE"]);
        expect(&of(&["env", name]), 125, &["`env` went on to", kind, "AT_SECURE"]);
    }
    // A mode that lets it be executed and not read.
    fs::set_permissions(scratch.path("plain"), fs::Permissions::from_mode(0o711)).expect("permissions");
    expect(&of(&["./plain"]), 125, &["cannot be read", "chmod +r"]);
    expect(&["./heaptally", "doctor", "./plain"], 4, &["can be recorded: no", "cannot be read"]);
    // Another user behind setpriv, from whom the recorder's library is kept.
    fs::set_permissions(scratch.path("plain"), fs::Permissions::from_mode(0o755)).expect("permissions");
    let other = ["setpriv", "--reuid=65534", "--clear-groups", "./plain"];
    let outcome = Run::new(&scratch, other).environment("XDG_CACHE_HOME", scratch.path("cache")).run();
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    for word in [
        "`setpriv` went on to `./plain`",
        "it had changed its user",
        ": setpriv --reuid=65534 --clear-groups heaptally run -- ./plain",
    ] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("ld.so"), "the loader speaks: {}", outcome.stderr);
}

/// A program on a disk from which none can be run.
#[test]
fn a_disk_that_is_mounted_noexec() {
    if !tool::is_root() || !tool::have(&["mount", "umount"]) {
        println!("skipped: only root can mount");
        return;
    }
    let scratch = Scratch::new();
    scratch.shell("mkdir disk && mount -t tmpfs -o noexec,size=1m none disk && cp /bin/true disk/p");
    let outcome = Run::new(&scratch, ["disk/p"]).run();
    let (code, text) = doctor(&scratch, "disk/p");
    scratch.shell("umount disk");
    assert_eq!(outcome.code, 126, "{}", outcome.stderr);
    for (text, words) in
        [(&outcome.stderr, ["mounted noexec", "copy it"]), (&text, ["can be recorded: no", "noexec"])]
    {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    assert_eq!(code, Some(4));
}

/// Its allocations do not come to the recorder, though its library is loaded: a result of 0 would be wrong.
#[test]
fn valgrind_has_a_malloc_of_its_own() {
    if !tool::have(&["valgrind", "gcc"]) {
        return;
    }
    let scratch = folder();
    scratch.shell("gcc -o p plain.c");
    let outcome = Run::new(&scratch, ["valgrind", "-q", "./p"]).run();
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("valgrind"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("a malloc of its own"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("exited with 3"), "{}", outcome.stderr);
}
