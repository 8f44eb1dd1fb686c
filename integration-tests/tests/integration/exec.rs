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

/// Called as the loader's argument, a program has its own names, and is what its image is called.
#[test]
fn a_program_that_the_loader_is_told_to_start() {
    let Some(scratch) = built("start", &["-O1"]) else { return };
    let outcome = Run::new(&scratch, ["/lib64/ld-linux-x86-64.so.2", "./start"]).run();
    check_start(&outcome);
    check_start(&Run::new(&scratch, ["env", "/lib64/ld-linux-x86-64.so.2", "./start"]).run());
    assert_eq!(outcome.json["images"][0]["name"], "start", "{}", outcome.json["images"]);
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

/// What is wrong with the image that a program went on to is not said of the program.
#[test]
fn an_image_with_a_malloc_of_its_own_is_named() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write(
        "own.c",
        "#include <stddef.h>\nstatic char pool[1 << 20];\nstatic size_t at;\n\
         void *malloc(size_t size) { at += (size + 15) & ~15ul; return pool + at - ((size + 15) & ~15ul); }\n\
         void free(void *block) { (void)block; }\nint main(void) { free(malloc(20)); return 0; }\n",
    );
    scratch.shell("gcc -O1 -fno-builtin -o own own.c");
    let outcome = Run::new(&scratch, ["sh", "-c", "exec ./own"]).run();
    assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    let says = format!("`{}` does not call the recorder's malloc", scratch.path("own").display());
    assert!(outcome.stderr.contains(&says), "{}", outcome.stderr);
}

/// What the caller handed down must not change what becomes of the run.
#[test]
fn a_caller_that_ignores_its_children_and_a_small_stack() {
    let Some(scratch) = built("start", &["-O1"]) else { return };
    check_start(&Run::new(&scratch, ["./start"]).behind_shell("trap '' CHLD; exec \"$@\"").run());
    check_start(&Run::new(&scratch, ["./start"]).behind_shell("ulimit -s 64; exec \"$@\"").run());
}
