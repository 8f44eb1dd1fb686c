//! Any text as a mangled name.
#![no_main]

use heaptally_fuzz::seed;
use heaptally_symbolize::demangle;
use libfuzzer_sys::fuzz_target;

/// The longest name that is demangled, in bytes.
const MAX_NAME_BYTES: usize = 1 << 20;

fuzz_target!(init: seed::plant(seeds), |bytes: &[u8]| {
    let name = String::from_utf8_lossy(bytes);
    let text = demangle(&name);
    // Each part of a clone suffix gets brackets.
    assert!(text.len() <= MAX_NAME_BYTES + 12 * name.len(), "{} bytes of {}", text.len(), name.len());
    if !["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix)) {
        assert_eq!(text, name, "taken for a mangled name");
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let names = [
        "_ZN3foo3barEi",
        "__ZNSt6vectorIiSaIiEE9push_backEOi",
        "_ZN3foo3bar17h0123456789abcdefE.llvm.1234",
        "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
        "_RNvC6_123foo3bar.llvm.A1B2",
        "_RNvMs_NtCs1234_7mycrate3fooNtB4_3Bar3baz",
        "_RINvNtC3std3mem8align_ofINtNtC3std6option6OptionfEE",
        "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_6memchr7memrchrs_0E0",
        "_Z1fI1WIS_IiEEEvT_DpT0_",
        "_ZZ4mainENKUlvE_clEv",
        "_ZN1AC1ERKS_.part.0.constprop.12.cold",
        "_ZTv0_n24_N1A1fEv",
        "_Z3fooILi2EEvRAplT_Li1E_i",
        "_ZNK1fIXsr1XE1vEEdv",
        "_ZdlPvSt11align_val_t",
        "main.constprop.0",
        "$s4mine6ParserV5parseyyF",
    ];
    names.map(|name| name.as_bytes().to_vec()).to_vec()
}
