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
    let program = Foreign::named(name);
    let modes: &[bool] = if program.has_children { &[false, true] } else { &[false] };
    for follows in modes {
        let Some(measure) = program.measure(COUNTER.get_or_init(Counter::build), *follows) else { return };
        assert!(measure.events > 0, "{name}: nothing was recorded");
        assert_eq!(
            measure.problems(),
            [""; 0],
            "{name}, its children {}followed",
            if *follows { "" } else { "not " }
        );
    }
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
    git_is_exact: "git log";
    jq_is_exact: "jq";
    xz_is_exact: "xz";
    pigz_is_exact: "pigz -p4";
    zstd_is_exact: "zstd -T4";
    openssl_is_exact: "openssl speed";
    node_is_exact: "node";
    a_bash_script_is_exact: "bash";
    git_gc_is_exact: "git gc";
}
