//! Address by address, against binutils' addr2line.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heaptally_profile::model::Profile;

use crate::build::{Workshop, frames_of, sized_symbols, symbolize, text_addresses};

/// The frames by addr2line: `(mangled name, file, line)`, innermost first.
fn addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<(String, String, u32)>> {
    let input = tempfile::NamedTempFile::new().unwrap();
    let mut text = String::new();
    for address in addresses {
        writeln!(text, "{address:#x}").unwrap();
    }
    std::fs::write(input.path(), text).unwrap();
    let output = Command::new("addr2line")
        .args(["-f", "-i", "-a", "-e"])
        .arg(path)
        .stdin(Stdio::from(std::fs::File::open(input.path()).unwrap()))
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let mut all = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap().split(" (discriminator").next().unwrap();
        let (file, number) = place.rsplit_once(':').unwrap();
        let frame = (line.to_owned(), file.to_owned(), number.parse().unwrap_or(0));
        all.last_mut().unwrap().push(frame);
    }
    all
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a name is the expected one, which may have a clone suffix: debug information leaves it out.
fn is_name(expected: &str, found: &str) -> bool {
    expected.strip_prefix(found).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
}

/// How many addresses agree entirely, how many in all functions' names, of how many.
fn agreement(path: &Path, step: u64) -> (usize, usize, usize, Profile) {
    // Between functions addr2line goes on naming the one before.
    let symbols = sized_symbols(path);
    let mut addresses = text_addresses(path, step);
    addresses.retain(|address| symbols.iter().any(|(range, _)| range.contains(address)));
    let expected = addr2line(path, &addresses);
    assert_eq!(expected.len(), addresses.len());
    let profile = symbolize(path, &addresses);
    let found = frames_of(&profile);
    let (mut whole, mut by_name, mut known) = (0, 0, 0);
    for ((expected, found), address) in expected.iter().zip(&found).zip(&addresses) {
        known += 1;
        let names_agree =
            expected.len() == found.len() && expected.iter().zip(found).all(|(e, f)| is_name(&e.0, &f.0));
        let places_agree = names_agree
            && expected.iter().zip(found).all(|(e, f)| {
                // Where it knows no line it names the symbol table's file; the linker's copies have none of their own.
                let is_same_file = file_name(&e.1) == file_name(&f.2) || e.1.ends_with("<artificial>");
                e.2 == 0 || (e.2 == f.3 && is_same_file)
            });
        by_name += usize::from(names_agree);
        whole += usize::from(places_agree);
        if !places_agree {
            println!("{address:#x}: {expected:?} / {found:?}");
        }
    }
    (whole, by_name, known, profile)
}

#[test]
fn a_c_program_agrees() {
    let Some(workshop) = Workshop::with(&["gcc", "addr2line"]) else { return };
    workshop.write(
        "program.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         struct node { struct node *next; char *text; };\n\
         static struct node *push(struct node *next, const char *text) {\n\
           struct node *node = malloc(sizeof *node);\n  node->next = next;\n  node->text = strdup(text);\n  return node;\n}\n\
         static struct node *build(int n) {\n  struct node *list = 0;\n  char text[32];\n\
           for (int i = 0; i < n; i++) {\n    snprintf(text, sizeof text, \"%d\", i);\n    list = push(list, text);\n  }\n  return list;\n}\n\
         __attribute__((noinline)) void drop(struct node *list) {\n\
           while (list) {\n    struct node *next = list->next;\n    free(list->text);\n    free(list);\n    list = next;\n  }\n}\n\
         int main(int n, char **v) {\n  for (int i = 0; i < 3; i++)\n    drop(build(n + i));\n  return 0;\n}\n",
    );
    for flags in ["-O0", "-O2", "-O3", "-O2 -no-pie", "-O2 -gdwarf-4", "-O2 -flto"] {
        workshop.sh(&format!("gcc -g {flags} -o program program.c"));
        let (whole, by_name, known, profile) = agreement(&workshop.path("program"), 1);
        assert!(known > 200);
        assert_eq!(by_name, known, "{flags}");
        assert!(whole * 100 >= known * 98, "{flags}: {whole} of {known}");
        assert_eq!(profile.modules[0].symbol_problem, None);
    }
}

