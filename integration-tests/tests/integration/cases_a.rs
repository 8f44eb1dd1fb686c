//! Group A: interposition, start-up, threads, processes.

use integration_tests::check::Tolerance;
use integration_tests::run::Run;

use crate::standard;

macro_rules! plain {
    ($($name:ident: $id:literal, $code:literal;)*) => {
        $(#[test]
        fn $name() {
            standard::case($id, $code);
        })*
    };
}

plain! {
    a01_a_constructor_allocates_before_the_recorder_is_ready: "A01", 0;
    a02_a_window_opens_before_any_constructor: "A02", 0;
    a03_a_resolver_allocates_while_relocations_run: "A03", 0;
    a05_a_signal_handler_on_a_small_stack: "A05", 0;
    a06_signals_interrupt_the_hook: "A06", 0;
    a15_fibers: "A15", 0;
    a17_system_calls_are_denied: "A17", 7;
    a19_a_thread_allocates_while_a_library_is_loaded: "A19", 0;
    a20_thread_local_storage_allocates: "A20", 0;
    a21_coroutine_frames: "A21", 0;
    a22_children_do_not_add: "A22", 0;
}

/// The busy thread's own allocations lie in the window too, any number of them.
#[test]
fn a07_fork_while_a_thread_allocates() {
    let tolerance = Tolerance { other_rows: true, ..Tolerance::default() };
    let Some(outcome) = standard::case_with("A07", 0, tolerance) else { return };
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("child_work"), 0, "children added to their parent:\n{}", window.text());
    let known = window.calls_with("parent_work") + window.calls_with("churn");
    assert_eq!(known, window.calls(), "{}", window.text());
}

/// The image before the exec is as it was; the one after it either has its own window or none.
#[test]
fn a09_exec_in_an_open_window() {
    let Some((case, scratch)) = standard::build("A09") else { return };
    let outcome = Run::new(&scratch, [case.program()]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    let first = report.window("first");
    assert_eq!(first.calls(), 5, "{}", first.text());
    assert_eq!(first.calls_with("before_exec"), 5, "{}", first.text());
    assert_eq!(report.losses_text(), "");
    let second = report.window("second");
    assert_eq!((second.calls(), second.calls_with("after_exec")), (2, 2), "{}", second.text());
}

/// Direct calls of an object that binds to libc's own malloc cannot be seen: then there must be a warning.
#[test]
fn a10_a_deepbind_plugin() {
    let Some((case, scratch)) = standard::build("A10") else { return };
    let outcome = Run::new(&scratch, [case.program()]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("own"), 1, "{}", window.text());
    assert_eq!(window.calls_with("plug_dup"), 1, "{}", window.text());
    let is_warned = outcome.report().warnings().iter().any(|warning| warning.contains("DEEPBIND"))
        || outcome.stderr.contains("DEEPBIND");
    match window.calls() {
        5 => assert_eq!(window.calls_with("plug_alloc"), 3, "{}", window.text()),
        2 => assert!(is_warned, "3 calls are missing and nothing says so:\n{}", outcome.stderr),
        _ => panic!("{}", window.text()),
    }
}

#[test]
fn a12_a_static_executable_is_refused() {
    standard::refused("A12", &["static"]);
}

#[test]
fn a13_a_program_with_its_own_malloc_is_refused() {
    standard::refused("A13", &["malloc"]);
}

#[test]
fn a23_an_address_sanitizer_build_is_refused() {
    standard::refused("A23", &["AddressSanitizer"]);
}
