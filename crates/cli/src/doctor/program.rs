//! Whether one program can be recorded, and what its report will have.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::elf::ET_DYN;
use object::read::elf::FileHeader as _;
use object::{LittleEndian, Object};

use super::finding::{Finding, Level, count, size};
use super::image::{Elf, Image};
use super::needed::{Needed, library_path};
use super::{allocator, debug_information, glibc, unwind_table};
use crate::elf::{Elf as Head, Linkage};
use crate::exit::Failure;
use crate::message::quote;
use crate::program::{
    SCRIPT_LEVELS, executable_of, find, no_program, refuse_elf, refuse_privileges, unreadable,
};
use crate::script::{self, HEAD_BYTES, Kind, SHELL};

/// So many names are listed.
const MAX_LISTED: usize = 5;

/// What was found about a program.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// Its path, when it was found.
    pub(crate) path: Option<PathBuf>,
    /// The executable that runs: behind scripts their interpreter.
    pub(crate) image: Option<PathBuf>,
    pub(crate) findings: Vec<Finding>,
}

/// Looks at the program that `heaptally run` would start by this name.
pub(crate) fn examine(name: &OsStr) -> Examined {
    let mut examined = Examined::default();
    if let Err(failure) = examined.follow(name) {
        examined.findings.push(Finding::of_failure("file", &failure));
    }
    // What is said here must not be milder than what `run` does.
    if let Err(failure) = crate::program::examine(name)
        && !examined.findings.iter().any(|finding| finding.level == Level::Problem)
    {
        examined.findings.push(Finding::of_failure("start", &failure));
    }
    examined
}

impl Examined {
    /// Finds the program, follows scripts to their interpreter, and looks at that.
    fn follow(&mut self, name: &OsStr) -> Result<(), Failure> {
        let mut path = find(name)?;
        self.path = Some(path.clone());
        let mut script: Option<PathBuf> = None;
        for _ in 0..=SCRIPT_LEVELS {
            executable_of(&path, script.as_deref())?;
            let head = match head(&path) {
                Ok(head) => head,
                Err(error) => {
                    self.findings.push(Finding::of_failure("file", &unreadable(&path, &error)));
                    self.privileges(&path);
                    self.image = Some(path);
                    return Ok(());
                }
            };
            let next = match script::kind(&head) {
                Kind::Elf => {
                    self.image(&path, &head);
                    self.image = Some(path);
                    return Ok(());
                }
                Kind::Other => return Err(no_program(&path)),
                Kind::Script(interpreter) => {
                    self.findings.push(Finding::note(
                        "script",
                        format!(
                            "{} is a script for {}, which is what is recorded",
                            quote(&path),
                            quote(&interpreter)
                        ),
                    ));
                    interpreter
                }
                Kind::Text => {
                    let what = if head.is_empty() { "is empty" } else { "is text without a #! line" };
                    self.findings.push(
                        Finding::note(
                            "script",
                            format!("{} {what}: {SHELL} runs it and is recorded", quote(&path)),
                        )
                        .advise("name its interpreter in a first line that begins with #!"),
                    );
                    PathBuf::from(SHELL)
                }
            };
            if !next.exists() {
                self.findings.push(Finding::of_failure("script", &script::refuse_missing(&next, &path)));
                return Ok(());
            }
            script = Some(path);
            path = next;
        }
        // That is one script more than the kernel follows: `run` refuses it, in its words.
        Ok(())
    }

    fn privileges(&mut self, path: &Path) {
        self.findings.push(match refuse_privileges(path) {
            Ok(()) => Finding::ok("privileges", "none are gained (setuid, setgid, capabilities)"),
            Err(failure) => Finding::of_failure("privileges", &failure),
        });
    }

    /// Looks at an ELF file.
    fn image(&mut self, path: &Path, head: &[u8]) {
        let len = std::fs::metadata(path).map_or(0, |found| found.len());
        // A folder that is reached by a link is no news.
        let real = std::fs::canonicalize(path).ok().filter(|real| real.file_name() != path.file_name());
        let real = real.map_or_else(String::new, |real| format!(" → {}", quote(real)));
        self.findings
            .push(Finding::ok("file", format!("{}{real}, an ELF file of {}", quote(path), size(len))));
        self.privileges(path);
        let Ok(file) = File::open(path) else { return };
        let Some(known) = Head::read(&file, head) else { return };
        let is_refused = self.start(path, &file, head, &known.linkage);
        if matches!(known.linkage, Linkage::Foreign | Linkage::Damaged) {
            return;
        }
        let Ok(image) = Image::open(path) else { return };
        let Some(elf) = image.elf() else { return };
        self.contents(&image, &elf, &known.linkage, is_refused);
    }

