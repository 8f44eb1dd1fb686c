//! Names by symbol tables alone.

use std::process::Command;

use heaptally_profile::model::Profile;

use crate::build::{Workshop, address_of, names, symbolize, symbols_of, text_addresses};

fn problem(profile: &Profile) -> &str {
    profile.modules[0].symbol_problem.as_deref().unwrap_or_default()
}

#[test]
fn exported_names_reach_no_further_than_their_size() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write(
        "dynamic.c",
        "int exported(int n) { return n + 1; }\n\
         __attribute__((noinline)) static int hidden(int n) { return exported(n) * 3; }\n\
         int main(int n, char **v) { return hidden(n); }\n",
    );
    workshop.sh("gcc -O1 -rdynamic -fno-toplevel-reorder -fno-ipa-cp -o dynamic dynamic.c");
    let path = workshop.path("dynamic");
    let (exported, hidden) = (address_of(&path, "exported"), address_of(&path, "hidden"));
    assert!(hidden > exported);
    workshop.sh("strip -s dynamic");
    let profile = symbolize(&path, &[exported, hidden, hidden + 2]);
    let start = format!("dynamic+{hidden:#x}");
    assert_eq!(names(&profile), [["exported"], [start.as_str()], [start.as_str()]]);
    assert!(problem(&profile).contains("only exported functions"), "{}", problem(&profile));
}

#[test]
fn assembler_without_sizes_is_named() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write(
        "asm.s",
        ".text\n.globl first\nfirst:\n nop\n nop\n ret\n.globl second\nsecond:\n nop\n ret\n\
         .section .note.GNU-stack,\"\",@progbits\n",
    );
    workshop.write("main.c", "void first(void); int main(void) { first(); return 0; }\n");
    workshop.sh("gcc -O1 -o program main.c asm.s");
    let path = workshop.path("program");
    let bytes = std::fs::read(&path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let first = object::ObjectSymbol::address(&object::Object::symbol_by_name(&elf, "first").unwrap());
    assert_eq!(names(&symbolize(&path, &[first, first + 2, first + 3])), [["first"], ["first"], ["second"]]);
}

#[test]
fn every_sized_symbol_of_a_rust_program_is_found_as_nm_has_it() {
    let Some(workshop) = Workshop::with(&["rustc"]) else { return };
    workshop.write("program.rs", "fn main() { println!(\"{:?}\", std::env::args().collect::<Vec<_>>()); }\n");
    workshop.sh("rustc -O -Cstrip=debuginfo -o program program.rs");
    let path = workshop.path("program");
    let symbols = symbols_of(&path);
    assert!(symbols.len() > 300);
    let addresses: Vec<u64> = symbols.iter().map(|symbol| symbol.0).collect();
    let profile = symbolize(&path, &addresses);
    for (location, (address, name)) in profile.locations.iter().zip(&symbols) {
        let found = &profile.functions[location.lines[0].function].system_name;
        let is_alias = symbols.iter().any(|symbol| symbol.0 == *address && symbol.1 == *found);
        assert!(found == name || is_alias, "{address:#x}: {found}, nm has {name}");
    }
}

#[test]
fn libc_is_named() {
    let Some(libc) = libc_path() else { return };
    let exported = |name: &str| {
        let bytes = std::fs::read(&libc).unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        object::Object::dynamic_symbols(&elf)
            .find(|symbol| object::ObjectSymbol::name(symbol) == Ok(name))
            .map(|symbol| object::ObjectSymbol::address(&symbol))
            .unwrap()
    };
    let profile = symbolize(&libc, &[exported("malloc"), exported("qsort") + 1, exported("abort") + 1]);
    let names = names(&profile);
    assert_eq!(
        names.iter().map(|frames| frames.last().unwrap().as_str()).collect::<Vec<_>>(),
        ["malloc", "qsort", "abort"]
    );
    assert!(profile.functions.iter().all(|function| !function.is_folded));
    assert!(profile.environment.compilers.is_empty() || profile.images[0].path == profile.modules[0].path);

    let options = heaptally_symbolize::Options { debug_dirs: Vec::new(), ..Default::default() };
    let module = crate::build::module_of(&libc);
    let mut addresses = text_addresses(&libc, 1001);
    addresses.push(exported("malloc"));
    let profile = crate::build::symbolize_with(options, module, &addresses);
    let without = crate::build::names(&profile);
    assert_eq!(without.last().unwrap()[..], ["malloc"], "not __libc_malloc");
    let nameless = without.iter().filter(|names| names.is_empty()).count();
    assert!(nameless * 8 < without.len(), "{nameless} of {}: what lies between functions", without.len());
    assert!(problem(&profile).contains("was not found"), "{}", problem(&profile));
}

/// The libc of this test.
fn libc_path() -> Option<std::path::PathBuf> {
    let output = Command::new("ldd").arg("/bin/sh").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let path = text.split_whitespace().find(|word| word.starts_with('/') && word.contains("libc.so"));
    if path.is_none() {
        println!("skipped: no libc found");
    }
    path.map(Into::into)
}
