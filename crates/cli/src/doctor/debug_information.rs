//! What names, files and lines a report of a program will have.

use std::path::{Path, PathBuf};

use heaptally_symbolize::find_debug_file;
use object::read::CompressionFormat;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::dwarf::{self, Description};
use super::finding::{Finding, count};
use super::image::{Elf, Image, build_id, has_section};
use super::range::{Range, START_FILES_BYTES, functions, overlap};
use crate::message::{quote, quote_bytes};

/// So many names are listed.
const MAX_LISTED: usize = 5;
const BUILD_ADVICE: &str = "build with -g (Rust: CARGO_PROFILE_RELEASE_DEBUG=1, and no strip)";

/// What was found, and the debug file, for who needs its symbols.
#[derive(Debug)]
pub(crate) struct DebugInformation {
    pub(crate) findings: Vec<Finding>,
    pub(crate) debug_file: Option<Image>,
}

/// Looks at a program's debug information.
pub(crate) fn examine(program: &Image, elf: &Elf<'_>) -> DebugInformation {
    let mut findings = vec![build_id_finding(elf)];
    let is_here = has_section(elf, ".debug_info");
    let (path, reasons) = if is_here {
        (None, Vec::new())
    } else {
        find_debug_file(&program.path, &heaptally_symbolize::Options::default().debug_dirs)
    };
    let debug_file = path.and_then(|path| Image::open(&path).ok());
    if let Some(file) = &debug_file {
        findings.push(Finding::ok("debug_file", quote(&file.path)));
    } else if !is_here {
        let found = match reasons.as_slice() {
            [] if build_id(elf).is_empty() => "none is named (neither build-id nor debug link)".to_owned(),
            [] => "there is none for its build-id".to_owned(),
            // They say what they are about, which the name of the check does already.
            reasons => reasons.join("; ").replace("debug file ", ""),
        };
        findings.push(Finding::note("debug_file", found));
    }
    let debug_elf = debug_file.as_ref().and_then(Image::elf);
    let has_symbols = has_function_symbols(elf) || debug_elf.as_ref().is_some_and(has_function_symbols);
    let of_description = debug_elf.as_ref().or(is_here.then_some(elf));
    match of_description {
        None => findings.push(absent(has_symbols, "there is none")),
        Some(described) => {
            let symbols = debug_elf.as_ref().filter(|_| !has_function_symbols(elf)).unwrap_or(elf);
            let path = debug_file.as_ref().map_or(program.path.as_path(), |file| &file.path);
            findings.extend(described_by(described, path, &functions(symbols)));
        }
    }
    findings.push(symbols(elf, has_symbols));
    if !findings.iter().any(|finding| finding.check == "compilers") {
        findings.extend(comment(elf));
    }
    DebugInformation { findings, debug_file }
}

fn build_id_finding(elf: &Elf<'_>) -> Finding {
    match build_id(elf) {
        id if id.is_empty() => {
            Finding::note("build_id", "none: a build is told from another by its path and code only")
                .advise("link with -Wl,--build-id")
        }
        id => Finding::ok("build_id", id),
    }
}

fn has_function_symbols(elf: &Elf<'_>) -> bool {
    elf.symbols().any(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
}

fn absent(has_symbols: bool, why: &str) -> Finding {
    const CHECK: &str = "debug_information";
    if has_symbols {
        let found =
            format!("{why}: functions have names, but no files and lines, and inlined calls are not shown");
        Finding::warning(CHECK, found, BUILD_ADVICE)
    } else {
        let found = format!("{why}, and no symbol table: most of its functions will show as addresses");
        Finding::warning(CHECK, found, format!("{BUILD_ADVICE}, or install its debug package"))
    }
}

/// What the debug information in a file says.
fn described_by(elf: &Elf<'_>, path: &Path, functions: &[Range]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(description) = dwarf::read(elf) else {
        return vec![absent(!functions.is_empty(), "what is there cannot be read")];
    };
    if description.split_units > 0 {
        findings.push(split(&description, path));
    }
    findings.insert(0, detail(&description, functions));
    findings.push(format(elf, &description));
    if !description.compilers.is_empty() {
        let languages = description.compilers.iter().map(|(language, compilers)| {
            let names: Vec<String> = compilers.iter().take(MAX_LISTED).map(|name| visible(name)).collect();
            format!("{language}: {}{}", names.join(", "), more(compilers.len()))
        });
        findings.push(Finding::ok("compilers", languages.collect::<Vec<_>>().join("; ")));
    }
    findings
}

