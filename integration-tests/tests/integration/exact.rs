//! Programs of the system: nothing is changed, nothing is missed.

use std::sync::OnceLock;

use integration_tests::counter::Counter;
use integration_tests::exact::Foreign;
use integration_tests::tool;

fn exact(name: &str) {
    static COUNTER: OnceLock<Counter> = OnceLock::new();
    if !tool::have(&["gcc"]) {
        return;
    }
    let Some(measure) = Foreign::named(name).measure(COUNTER.get_or_init(Counter::build)) else { return };
    assert!(measure.is_same_output, "{name}: output or exit code differ");
    assert!(measure.is_counted(), "{name}: {} recorded, {:?} counted", measure.events, measure.behind);
    assert!(
        measure.is_same_calls || !measure.is_deterministic,
        "{name}: under the recorder\n{:?}, alone\n{:?}",
        measure.behind,
        measure.alone
    );
    assert_eq!(measure.reentrant, 0, "{name}");
    assert_eq!(measure.losses, "", "{name}");
    assert!(
        measure.complete_share() >= 0.999,
        "{name}: {} of {} complete, for instance not\n{}",
        measure.complete,
        measure.events,
        measure.incomplete
    );
}

macro_rules! programs {
    ($($test:ident: $name:literal;)*) => {
        $(#[test]
        fn $test() {
            exact($name);
        })*
    };
}

programs! {
    python_is_exact: "python3";
    perl_is_exact: "perl";
    sqlite_is_exact: "sqlite3";
    the_c_compiler_is_exact: "cc1";
    the_cpp_compiler_is_exact: "cc1plus";
    git_is_exact: "git";
    jq_is_exact: "jq";
    xz_is_exact: "xz";
}
