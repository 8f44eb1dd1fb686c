//! Names of each kind.

use super::*;
use proptest::prelude::*;

#[test]
fn each_scheme_is_known_by_its_prefix() {
    let expected = [
        ("_ZN3foo3barEi", "foo::bar(int)"),
        ("__ZN3foo3barEi", "foo::bar(int)"),
        ("_ZN3foo3bar17h0123456789abcdefE", "foo::bar"),
        (
            "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
            "<&T as core::fmt::Debug>::fmt",
        ),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_Z1gIiEvT_", "g<int>(int)"),
        ("main", "main"),
        ("", ""),
    ];
    for (mangled, name) in expected {
        assert_eq!(demangle(mangled), name, "{mangled}");
    }
}

#[test]
fn a_static_function_called_h_is_no_unsigned_char() {
    for name in ["h", "i", "v", "PKc", "3foo", "_", "_Z", "__Z", "_R"] {
        assert_eq!(demangle(name), name);
    }
}

#[test]
fn clone_suffixes_come_after_the_name() {
    let expected = [
        ("_Z3fooi.constprop.0", "foo(int) [clone .constprop.0]"),
        ("_Z3fooi.cold", "foo(int) [clone .cold]"),
        ("_Z3fooi.cold.1", "foo(int) [clone .cold.1]"),
        ("_Z3fooi.llvm.123", "foo(int) [clone .llvm.123]"),
        ("_Z3fooi.lto_priv.0", "foo(int) [clone .lto_priv.0]"),
        ("_Z3fooi.isra.0.cold", "foo(int) [clone .isra.0] [clone .cold]"),
        ("_Z3fooi.part.0.constprop.12", "foo(int) [clone .part.0] [clone .constprop.12]"),
        ("_ZN3foo3bar17h0123456789abcdefE.llvm.1234", "foo::bar [clone .llvm.1234]"),
        ("_RNvC6_123foo3bar.llvm.A1B2", "123foo::bar [clone .llvm] [clone .A1B2]"),
        ("helper.constprop.0", "helper.constprop.0"),
    ];
    for (mangled, name) in expected {
        assert_eq!(demangle(mangled), name, "{mangled}");
    }
}

#[test]
fn coroutines_are_told_by_their_own_name() {
    let expected = [
        ("_Z3genPZ3geniE13_Z3geni.Frame.actor", "gen(int) [clone .actor]"),
        ("_Z3genPZ3geniE13_Z3geni.Frame.actor.cold", "gen(int) [clone .actor] [clone .cold]"),
        ("_ZN3app1S3genEPZNS0_3genEiE21_ZN3app1S3genEi.Frame.destroy", "app::S::gen(int) [clone .destroy]"),
        (
            "_ZN3app1S4tgenEPZNS0_4tgenIlEE4TaskT_E31_ZN3app1S4tgenIlEE4TaskT_.Frame.actor",
            "app::S::tgen<long>(long) [clone .actor]",
        ),
        (
            "_ZZ4mainENUliE_clEPZZ4mainENKS_clEiE26_ZZ4mainENKUliE_clEi.Frame.actor",
            "main::{lambda(int)#1}::operator()(int) const [clone .actor]",
        ),
        ("_Z3geni.resume", "gen(int) [clone .resume]"),
        // The length does not fit: no frame's name.
        ("_Z3foov.Frame.actor", "foo() [clone .Frame] [clone .actor]"),
    ];
    for (mangled, name) in expected {
        assert_eq!(demangle(mangled), name, "{mangled}");
    }
}

#[test]
fn lambdas_and_abi_tags_are_told() {
    let expected = [
        ("_Z6taggedB2v2i", "tagged[abi:v2](int)"),
        (
            "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append(char const*)",
        ),
        ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"),
        (
            "_ZZN3app1S3runEvENKUliE_clEi.isra.0",
            "app::S::run()::{lambda(int)#1}::operator()(int) const [clone .isra.0]",
        ),
        ("_RNCNvC6_123foo3bar0", "123foo::bar::{closure#0}"),
        ("_ZN3foo3bar28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "foo::bar::{{closure}}"),
    ];
    for (mangled, name) in expected {
        assert_eq!(demangle(mangled), name, "{mangled}");
    }
}

#[test]
fn swift_names_are_known_by_their_prefix() {
    for name in
        ["$s4main1fyyF", "$S4main1fyyF", "$e4main1fyyF", "_$s4main1fyyF", "_T04main1fyyF", "$sypSgWOc"]
    {
        assert!(is_swift(name) && is_mangled(name), "{name}");
    }
    for name in ["$", "$s", "$s.x", "s4main", "_T", "_T1", "_Ts4main", "$x4main"] {
        assert!(!is_swift(name) && demangle(name) == name, "{name}");
    }
    let expected = if cfg!(feature = "swift") { "main.f() -> ()" } else { "$s4main1fyyF" };
    assert_eq!(demangle("$s4main1fyyF"), expected);
    let expected =
        if cfg!(feature = "swift") { "main.f() -> () [clone .llvm.12]" } else { "$s4main1fyyF.llvm.12" };
    assert_eq!(demangle("$s4main1fyyF.llvm.12"), expected);
}

#[test]
fn deeply_nested_names_come_whole() {
    // W<W<…<int>…> >, 400 levels.
    let mangled = format!("_Z1f{}i{}", "1WI".repeat(400), "E".repeat(400));
    let name = demangle(&mangled);
    assert!(name.starts_with("f(W<W<W<"), "{}", &name[..40.min(name.len())]);
    assert_eq!(name.matches('W').count(), 400);
}

#[test]
fn names_without_end_stay_mangled() {
    let too_deep = format!("_Z1f{}i{}", "1WI".repeat(100_000), "E".repeat(100_000));
    assert_eq!(demangle(&too_deep), too_deep);
    let pointers = format!("_Z1f{}i", "P".repeat(1 << 19));
    assert_eq!(demangle(&pointers), pointers);
    // Parameters that stand for each other: time and memory double with each level that is allowed.
    let circle = "_ZZ4OZ1fI1nL1gI1WILS_IwwwILS_IwwwwwwwwwwwwwwwwgI1WILS_II1WILS_IwwwILS_IwwwwwwwwwwwwwwwwgwILS_IwwwwwwwwwwwwwwwwgI1WILS_IwwwILS_I1WILS_IwwwILS_IwwwwwwwwwwwwwwwwwILS_Iwwwwwwwwwwwwwwwwww1fI1nvEEv";
    assert_eq!(demangle(circle), circle);
    // Each level doubles: 2^60 ints.
    let mut doubling = "_Z1f1PIiiE".to_owned();
    for level in 0..36 {
        let last = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
        write!(doubling, "S_IS{last}_S{last}_E").unwrap();
    }
    assert!(demangle(&doubling).len() <= MAX_NAME_BYTES);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(name in "(_Z|_ZN|_R|__Z|[$]s|)[ -~]{0,60}") {
        demangle(&name);
    }

    #[test]
    fn no_mangled_like_text_makes_it_panic(name in "_Z[NSKTLIEXJDtsabicdvPR0-9_.]{0,80}") {
        demangle(&name);
    }
}
