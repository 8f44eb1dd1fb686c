//! What compilers wrap around functions of Swift is no difference.

use heaptally_profile::model::{Counts, FrameKind, Function, Line, Location, Profile, Row, Stack, Window};

use super::{compare, entries};

/// A profile of one window. Each line: allocations, then frames from the leaf, parted by `;`; one that begins with `~` is an async
/// caller.
fn profile(rows: &[&str]) -> Profile {
    let mut profile = Profile {
        images: vec![Default::default()],
        windows: vec![Window { name: "w".into(), entries: 1, iterations: 1, ..Window::default() }],
        ..Profile::default()
    };
    for line in rows {
        let mut frames = line.split(';').map(str::trim);
        let allocations: u64 = frames.next().unwrap().parse().unwrap();
        let mut stack = Stack::default();
        for (at, name) in frames.enumerate() {
            let (name, kind) = match name.strip_prefix('~') {
                Some(name) => (name, FrameKind::Async),
                None if at == 0 => (name, FrameKind::EntryPoint),
                None => (name, FrameKind::Return),
            };
            let is_swift = name.contains("a.") || name.contains("thunk");
            profile.functions.push(Function {
                name: name.into(),
                system_name: if is_swift { format!("$s1a{at}") } else { name.into() },
                file: if is_swift { "a.swift".into() } else { String::new() },
                ..Function::default()
            });
            profile.locations.push(Location {
                kind,
                address: profile.locations.len() as u64,
                lines: vec![Line { function: profile.functions.len() - 1, line: 1 }],
                ..Location::default()
            });
            stack.locations.push(profile.locations.len() - 1);
        }
        profile.stacks.push(stack);
        profile.rows.push(Row {
            stack: profile.stacks.len() - 1,
            counts: Counts { allocations, bytes: 8 * allocations, ..Counts::default() },
            entries: Some(1),
            first_entry: Some(1),
            last_entry: Some(1),
            ..Row::default()
        });
    }
    profile.normalize().unwrap();
    profile
}

/// Stacks of one program, and of the same in another build.
const BUILDS: [(&str, &str); 7] = [
    (
        "3; malloc; swift_allocObject; a.f(x: Swift.Int) -> (); main",
        "3; malloc; swift_allocObject; generic specialization <Swift.Int> of a.f(x: Swift.Int) -> (); a.f(x: Swift.Int) -> (); main",
    ),
    (
        "4; malloc; closure #1 () -> () in a.g() -> (); a.g() -> (); main",
        "4; malloc; closure #1 () -> () in a.g() -> (); partial apply forwarder for closure #1 () -> () in a.g() -> (); \
         reabstraction thunk helper from @escaping () -> () to @escaping () -> (@out ()); a.g() -> (); main",
    ),
    (
        "5; malloc; a.T.h(x: Swift.Int) -> (); main",
        "5; malloc; protocol witness for a.P.h(x: Swift.Int) -> () in conformance a.T : a.P in a; main",
    ),
    (
        "6; malloc; a.T.i(x: a.U) -> (); main",
        "6; malloc; merged a.T.i(x: a.U) -> (); dispatch thunk of a.T.i(x: a.U) -> (); main",
    ),
    (
        "7; malloc; (1) suspend resume partial function for a.j() async -> (); ~(3) await resume partial function for a.k() async -> ()",
        "7; malloc; (2) suspend resume partial function for a.j() async -> (); ~(1) await resume partial function for \
         function signature specialization <Arg[0] = Dead> of a.k() async -> ()",
    ),
    (
        "8; malloc; closure #1 () -> () in a.l() -> (); a.l() -> (); main",
        "8; malloc; closure #2 () -> () in a.l() -> (); a.l() -> (); main",
    ),
    (
        "9; malloc; a.m() -> (); a.m() -> (); main",
        "9; malloc; function signature specialization <Arg[0] = Dead> of a.m() -> (); function signature specialization <Arg[0] = Dead> \
         of a.m() -> (); main",
    ),
];

#[test]
fn wrappings_are_no_difference() {
    for (one, other) in BUILDS {
        let [base, change] = [profile(&[one]), profile(&[other])];
        let diff = compare(&base, &change);
        assert_eq!(entries(&diff), [""; 0], "{one}\n{other}");
        assert_eq!(
            (diff.windows[0].pairing.unchanged, diff.windows[0].pairing.equal),
            (1, 1),
            "{one}\n{other}"
        );
    }
    let all = |side: fn(&(&'static str, &'static str)) -> &'static str| {
        profile(&BUILDS.iter().map(side).collect::<Vec<_>>())
    };
    let [base, change] = [all(|(one, _)| one), all(|(_, other)| other)];
    assert_eq!(entries(&compare(&base, &change)), [""; 0]);
    assert_eq!(entries(&compare(&change, &base)), [""; 0]);
}

/// Another depth of a recursion, and another function, are differences as ever.
#[test]
fn functions_are_differences() {
    for (one, other) in [
        ("2; malloc; a.f() -> (); main", "2; malloc; partial apply forwarder for a.g() -> (); main"),
        ("2; malloc; a.f() -> (); main", "2; malloc; a.f() -> (); a.f() -> (); main"),
        ("2; malloc; a.f(Swift.Int) -> (); main", "2; malloc; a.f(Swift.String) -> (); main"),
    ] {
        let [base, change] = [profile(&[one]), profile(&[other])];
        let window = &compare(&base, &change).windows[0];
        assert_eq!(window.pairing.equal, 0, "{one}\n{other}");
    }
}
