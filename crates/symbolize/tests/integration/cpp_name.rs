//! Functions without a linkage name, against what the demangler makes of their symbols.

use std::collections::BTreeMap;

use heaptally_symbolize::list_functions;

use crate::build::{Workshop, frames_of, names, sized_symbols, symbolize, symbols_of};

/// Functions that no other file can call, of all kinds of parameters and scopes.
const PROGRAM: &str = r#"
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>
namespace {
struct Job { std::string name; int n; };
enum class Kind : unsigned char { a, b };
enum Plain { one = 1, two };
typedef struct { int n; } Untagged;
union Either { int n; float f; };
template <class T, int N> struct Box {
  T v[N];
  std::string show(const T &t) const { return std::string(40, 'a' + int(t)); }
  struct Inner { int deep(Box *b, unsigned long long k) volatile { return b->v[0] + int(k); } };
};
template <bool B, char C, unsigned U, long L, Kind K> struct Values { static int sum(short s) { return B + C + U + L + int(K) + s; } };
template <class... T> struct Many { int count(T... all) const & { return sizeof...(all); } int moved() && { return 1; } };
std::string render(const Job &j) { return j.name + std::to_string(j.n) + "a long long long long tail"; }
std::string pick(Kind k, Job *const *p, int (*fn)(int, char), std::array<int, 4> &&a, bool) {
  return std::string(30 + fn(1, 'c') + a[0] + (p != nullptr) + int(k), 'x');
}
int types(signed char a, unsigned char b, short c, unsigned short d, long e, unsigned long f, long long g, float h,
          double i, long double j, wchar_t k, char16_t l, const volatile char *m, void *n, const void *o, Plain p,
          Untagged q, Either r, const int s, std::nullptr_t) {
  return int(a + b + c + d + e + f + g + h + i + j + k + l) + (m == n) + (o == nullptr) + p + q.n + r.n + s;
}
int arrays(const char (&text)[4], int (*rows)[3], int flat[5]) { return text[0] + rows[0][1] + flat[2]; }
int members(int Job::*field, int (Box<int, 3>::Inner::*method)(Box<int, 3> *, unsigned long long) volatile) {
  return (field == nullptr) + (method == nullptr);
}
int callbacks(const std::function<int(const std::string &)> &f, void (*(*g)(int))(char)) { return f("x") + (g == nullptr); }
int maps(std::map<std::string, std::vector<Job>> &m, std::pair<const Kind, Job *> *p) { return int(m.size()) + (p == nullptr); }
struct Op {
  std::string s;
  Op(int n) : s(n + 30, 'w') {}
  ~Op() {}
  std::string operator<(const Op &) const { return std::string(50, 'q'); }
  std::string operator<<(int) const { return std::string(51, 'q'); }
  const Op *operator->() const { return this; }
  int operator()(int n) { return n; }
  operator bool() const { return s[3] == 'w'; }
  static std::string make(long n) { return std::string(n + 20, 'm'); }
};
namespace nested { namespace { int twice(int n) { return n * 2; } } }
}
static std::string helper(int a, ...) { return std::string(a + 40, 'h'); }
static int nothing() { return 3; }
extern "C" int exported(int a) { return a; }
namespace outer {
inline namespace v1 { static std::string deep(std::vector<std::vector<int>> v) { return std::string(33 + v.size(), 'd'); } }
std::string api(int n) {
  auto f = [n](const std::string &s, int t) { return std::string(n + 40 + t, 'l') + s; };
  struct Local { std::string run(int m) { return std::string(m + 60, 'r'); } } local;
  return f("x", 3) + local.run(n);
}
}
static int add(int a, char) { return a; }
int main(int c, char **) {
  auto both = [&](const std::string &s, int k) { auto in = [&] { return k; }; return int((s + std::string(40 + in(), 'k')).size()); };
  Box<int, 3> b{}; Box<int, 3>::Inner i; Job j{"n", c}; Job *pj = &j;
  int rows[1][3] = {{1, 2, 3}}, flat[5] = {}; std::map<std::string, std::vector<Job>> m; const Many<int, char> many{};
  int n = both("q", c) + int(render(j).size() + b.show(c).size() + pick(Kind::b, &pj, add, std::array<int, 4>{1, 2, 3, 4}, true).size() +
      helper(c).size() + outer::v1::deep({{1}, {2}}).size() + outer::api(c).size());
  n += types(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, "x", pj, pj, two, Untagged{2}, Either{3}, 4, nullptr);
  n += arrays("abc", rows, flat) + members(&Job::n, &Box<int, 3>::Inner::deep) + maps(m, nullptr) + nested::twice(c);
  n += callbacks([](const std::string &s) { return int(s.size()); }, nullptr) + i.deep(&b, 3) + many.count(1, 'c') + Many<int>{}.moved();
  n += Values<true, 'x', 7u, -8l, Kind::b>::sum(2) + exported(1) + nothing();
  Op o(c);
  return n + int((o < o).size() + (o << 1).size() + o->s.size() + o(1) + bool(o) + Op::make(c).size()) == 0;
}
"#;