    /// What decides whether the recorder gets into the program. Returns whether it does not.
    fn start(&mut self, path: &Path, file: &File, head: &[u8], linkage: &Linkage) -> bool {
        let check = match linkage {
            Linkage::Foreign | Linkage::Damaged | Linkage::Static(_) => "linkage",
            Linkage::Dynamic(loader) if loader.to_string_lossy().contains("ld-musl") => "libc",
            Linkage::Dynamic(loader) if !loader.exists() => "loader",
            Linkage::Dynamic(_) | Linkage::Loader => "sanitizer",
        };
        match refuse_elf(path, file, head) {
            Err(failure) => {
                self.findings.push(Finding::of_failure(check, &failure));
                true
            }
            Ok(warnings) => {
                self.findings.push(Finding::ok("sanitizer", "none"));
                self.findings.extend(warnings);
                false
            }
        }
    }

    /// What else the file tells. Of a program that is refused, what it calls in this process does not matter.
    fn contents(&mut self, image: &Image, elf: &Elf<'_>, linkage: &Linkage, is_refused: bool) {
        let is_dynamic = matches!(linkage, Linkage::Dynamic(_) | Linkage::Loader);
        if is_dynamic {
            let is_pie = elf.elf_header().e_type(LittleEndian) == ET_DYN;
            let kind = if is_pie { "at any address (PIE)" } else { "at a fixed address (ET_EXEC)" };
            self.findings.push(Finding::ok("linkage", format!("dynamic, {kind}")));
        }
        if let Linkage::Dynamic(loader) = linkage
            && loader.exists()
        {
            self.findings.push(Finding::ok("loader", quote(loader)));
        }
        if is_dynamic && !is_refused {
            let needed = Needed::of(image, &library_path());
            self.libraries(&needed);
            self.findings.push(libc(elf));
            self.findings.extend(allocator::examine(elf, &needed.libraries));
        }
        let debug = debug_information::examine(image, elf);
        self.findings.extend(debug.findings);
        if matches!(linkage, Linkage::Static(_)) {
            return;
        }
        let debug_elf = debug.debug_file.as_ref().and_then(Image::elf);
        let has_symbols = elf.symbols().next().is_some();
        let symbols = if has_symbols { elf } else { debug_elf.as_ref().unwrap_or(elf) };
        self.findings.push(unwind_table::examine(elf, symbols));
    }

    fn libraries(&mut self, needed: &Needed) {
        let mut names: Vec<String> = needed
            .libraries
            .iter()
            .map(|library| quote(library.path.file_name().unwrap_or(library.path.as_os_str())))
            .collect();
        let found = count(names.len() as u64, "needed library found", "needed libraries found");
        let rest = names.len().saturating_sub(MAX_LISTED);
        names.truncate(MAX_LISTED);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let separator = if names.is_empty() { "" } else { ": " };
        self.findings.push(Finding::ok("libraries", format!("{found}{separator}{}{more}", names.join(", "))));
        for (name, by) in &needed.missing {
            self.findings.push(Finding::problem(
                "libraries",
                format!("{}, needed by {}, was not found", quote(name), quote(by)),
                "install it, or name its folder in LD_LIBRARY_PATH",
            ));
        }
    }
}

/// The beginning of a file.
fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The C library, and whether this machine's is new enough for the program.
fn libc(elf: &Elf<'_>) -> Finding {
    const CHECK: &str = "libc";
    let versions = required_versions(elf);
    let needed = versions.iter().filter_map(|name| glibc::parse(name.strip_prefix("GLIBC_")?)).max();
    let Some((major, minor)) = needed else {
        return Finding::ok(CHECK, "glibc (no version is asked for)");
    };
    match glibc::running() {
        Some((version, text)) if version < (major, minor) => Finding::problem(
            CHECK,
            format!("it asks for glibc {major}.{minor}, and here is {text}"),
            "build it on this system or an older one",
        ),
        _ => Finding::ok(CHECK, format!("glibc, {major}.{minor} or later")),
    }
}

/// The versions of symbols that a file needs of its libraries.
fn required_versions(elf: &Elf<'_>) -> Vec<String> {
    let (sections, endian) = (elf.elf_section_table(), LittleEndian);
    let mut names = Vec::new();
    let Ok(Some((mut needed, link))) = sections.gnu_verneed(endian, elf.data()) else { return names };
    let Ok(strings) = sections.strings(endian, elf.data(), link) else { return names };
    while let Ok(Some((_, mut versions))) = needed.next() {
        while let Ok(Some(version)) = versions.next() {
            if let Ok(name) = version.name(endian, strings) {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    names
}
