//! Names by hand, names by chance, and those of Swift's own demangler.

use proptest::prelude::*;

use super::*;

#[test]
fn functions_lose_modules_types_and_results() {
    for (full, short) in [
        ("a.f() -> ()", "f()"),
        ("a.f(Swift.Int, x: [Swift.Int]) async throws -> Swift.Int", "f(_:x:)"),
        ("a.T.f(_: (Swift.Int) -> Swift.Int) -> ()", "T.f(_:)"),
        ("a.T.__allocating_init(Swift.Int) -> a.T", "T.__allocating_init(_:)"),
        ("a.T.deinit", "T.deinit"),
        ("a.T.x.getter : Swift.Int", "T.x.getter"),
        ("a.T.subscript.getter : (Swift.Int) -> Swift.String", "T.subscript.getter"),
        ("static a.T.f() -> ()", "static T.f()"),
        ("static a.T.== infix(a.T, a.T) -> Swift.Bool", "static T.== infix(_:_:)"),
        ("static a.T.< infix(a.T, a.T) -> Swift.Bool", "static T.< infix(_:_:)"),
        ("(extension in b):a.T.f() -> ()", "T.f()"),
        ("(extension in b):a.T< where A: a.P>.f() -> ()", "T<>.f()"),
        ("a.T<A>.f<A where A1: Swift.Hashable>(_: A1) -> ()", "T<A>.f<A>(_:)"),
        ("a.(T in _0123ABCD).f() -> ()", "T.f()"),
        ("a.T.(f in _0123ABCD)(Swift.Int) -> ()", "T.f(_:)"),
        ("closure #1 (Swift.Int) -> () in a.f() -> ()", "closure #1 in f()"),
        ("implicit closure #2 @Sendable () async -> a.T in a.f() -> ()", "implicit closure #2 in f()"),
        ("closure #1 () -> () in closure #2 () -> () in a.f() -> ()", "closure #1 in closure #2 in f()"),
        ("local #1 (x: Swift.Int) -> () in a.f() -> ()", "local #1 (x:) in f()"),
        ("default argument 1 of a.f(x: Swift.Int) -> ()", "default argument 1 of f(x:)"),
        ("type metadata accessor for a.T.U", "type metadata accessor for T.U"),
        ("outlined copy of a.T?", "outlined copy of T?"),
        ("destroy value witness for a.T", "destroy for T"),
        ("main", "main"),
        ("", ""),
    ] {
        assert_eq!(simplified(full), short, "{full}");
    }
}

