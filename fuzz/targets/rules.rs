//! Any text as a rule file; what follows its first NUL is a name to look for.
#![no_main]

use heaptally_fuzz::seed;
use heaptally_profile::call_site::Rules;
use heaptally_profile::model::Function;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed::plant(seeds), |bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (text, name) = text.split_once('\0').unwrap_or((&text, ""));
    let Ok(rules) = Rules::parse(text) else { return };
    let mut both = rules.clone();
    both.extend(Rules::embedded());
    let (name, system_name) = name.split_once('\0').unwrap_or((name, name));
    let function = Function {
        name: name.to_owned(),
        system_name: system_name.to_owned(),
        file: name.to_owned(),
        is_folded: false,
    };
    for (own, all) in [
        (rules.lists_module(name), both.lists_module(name)),
        (rules.lists_function(&function), both.lists_function(&function)),
    ] {
        assert!(all || !own, "what was added took something away");
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "# a remark\n[module]\nlibx*.so\n[vdso]\n/opt/*/own/*\0/opt/a/own/b",
        "[file]\n*/src/*.rs\n[function]\nmine::*\n\0mine::wrap",
        "[function rust]\nalloc::*\ncore::*\n\0<alloc::vec::Vec<T> as core::iter::Extend<&T>>::extend\0_RNv",
        "[function c++]\nstd::*\n[symbol]\n_ZNSt*\n\0std::vector<int>::f()\0_ZNSt6vectorIiE1fEv",
        "[function swift]\nSwift.*\n\0generic specialization <Swift.Int> of Swift.Array.append()\0$sSa6append",
        "[nothing]\nx",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