fn detail(description: &Description, functions: &[Range]) -> Finding {
    const CHECK: &str = "debug_information";
    let Description { units, lines_only, full, split_units, has_inlined, is_partial, .. } = *description;
    if units == 0 && split_units > 0 {
        return Finding::ok(
            CHECK,
            format!("in files of their own: {}", count(split_units as u64, "unit", "units")),
        );
    }
    if units == 0 {
        let whose = if description.has_rust_library {
            "only that of Rust's standard library"
        } else {
            "only of assembly"
        };
        return absent(!functions.is_empty(), whose);
    }
    let inlined = if has_inlined { "inlined calls are described" } else { "no inlined calls" };
    let partial = if is_partial { ", as far as it was looked at" } else { "" };
    let units_text = count(units as u64, "unit", "units");
    if lines_only == units {
        return Finding::warning(
            CHECK,
            format!("line tables only ({units_text}): inlined functions lose their full names{partial}"),
            "build with -g (clang: not -gline-tables-only; Rust: CARGO_PROFILE_RELEASE_DEBUG=1, not line-tables-only)",
        );
    }
    let what = if full * 2 >= units { "full" } else { "functions and lines" };
    let lines =
        if lines_only > 0 { format!(", of these {lines_only} with line tables only") } else { String::new() };
    let found = format!("{what} ({units_text}{lines}), {inlined}{partial}");
    let bytes = |range: &Range| range.end - range.start;
    let described: Vec<&Range> =
        functions.iter().filter(|function| overlap(function, &description.code) > 0).collect();
    let all: u64 = functions.iter().map(bytes).sum();
    let missing = all - described.iter().copied().map(bytes).sum::<u64>();
    if split_units == 0 && !is_partial && missing > START_FILES_BYTES.max(all / 2) {
        return Finding::warning(
            CHECK,
            format!("{found}, but only for {} of {} functions", described.len(), functions.len()),
            BUILD_ADVICE,
        );
    }
    Finding::ok(CHECK, found)
}

fn format(elf: &Elf<'_>, description: &Description) -> Finding {
    let versions: Vec<String> = description.versions.iter().map(u16::to_string).collect();
    let compression = elf
        .section_by_name(".debug_info")
        .and_then(|section| section.compressed_file_range().ok())
        .map_or(CompressionFormat::None, |range| range.format);
    let compressed = match compression {
        CompressionFormat::None => "",
        CompressionFormat::Zlib => ", compressed (zlib)",
        CompressionFormat::Zstandard => ", compressed (zstd)",
        _ => ", compressed in a way that is not known",
    };
    Finding::ok("debug_format", format!("DWARF {}{compressed}", versions.join(" and ")))
}

/// Units that were moved to files of their own: all in one beside the program, or each by the name it gives.
fn split(description: &Description, path: &Path) -> Finding {
    const CHECK: &str = "split_debug_information";
    let mut package = path.as_os_str().to_owned();
    package.push(".dwp");
    let package = PathBuf::from(package);
    if package.is_file() {
        return Finding::ok(CHECK, format!("in {}", quote(&package)));
    }
    let missing: Vec<&PathBuf> = description.split.iter().filter(|path| !path.is_file()).collect();
    let all = count(description.split.len() as u64, "file", "files");
    match missing.first() {
        None => Finding::ok(CHECK, format!("in {all} of its own, all there")),
        Some(first) => Finding::warning(
            CHECK,
            format!("of {all} {} are missing, first {}", missing.len(), quote(first)),
            "record where the program was built, or put a .dwp file beside it",
        ),
    }
}

fn symbols(elf: &Elf<'_>, has_symbols: bool) -> Finding {
    if has_function_symbols(elf) {
        return Finding::ok("symbols", "there is a symbol table");
    }
    if has_symbols {
        return Finding::ok("symbols", "stripped; the debug file has them");
    }
    let exported =
        elf.dynamic_symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    Finding::note(
        "symbols",
        match exported.count() as u64 {
            0 => "stripped: no function has a name".to_owned(),
            some => format!(
                "stripped: only {} by name",
                count(some, "exported function is known", "exported functions are known")
            ),
        },
    )
}

/// What compilers wrote into `.comment`.
fn comment(elf: &Elf<'_>) -> Option<Finding> {
    let section = elf.section_by_name(".comment")?;
    let data = section.data().ok()?;
    let mut names: Vec<&[u8]> = data.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let listed: Vec<String> =
        names.iter().take(MAX_LISTED).map(|name| visible(&String::from_utf8_lossy(name))).collect();
    (!names.is_empty())
        .then(|| Finding::ok("compilers", format!("{}{}", listed.join(", "), more(names.len()))))
}

fn more(total: usize) -> String {
    if total > MAX_LISTED { format!(" and {} more", total - MAX_LISTED) } else { String::new() }
}

/// A compiler's name, not too long, with everything in it visible.
fn visible(name: &str) -> String {
    const MAX: usize = 100;
    let short: String = name.chars().take(MAX).collect();
    let quoted = quote_bytes(short.as_bytes());
    quoted.trim_matches('`').to_owned()
}