#[test]
fn a_cpp_program_agrees() {
    let Some(workshop) = Workshop::with(&["g++", "addr2line"]) else { return };
    workshop.write(
        "program.cpp",
        "#include <algorithm>\n#include <map>\n#include <memory>\n#include <string>\n#include <vector>\n\
         struct Base { virtual ~Base() = default; virtual std::string name() const = 0; };\n\
         struct One : Base { std::string name() const override { return \"one of them, and not a short one\"; } };\n\
         template <class T> T most(const std::vector<T> &v) { return *std::max_element(v.begin(), v.end()); }\n\
         int main(int n, char **v) {\n  std::map<std::string, std::vector<int>> m;\n\
           for (int i = 0; i < n + 20; i++) m[std::to_string(i % 7)].push_back(i);\n\
           int sum = 0;\n  for (auto &[k, w] : m) { std::sort(w.rbegin(), w.rend()); sum += most(w) + int(k.size()); }\n\
           std::unique_ptr<Base> b = std::make_unique<One>();\n  return sum + int(b->name().size());\n}\n",
    );
    for flags in ["-O0", "-O2"] {
        workshop.sh(&format!("g++ -std=c++17 -g {flags} -o program program.cpp"));
        let (whole, by_name, known, _) = agreement(&workshop.path("program"), 3);
        assert!(known > 500);
        assert!(by_name * 1000 >= known * 995, "{flags}: {by_name} of {known}");
        assert!(whole * 100 >= known * 97, "{flags}: {whole} of {known}");
    }
}

#[test]
fn a_rust_program_agrees() {
    let Some(workshop) = Workshop::with(&["rustc", "addr2line"]) else { return };
    workshop.write(
        "program.rs",
        "use std::collections::BTreeMap;\n\
         fn words(text: &str) -> BTreeMap<String, usize> {\n    let mut map = BTreeMap::new();\n\
             for word in text.split(' ') {\n        *map.entry(word.to_owned()).or_default() += 1;\n    }\n    map\n}\n\
         fn main() {\n    let text: Vec<String> = std::env::args().collect();\n    println!(\"{:?}\", words(&text.join(\" \")));\n}\n",
    );
    for flags in ["-Copt-level=0", "-Copt-level=3"] {
        workshop.sh(&format!("rustc -g {flags} -o program program.rs"));
        let (whole, by_name, known, profile) = agreement(&workshop.path("program"), 97);
        assert!(known > 500);
        assert!(by_name * 100 >= known * 97, "{flags}: {by_name} of {known}");
        assert!(whole * 100 >= known * 95, "{flags}: {whole} of {known}");
        assert!(profile.environment.compilers.iter().any(|compiler| compiler.contains("rustc version")));
    }
}

#[test]
fn the_result_is_the_same_each_time_and_in_any_order() {
    let Some(workshop) = Workshop::with(&["rustc"]) else { return };
    workshop.write("program.rs", "fn main() { println!(\"{:?}\", std::env::args().collect::<Vec<_>>()); }\n");
    workshop.sh("rustc -g -O -o program program.rs");
    let path = workshop.path("program");
    let mut addresses = text_addresses(&path, 101);
    let first = symbolize(&path, &addresses);
    assert_eq!(first, symbolize(&path, &addresses));
    let mut again = first.clone();
    heaptally_symbolize::Symbolizer::new(Default::default()).symbolize(&mut again);
    assert_eq!(first, again, "a second time changes nothing");
    addresses.reverse();
    let mut backwards = frames_of(&symbolize(&path, &addresses));
    backwards.reverse();
    assert_eq!(frames_of(&first), backwards);
}
