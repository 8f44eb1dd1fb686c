//! Program files that are gone or were replaced while the program ran.

use std::fs::{self, File};

use heaptally_profile::model::Module;
use heaptally_symbolize::Options;

use crate::build::{Workshop, address_of, module_of, names, symbolize_with};

const SOURCE: &str = "__attribute__((noinline)) int work(int n) { return n + 1; }\nint main(int n, char **v) { return work(n); }\n";
const IMPOSTOR: &str = "int lie(int n) { return n * 5 + 1; }\nint other_lie(int n) { return lie(n) + 2; }\n\
    int main(int n, char **v) { return lie(n) + other_lie(3); }\n";

#[test]
fn an_impostor_is_refused_and_the_held_file_used() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write("program.c", SOURCE);
    workshop.write("impostor.c", IMPOSTOR);
    for flags in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        workshop.sh(&format!("gcc -O0 -g {flags} -o program program.c"));
        let path = workshop.path("program");
        let address = address_of(&path, "work") + 4;
        let module = module_of(&path);
        let held = || Options {
            executable: Some((path.clone(), File::open(workshop.path("held")).unwrap())),
            ..Options::default()
        };
        fs::rename(&path, workshop.path("held")).unwrap();

        // Gone.
        let profile = symbolize_with(Options::default(), module.clone(), &[address]);
        assert_eq!(names(&profile), [[""; 0]]);
        assert!(profile.modules[0].symbol_problem.as_ref().unwrap().contains("cannot be read"));
        let profile = symbolize_with(held(), module.clone(), &[address]);
        assert_eq!(names(&profile), [["work"]], "{flags}");
        assert_eq!(profile.modules[0].symbol_problem, None);
        let deleted = Module { path: format!("{} (deleted)", module.path), ..module.clone() };
        assert_eq!(names(&symbolize_with(held(), deleted, &[address])), [["work"]], "{flags}");

        // Replaced by another program, or by no program.
        workshop.sh(&format!("gcc -O2 -g {flags} -Wl,-Ttext-segment=0x100000 -o program impostor.c"));
        let profile = symbolize_with(Options::default(), module.clone(), &[address]);
        assert_eq!(names(&profile), [[""; 0]], "{flags}");
        assert!(profile.modules[0].symbol_problem.as_ref().unwrap().contains("another build"));
        assert_eq!(names(&symbolize_with(held(), module.clone(), &[address])), [["work"]], "{flags}");
        fs::write(&path, "#!/bin/false\n").unwrap();
        let profile = symbolize_with(Options::default(), module.clone(), &[address]);
        assert!(profile.modules[0].symbol_problem.as_ref().unwrap().contains("not a 64-bit"));
        assert_eq!(names(&symbolize_with(held(), module.clone(), &[address])), [["work"]], "{flags}");
        fs::write(&path, "").unwrap();
        assert_eq!(names(&symbolize_with(Options::default(), module, &[address])), [[""; 0]]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_held_file_of_another_build_is_refused_too() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write("program.c", SOURCE);
    workshop.write("impostor.c", IMPOSTOR);
    workshop.sh("gcc -O0 -g -Wl,--build-id -o program program.c");
    workshop.sh("gcc -O0 -g -Wl,--build-id -o impostor impostor.c");
    let path = workshop.path("program");
    let module = module_of(&path);
    let address = address_of(&path, "work");
    fs::remove_file(&path).unwrap();
    let executable = Some((path, File::open(workshop.path("impostor")).unwrap()));
    let profile = symbolize_with(Options { executable, ..Options::default() }, module, &[address]);
    assert_eq!(names(&profile), [[""; 0]]);
}

#[test]
fn modules_without_a_file_are_told() {
    for path in ["[vdso]", "", "/", "/dev/null", "/proc/self/mem"] {
        let module = Module { path: path.to_owned(), ..Module::default() };
        let profile = symbolize_with(Options::default(), module, &[0, 0x700, u64::MAX]);
        assert_eq!(names(&profile), [[""; 0]; 3], "{path}");
        assert!(profile.modules[0].symbol_problem.is_some(), "{path}");
    }
}

/// The stable heads of a module's problem.
fn heads(module: Module, address: u64) -> Vec<String> {
    let profile =
        symbolize_with(Options { debug_dirs: Vec::new(), ..Options::default() }, module, &[address]);
    let problem = profile.modules[0].symbol_problem.clone().unwrap_or_default();
    problem.split("; ").map(|reason| reason.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn each_state_of_a_module_has_its_stable_head() {
    let Some(workshop) = Workshop::with(&["gcc", "strip", "objcopy"]) else { return };
    workshop.write("program.c", SOURCE);
    workshop.sh("gcc -O0 -g -o program program.c");
    let path = workshop.path("program");
    let (module, address) = (module_of(&path), address_of(&path, "work"));
    assert_eq!(heads(module.clone(), address), [""]);

    workshop.write("noise", &"\u{7f}".repeat(4096));
    workshop.sh("cp program good");
    for section in [".debug_abbrev", ".debug_line", ".debug_info"] {
        workshop.sh("cp good program");
        workshop.sh(&format!("objcopy --update-section {section}=noise program"));
        assert_eq!(heads(module.clone(), address), ["debug information damaged"], "{section}");
    }
    workshop.sh("cp good program");
    workshop.sh("strip -g program");
    assert_eq!(heads(module.clone(), address), ["no debug information"]);
    workshop.sh("objcopy --add-gnu-debuglink=good program");
    fs::remove_file(workshop.path("good")).unwrap();
    assert_eq!(heads(module.clone(), address), ["no debug information", "debug file missing"]);
    fs::write(workshop.path("good"), "another").unwrap();
    assert_eq!(heads(module.clone(), address), ["no debug information", "debug file refused"]);
    workshop.sh("strip -s program");
    assert_eq!(heads(module.clone(), address)[0], "stripped");
    workshop.write("impostor.c", IMPOSTOR);
    workshop.sh("gcc -O0 -g -o program impostor.c");
    assert_eq!(heads(module.clone(), address), ["file replaced"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(heads(module.clone(), address), ["file gone"]);
    assert_eq!(heads(Module { path: "[vdso]".to_owned(), ..module }, address), ["no file"]);
}

#[test]
fn damaged_files_never_make_it_panic() {
    let Some(workshop) = Workshop::with(&["gcc"]) else { return };
    workshop.write("program.c", SOURCE);
    workshop.sh("gcc -O1 -g -o program program.c");
    let path = workshop.path("program");
    let module = Module { build_id: String::new(), ..module_of(&path) };
    let good = fs::read(&path).unwrap();
    let addresses: Vec<u64> = crate::build::text_addresses(&path, 7);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..20 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (seed >> 16) as usize % bytes.len();
            bytes[at] = (seed >> 8) as u8;
        }
        if round % 3 == 0 {
            bytes.truncate(bytes.len() * (round % 11) / 11);
        }
        let path = workshop.path("damaged");
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        let module = Module { path: path.to_str().unwrap().to_owned(), ..module.clone() };
        symbolize_with(Options::default(), module, &addresses);
    }
}
