//! Programs that replace themselves: each image is recorded, and sees nothing of it.

use integration_tests::check::{self, Tolerance};
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn built(name: &str, flags: &[&str]) -> Option<Scratch> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, &format!("{name}.c"), name, flags);
    Some(scratch)
}

fn check_start(outcome: &Outcome) {
    assert_eq!(outcome.code, 3, "stderr:\n{}", outcome.stderr);
    let expected = check::expectation("start: total=4 [4* main -> work -> malloc]");
    check::window(outcome.report(), &expected, Tolerance::default());
}

#[test]
fn wrappers_are_followed() {
    let Some(scratch) = built("start", &["-O1"]) else { return };
    check_start(&Run::new(&scratch, ["env", "X=1", "./start"]).run());
    check_start(&Run::new(&scratch, ["nice", "-n", "1", "env", "./start"]).run());
    check_start(&Run::new(&scratch, ["sh", "-c", "exec ./start"]).run());
}

/// What came before the exec is told apart, and the numbers add up.
#[test]
fn what_came_before_an_exec_is_told_apart() {
    let Some(scratch) = built("start", &["-O1"]) else { return };
    for options in [&[][..], &["--follow-children"]] {
        let outcome = Run::new(&scratch, ["env", "X=1", "./start"]).options(options.iter().copied()).run();
        check_start(&outcome);
        let all = outcome.status["recorder"]["allocations"].as_u64().expect("a number");
        assert!(all > 4, "env allocates");
        let line =
            format!(" 4 allocations, 1 stack, all complete; before the windows: {} allocations", all - 4);
        assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);
        if let Some(process) = outcome.status["processes"].get(0) {
            assert_eq!(process["allocations"], all);
        }
    }
}

/// The kernel takes the loader for the program then.
#[test]
fn a_program_that_its_loader_is_called_with() {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    let Some(scratch) = built("start", &["-O1", "-g"]) else { return };
    for words in [&[LOADER, "./start"][..], &["env", LOADER, "./start"], &["sh", "-c", "./start; exit 3"]] {
        let outcome = Run::new(&scratch, words.iter().copied()).options(["--follow-children"]).run();
        check_start(&outcome);
        let report = outcome.report();
        assert!(report.images.iter().any(|image| image.label == "start"), "{words:?}: {:?}", report.images);
        assert!(report.images.iter().all(|image| !image.label.starts_with("ld-")), "{:?}", report.images);
    }
}

/// The image that has a malloc of its own is named, not the one that went on to it.
#[test]
fn an_image_with_a_malloc_of_its_own_is_named() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write(
        "own.c",
        "#include <stddef.h>\nstatic char pool[1 << 16];\nstatic size_t used;\n\
         void *malloc(size_t size) { void *block = pool + used; used += (size + 15) & ~15ul; return block; }\n\
         void free(void *block) { (void)block; }\n\
         int main(void) { char *volatile block = malloc(10); *block = 3; return *block; }\n",
    );
    scratch.shell("gcc -O1 -o own own.c");
    let outcome = Run::new(&scratch, ["sh", "-c", "exec ./own"]).run();
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    for words in
        ["/own`, to which `sh` went on by exec, does not call the recorder's malloc", "it exited with 3"]
    {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
}

/// AddressSanitizer ends a program in which it does not come first; one that preloads it is left alone, and said.
#[test]
fn an_image_that_preloads_a_sanitizer() {
    let Some(scratch) = built("start", &["-O1"]) else { return };
    scratch.shell("cp -L \"$(gcc -print-file-name=libasan.so)\" libasan.so.8 || :");
    if !scratch.path("libasan.so.8").exists() {
        println!("skipped: this gcc has no libasan");
        return;
    }
    let list = format!("LD_PRELOAD={}", scratch.path("libasan.so.8").display());
    let outcome = Run::new(&scratch, ["env", &list, "./start"]).run();
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    for words in ["it exited with 3", "the library of AddressSanitizer, which must come first"] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let script = format!("{list} ./start");
    let outcome = Run::new(&scratch, ["sh", "-c", &script]).options(["--follow-children"]).run();
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert_eq!(outcome.report().children.text(), "start ×1");
}

#[test]
fn lists_of_arguments_arrive() {
    let Some(scratch) = built("exec_list", &["-O1"]) else { return };
    for (argument, code, stdout) in [("", 3, ""), ("e", 0, "A=1\n"), ("p", 0, "abcdefgh")] {
        let mut words = vec!["./exec_list"];
        words.extend(Some(argument).filter(|word| !word.is_empty()));
        let outcome = Run::new(&scratch, words).run();
        assert_eq!(outcome.code, code, "{argument}; stderr:\n{}", outcome.stderr);
        assert_eq!(String::from_utf8_lossy(&outcome.stdout), stdout, "{argument}");
    }
}

#[test]
fn an_image_that_cannot_be_recorded_is_said() {
    let Some(scratch) = built("start", &["-static"]) else { return };
    let outcome = Run::new(&scratch, ["sh", "-c", "exec ./start"]).run();
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
}

/// What the caller handed down must not change what becomes of the run.
#[test]
fn a_caller_that_ignores_its_children_and_a_small_stack() {
    let Some(scratch) = built("start", &["-O1"]) else { return };
    check_start(&Run::new(&scratch, ["./start"]).behind_shell("trap '' CHLD; exec \"$@\"").run());
    check_start(&Run::new(&scratch, ["./start"]).behind_shell("ulimit -s 64; exec \"$@\"").run());
}
