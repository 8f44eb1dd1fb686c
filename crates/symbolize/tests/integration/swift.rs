//! Names of Swift: as Swift's own demangler has them, or said to be mangled.

use std::path::PathBuf;

use heaptally_profile::model::{FrameKind, Module, Profile};
use heaptally_symbolize::{Options, Symbolizer};

use crate::build::{Workshop, address_of, module_of, names, profile_of};

const PROBLEM: &str = "names of Swift are not demangled";

/// Assembler with names as Swift's compiler makes them.
const SWIFT: &str = ".text\n.globl \"$s4main1fyyF\"\n.type \"$s4main1fyyF\",@function\n\"$s4main1fyyF\":\n nop\n ret\n\
    .size \"$s4main1fyyF\",2\n.globl plain\n.type plain,@function\nplain:\n nop\n ret\n.size plain,2\n\
    .section .note.GNU-stack,\"\",@progbits\n";

/// Two libraries with the same names.
fn libraries(workshop: &Workshop) -> [PathBuf; 2] {
    workshop.write("swift.s", SWIFT);
    ["one.so", "two.so"].map(|name| {
        workshop.sh(&format!("gcc -shared -nostdlib -o {name} swift.s"));
        workshop.path(name)
    })
}

fn symbolized(libraries: &[PathBuf], symbol: &str) -> Profile {
    let mut profile = Profile::default();
    for (id, path) in libraries.iter().enumerate() {
        let one = profile_of(module_of(path), FrameKind::Interrupted, &[address_of(path, symbol)]);
        profile.images = one.images;
        profile.modules.extend(one.modules);
        profile.locations.extend(one.locations.into_iter().map(|mut location| {
            location.module = Some(id);
            location
        }));
    }
    Symbolizer::new(Options::default()).symbolize(&mut profile);
    profile
}

fn is_told(module: &Module) -> bool {
    module.symbol_problem.as_deref().unwrap_or_default().split("; ").any(|reason| reason.starts_with(PROBLEM))
}

#[test]
fn that_swift_stays_mangled_is_said_of_one_module_only() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    let libraries = libraries(&workshop);
    let profile = symbolized(&libraries, "$s4main1fyyF");
    let has_demangler = cfg!(feature = "swift");
    let name = if has_demangler { "main.f() -> ()" } else { "$s4main1fyyF" };
    assert_eq!(names(&profile), [[name], [name]]);
    assert!(profile.functions.iter().all(|function| function.system_name == "$s4main1fyyF"));
    assert_eq!(profile.modules.iter().map(is_told).collect::<Vec<_>>(), [!has_demangler, false]);

    // Only where one was met.
    let profile = symbolized(&libraries, "plain");
    assert_eq!(names(&profile), [["plain"], ["plain"]]);
    assert!(!profile.modules.iter().any(is_told));
}

/// What Swift 6.3's demangler says of 1,399 symbols of its runtime and of test programs: mangled, simplified, full.
#[cfg(feature = "swift")]
#[test]
fn names_are_those_of_swifts_own_demangler() {
    let folder = [env!("CARGO_MANIFEST_DIR"), "/../../../shared/swift/demangle.tsv"].concat();
    let Ok(table) = std::fs::read_to_string(&folder) else {
        println!("skipped: {folder} is missing");
        return;
    };
    let mut count = 0;
    let mut different = Vec::new();
    for line in table.lines() {
        let mut columns = line.split('\t');
        let (mangled, full) = (columns.next().unwrap(), columns.nth(1).unwrap());
        count += 1;
        // What stands behind the mangled name is told as it is for other languages.
        let expected = match full.split_once(" with unmangled suffix \"") {
            Some((name, suffix)) => format!("{name} [clone {}]", suffix.trim_end_matches('"')),
            None => full.to_owned(),
        };
        let name = heaptally_symbolize::demangle(mangled);
        if name != expected {
            different.push(format!("{mangled}\n  is        {name}\n  should be {expected}"));
        }
    }
    assert_eq!(count, 1399);
    // The argument of a specialization is a function whose name Swift's demangler writes without abbreviating types;
    // here they are abbreviated everywhere.
    let is_known = |text: &String| {
        text.contains(
            "\n  is        function signature specialization <Arg[1] = [Constant Propagated Function : ",
        )
    };
    assert!(different.iter().all(is_known), "{} differ:\n{}", different.len(), different.join("\n"));
    assert_eq!(different.len(), 1);
}