/// Lambdas and types without a name have no number in what is made from debug information.
fn without_numbers(name: &str) -> String {
    let mut text = String::new();
    for part in name.split_inclusive('}') {
        match part.rsplit_once('#') {
            Some((head, tail)) if tail.trim_end_matches('}').bytes().all(|byte| byte.is_ascii_digit()) => {
                text.push_str(head);
                text.push('}');
            }
            _ => text.push_str(part),
        }
    }
    text
}

#[test]
fn names_are_those_of_the_symbols() {
    let Some(workshop) = Workshop::with(&["g++", "strip"]) else { return };
    workshop.write("program.cpp", PROGRAM);
    for flags in ["", "-gdwarf-4", "-gsplit-dwarf", "-ffunction-sections -gz"] {
        workshop.sh(&format!("g++ -std=c++17 -g -O0 {flags} -o program program.cpp"));
        let path = workshop.path("program");
        let symbols: Vec<_> = sized_symbols(&path)
            .into_iter()
            .filter(|(_, name)| !name.starts_with("_Z") || is_local(name))
            .collect();
        let starts: Vec<u64> = symbols.iter().map(|(range, _)| range.start).collect();
        let expected = names(&symbolize(&path, &starts));
        // Without symbols only the debug information tells the names.
        workshop.sh("strip --strip-all --keep-section=.debug_* -o bare program");
        let bare = symbolize(&workshop.path("bare"), &starts);
        let found = names(&bare);
        let mut compared = 0;
        let mut wrong = BTreeMap::new();
        for ((expected, found), (_, symbol)) in expected.iter().zip(&found).zip(&symbols) {
            let expected = without_numbers(expected.last().unwrap());
            // GCC leaves out arguments that are no types and the default, which the library has.
            if !is_local(symbol) || expected.starts_with("std::") {
                continue;
            }
            let found = found.last().unwrap().clone();
            if expected != found {
                wrong.insert(expected, found);
            } else {
                compared += 1;
            }
        }
        println!("{flags}: {compared} equal, others: {wrong:#?}");
        assert!(wrong.is_empty(), "{flags}");
        assert!(compared > 30, "{flags}: {compared}");
        let main = symbols.iter().position(|(_, name)| name == "main").unwrap();
        assert_eq!(found[main].last().unwrap(), "main");
        assert_eq!(frames_of(&bare)[main].last().unwrap().0, "main");
    }
}

/// Whether a symbol is one of those to which GCC gives no linkage name.
fn is_local(symbol: &str) -> bool {
    symbol.contains("_GLOBAL__N_1") || symbol.starts_with("_ZL") || symbol.starts_with("_ZZ")
}

/// Each level doubles the name of the one before: it is given up, and soon.
#[test]
fn names_that_double_are_left_out() {
    let Some(workshop) = Workshop::with(&["g++"]) else { return };
    let mut text = String::from("template <class A, class B> struct Pair {};\nnamespace {\nstruct T0 {};\n");
    for level in 1..13 {
        text += &format!("typedef Pair<T{0}, T{0}> T{level};\n", level - 1);
    }
    text += "int __attribute__((noinline)) deep(T12 *p, int n) { return n + (p == nullptr); }\n}\n\
             int main(int c, char **) { return deep(nullptr, c); }\n";
    workshop.write("program.cpp", &text);
    // The symbol's name has a substitution for each level, and stays short.
    workshop.sh("g++ -g -O0 -o program program.cpp");
    workshop.sh("strip --strip-all --keep-section=.debug_* -o bare program");
    let start = symbols_of(&workshop.path("program")).into_iter().find(|(_, name)| name.contains("deep"));
    let found = names(&symbolize(&workshop.path("bare"), &[start.unwrap().0]));
    let name = found[0].last().unwrap();
    assert!(name.starts_with("(anonymous namespace)::deep"), "{}", name.get(..200).unwrap_or(name));
    assert!(name.len() < 1 << 14, "{} bytes", name.len());
}

/// A lambda says in no way of its own where it is written, and one that is inlined everywhere has no symbol.
#[test]
fn lambdas_are_listed_by_name_and_place() {
    const LAMBDAS: &str = r#"
int take(int n);
int main(int argc, char **) {
  auto one = [](int n) __attribute__((noinline, noclone)) { return take(n) + 1; };
  auto two = [](int n) __attribute__((always_inline)) { return take(n) + 2; };
  return one(argc) + two(argc);
}
__attribute__((noinline)) int take(int n) { return n; }
"#;
    let Some(workshop) = Workshop::with(&["g++"]) else { return };
    let source = workshop.write("lambdas.cc", LAMBDAS);
    workshop.run("g++", ["-g", "-O2", "-o", "lambdas", source.to_str().unwrap()]);
    let list = list_functions(&workshop.path("lambdas"), "", &[]);
    let lambdas = list.functions.iter().filter(|function| function.name.contains("operator()"));
    let mut found: Vec<(&str, u32, bool, usize)> = lambdas
        .map(|function| {
            (function.name.as_str(), function.line, function.range.is_some(), function.inlined.len())
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("main::{lambda(int)#1}::operator()(int) const", 4, true, 0),
            ("main::{lambda(int)}::operator()(int) const", 5, false, 1),
        ]
    );
    // `operator()` alone is no other name of it.
    let of_code = list.functions.iter().filter(|function| function.line == 4);
    assert_eq!(of_code.flat_map(|function| &function.system_names).count(), 1);
}