#[test]
fn wrappings_are_told_and_left_out() {
    use Wrapping::*;
    let spec = "function signature specialization <Arg[0] = [Closure Propagated : $s1a, Argument Types : [Swift.Int]> of ";
    for (full, expected, short, function_within) in [
        ("merged a.f() -> ()", vec![Merged], "f()", "f()"),
        ("(3) await resume partial function for a.f() -> ()", vec![Part], "f()", "f()"),
        ("(1) suspend resume partial function for a.f() -> ()", vec![Part], "f()", "f()"),
        (
            "generic specialization <Swift.Int> of a.f<A>(A) -> ()",
            vec![Specialized],
            "specialized f<A>(_:)",
            "f<A>(_:)",
        ),
        (&format!("{spec}{spec}a.f() -> ()"), vec![Specialized, Specialized], "specialized f()", "f()"),
        ("partial apply forwarder for a.f() -> ()", vec![PartialApply], "partial apply for f()", "f()"),
        ("dispatch thunk of a.T.f() -> ()", vec![DispatchThunk], "dispatch thunk of T.f()", "T.f()"),
        ("@objc a.T.f() -> ()", vec![ObjectiveC], "@objc T.f()", "T.f()"),
        ("vtable thunk for a.T.f() -> () dispatching to a.U.f() -> ()", vec![TableThunk], "U.f()", "U.f()"),
        (
            "protocol witness for a.P.f(x: A) -> () in conformance b.T : a.P in b",
            vec![Witness],
            "protocol witness for P.f(x:) in conformance T",
            "T.f(x:)",
        ),
        (
            "protocol witness for Swift.Decodable.init(from: Swift.Decoder) throws -> A in conformance b.T : Swift.Decodable in b",
            vec![Witness],
            "protocol witness for Decodable.init(from:) in conformance T",
            "T.init(from:)",
        ),
        (
            "protocol witness for Swift.Error._code.getter : Swift.Int in conformance b.T : Swift.Error in b",
            vec![Witness],
            "protocol witness for Error._code.getter in conformance T",
            "T._code.getter",
        ),
        (
            "merged protocol witness for static Swift.Equatable.== infix(A, A) -> Swift.Bool in conformance b.T : Swift.Equatable in b",
            vec![Merged, Witness],
            "protocol witness for static Equatable.== infix(_:_:) in conformance T",
            "static T.== infix(_:_:)",
        ),
        (
            "(1) await resume partial function for partial apply forwarder for reabstraction thunk helper <A> from @escaping @callee_guaranteed () -> (@out A) to @escaping () -> ()",
            vec![Part, PartialApply, Reabstraction],
            "partial apply for thunk for @escaping @callee_guaranteed () -> (@out A)",
            "",
        ),
        ("outlined destroy of a.T", vec![Outlined], "outlined destroy of T", ""),
        ("destroy value witness for a.T", vec![ValueWitness], "destroy for T", ""),
        (
            "one-time initialization function for x",
            vec![OneTime],
            "one-time initialization function for x",
            "x",
        ),
        ("async_MainTQ1_", vec![], "async_MainTQ1_", "async_Main"),
        ("async_Main", vec![], "async_Main", "async_Main"),
        (
            "partial apply forwarder for ",
            vec![],
            "partial apply forwarder for ",
            "partial apply forwarder for ",
        ),
    ] {
        assert_eq!(wrappings(full), expected, "{full}");
        assert_eq!(simplified(full), short);
        assert_eq!(function(full), function_within, "{full}");
    }
}

#[test]
fn full_names_are_compared_without_wrappings() {
    for (full, compared) in [
        ("merged a.f(Swift.Int) -> ()", "a.f(Swift.Int) -> ()"),
        (
            "protocol witness for a.P.f(x: Swift.Int) -> () in conformance b.T : a.P in b",
            "b.T.f(x: Swift.Int) -> ()",
        ),
        ("protocol witness for static a.P.f() -> () in conformance b.T : a.P in b", "static b.T.f() -> ()"),
        ("outlined copy of a.T", "outlined copy of a.T"),
        ("a.f() -> ()", "a.f() -> ()"),
        ("async_MainTY0_", "async_Main"),
    ] {
        assert_eq!(full_function(full), compared);
    }
}

#[test]
fn ends_of_mangled_names_tell_wrappings() {
    use Wrapping::*;
    for (mangled, base, expected) in [
        ("$s1a1fyyFTA", "$s1a1fyyF", vec![PartialApply]),
        ("$s1a1fyyYaFTQ12_", "$s1a1fyyYaF", vec![Part]),
        ("$s1a1fyyYaFTATQ0_", "$s1a1fyyYaF", vec![Part, PartialApply]),
        ("$s1a1fyyYaFTY0_", "$s1a1fyyYaF", vec![Part]),
        ("$s1a1fyyFTm", "$s1a1fyyF", vec![Merged]),
        ("$s1a1fyyF", "$s1a1fyyF", vec![]),
        ("$sTA", "$sTA", vec![]),
        ("$s1a1fyyFTQ_", "$s1a1fyyFTQ_", vec![]),
    ] {
        assert_eq!((function(mangled).as_str(), wrappings(mangled)), (base, expected), "{mangled}");
        assert_eq!(full_function(mangled), base);
    }
}

