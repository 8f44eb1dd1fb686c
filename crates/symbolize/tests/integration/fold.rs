//! Functions that share their code, and names that only look like it.

use heaptally_profile::model::Profile;

use crate::build::{Workshop, address_of, names, symbolize};

const FOLDABLE: &str = r##"
#include <stdlib.h>
static void *volatile sink;
#define NI __attribute__((noinline,noclone))
extern "C" NI void *make_red(unsigned long n) { void *p = malloc(n + 5); __asm__ volatile("" ::: "memory"); return p; }
extern "C" NI void *make_blue(unsigned long n) { void *p = malloc(n + 5); __asm__ volatile("" ::: "memory"); return p; }
NI static void use_a() { sink = make_red(1); free(sink); __asm__ volatile("# a"); }
NI static void use_b() { sink = make_blue(2); free(sink); __asm__ volatile("# b\n nop"); }
struct Thing { Thing(int); virtual ~Thing(); int n; };
NI Thing::Thing(int n) : n(n) { use_a(); }
NI Thing::~Thing() { use_b(); }
int main() { Thing thing(2); return 0; }
"##;

fn is_folded(profile: &Profile, location: usize) -> bool {
    let line = profile.locations[location].lines.last().unwrap();
    profile.functions[line.function].is_folded
}

#[test]
fn folded_functions_are_told_and_others_not() {
    let Some(workshop) = Workshop::with(&["g++", "ld.gold"]) else { return };
    workshop.write("fold.cpp", FOLDABLE);
    workshop.sh("g++ -O2 -g -ffunction-sections -fuse-ld=gold -Wl,--icf=all -o folded fold.cpp");
    let path = workshop.path("folded");
    let red = address_of(&path, "make_red");
    assert_eq!(red, address_of(&path, "make_blue"), "the linker folded them");
    let profile =
        symbolize(&path, &[red + 4, address_of(&path, "use_a") + 4, address_of(&path, "ThingC1") + 1]);
    let name = &names(&profile)[0][0];
    assert!(["make_red", "make_blue"].contains(&name.as_str()), "{name}");
    assert!(is_folded(&profile, 0));
    assert!(!is_folded(&profile, 1));
    assert!(!is_folded(&profile, 2), "a constructor's two symbols are one function");

    workshop.sh("g++ -O2 -g -o plain fold.cpp");
    let path = workshop.path("plain");
    let profile = symbolize(&path, &[address_of(&path, "make_red") + 4]);
    assert!(!is_folded(&profile, 0));
}

#[test]
fn functions_folded_from_two_units_are_told() {
    let Some(workshop) = Workshop::with(&["g++", "ld.gold"]) else { return };
    workshop.write(
        "red.cpp",
        "#include <stdlib.h>\nnamespace a { void *red(long n) { return malloc(n + 5); } }\n",
    );
    workshop.write(
        "blue.cpp",
        "#include <stdlib.h>\nnamespace b { void *blue(long n) { return malloc(n + 5); } }\n",
    );
    workshop.write(
        "main.cpp",
        "namespace a { void *red(long); } namespace b { void *blue(long); }\n\
         int main() { return a::red(1) == b::blue(2); }\n",
    );
    workshop
        .sh("g++ -O2 -g -ffunction-sections -fuse-ld=gold -Wl,--icf=all -o folded main.cpp red.cpp blue.cpp");
    let path = workshop.path("folded");
    let red = address_of(&path, "3redE");
    assert_eq!(red, address_of(&path, "4blueE"));
    assert!(is_folded(&symbolize(&path, &[red + 2]), 0));
}

#[test]
fn aliases_are_not_folded_and_the_stated_name_wins() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write(
        "alias.c",
        "int __impl(int n) { return n * 3; }\n\
         int offered(int) __attribute__((alias(\"__impl\")));\n\
         int a_weak_one(int) __attribute__((weak, alias(\"__impl\")));\n\
         int main(int n, char **v) { return offered(n); }\n",
    );
    workshop.sh("gcc -O1 -fno-inline -g -o alias alias.c");
    let path = workshop.path("alias");
    let address = address_of(&path, "offered");
    let profile = symbolize(&path, &[address]);
    assert!(!is_folded(&profile, 0));
    assert_eq!(names(&profile), [["offered"]]);
    workshop.sh("strip -g alias");
    assert_eq!(names(&symbolize(&path, &[address])), [["offered"]]);
}

#[test]
fn merged_rust_functions_are_told() {
    let Some(workshop) = Workshop::with(&["rustc"]) else { return };
    workshop.write(
        "merged.rs",
        "#[inline(never)] pub fn first(n: &mut Vec<u32>) { n.push(7); n.push(8); }\n\
         #[inline(never)] pub fn second(n: &mut Vec<u32>) { n.push(7); n.push(8); }\n\
         fn main() { let mut n = Vec::new(); first(&mut n); second(std::hint::black_box(&mut n)); println!(\"{n:?}\"); }\n",
    );
    workshop.sh("rustc -O -g -Ccodegen-units=1 -o merged merged.rs");
    let path = workshop.path("merged");
    let symbols = crate::build::symbols_of(&path);
    let at = |name: &str| symbols.iter().find(|symbol| symbol.1.contains(name)).map(|symbol| symbol.0);
    match (at("6merged5first"), at("6merged6second")) {
        (Some(first), Some(second)) if first == second => {
            assert!(is_folded(&symbolize(&path, &[first + 1]), 0))
        }
        _ => println!("skipped: this rustc does not merge them by an alias"),
    }
}