#[test]
fn a_function_belongs_to_a_module() {
    for (name, expected) in [
        ("a.f() -> ()", Some("a")),
        ("static a.T.f() -> ()", Some("a")),
        ("closure #1 (Swift.Int) -> () in closure #2 () -> () in a.f() -> ()", Some("a")),
        ("implicit closure #1 (Swift.Int) -> () in a", Some("a")),
        ("(extension in a):Swift.Array.f() -> ()", Some("a")),
        (
            "(2) suspend resume partial function for static (extension in Swift):Swift.Task< where A == Swift.Never>.yield() async -> ()",
            Some("Swift"),
        ),
        ("generic specialization <a.T> of Swift.Array.append(__owned A) -> ()", Some("Swift")),
        (
            "protocol witness for Swift.Encodable.encode(to: Swift.Encoder) throws -> () in conformance a.T : Swift.Encodable in a",
            Some("a"),
        ),
        ("default argument 1 of a.f(x: Swift.Int) -> ()", Some("a")),
        ("helper #1 () -> () in a.f() -> ()", Some("a")),
        ("outlined copy of a.T", None),
        ("reabstraction thunk helper from @escaping () -> () to @escaping () -> (@out ())", None),
        ("main", None),
        ("", None),
        ("$s4mine6ParserV5parseyyF", Some("mine")),
        ("$sSa6appendyyxnF", Some("Swift")),
        ("$sSa4mineE5twiceyyF", Some("mine")),
        ("$ss12_ArrayBufferV20_consumeAndCreateNewyyF", Some("Swift")),
        ("$sScTss5NeverORszABRs_rlE5yieldyyYaFZTQ0_", Some("Swift")),
        ("$s9Benchmark0A8ExecutorV3runyyF", Some("Benchmark")),
        ("$s", None),
        ("$s99x", None),
    ] {
        assert_eq!(module(name), expected, "{name}");
    }
}

/// What Swift 6.3's own demangler says of 1,399 symbols of its runtime and of test programs: mangled, simplified, full.
#[test]
fn simplified_names_are_those_of_swifts_own_demangler() {
    let folder = std::env::var("HEAPTALLY_SWIFT_PROGRAMS")
        .unwrap_or_else(|_| [env!("CARGO_MANIFEST_DIR"), "/../../../shared/swift"].concat());
    let Ok(table) = std::fs::read_to_string(format!("{folder}/demangle.tsv")) else {
        println!("skipped: there is no {folder}/demangle.tsv");
        return;
    };
    let mut count = 0;
    let mut different = Vec::new();
    for line in table.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, expected, full] = columns[..] else { panic!("{line}") };
        count += 1;
        // What stands behind the mangled name is told as it is for other languages.
        let full = match full.split_once(" with unmangled suffix \"") {
            Some((name, suffix)) => format!("{name} [clone {}]", suffix.trim_end_matches('"')),
            None => full.to_owned(),
        };
        let name = simplified(&full);
        if name != expected {
            different.push(format!("{full}\n  is        {name}\n  should be {expected}"));
        }
    }
    assert_eq!(count, 1399);
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

/// Texts of pieces of names, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a.",
        "T",
        "<",
        ">",
        "(",
        ")",
        "[",
        "]",
        " -> ",
        ", ",
        ": ",
        " in ",
        " where ",
        "closure #1 ",
        "static ",
        "partial apply forwarder for ",
        "(1) await resume partial function for ",
        "protocol witness for ",
        " in conformance ",
        "generic specialization <",
        "> of ",
        "(extension in b):",
        " infix",
        ".<",
        "_",
        "é",
        "#",
        "reabstraction thunk helper ",
        "from ",
        " to ",
        "outlined copy of ",
        "$s",
        "TA",
        "TQ0_",
        "merged ",
        " ",
        "specialized ",
        "default argument 1 of ",
        "key path getter for ",
        " [clone .x]",
        "$defer #1 ",
        "@objc ",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in prop_oneof![pieces(), any::<String>()]) {
        let _ = (simplified(&text), function(&text), wrappings(&text), full_function(&text), module(&text));
    }
}

#[test]
fn deep_and_long_names_come_to_an_end() {
    for piece in
        ["(", "<", "[", "a.", "closure #1 () in ", "static ", "merged ", "((a.T) -> ", "(extension in b):"]
    {
        for count in [100, 4096 / piece.len(), 100_000] {
            let name = piece.repeat(count);
            let _ = (simplified(&name), function(&name), wrappings(&name), full_function(&name));
        }
    }
}
