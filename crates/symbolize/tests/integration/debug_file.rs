//! Debug information in files of its own: good, missing, of another build, without content, compressed, split, shared.

use std::fs;
use std::path::PathBuf;

use heaptally_profile::model::Profile;
use heaptally_symbolize::Options;
use object::{Object as _, ObjectSection as _};

use crate::build::{Workshop, address_of, frames_of, module_of, names, symbolize, symbolize_with};

const SOURCE: &str = "#include <stdlib.h>\n\
    static void *volatile sink;\n\
    static inline __attribute__((always_inline)) void inner(void) {\n\
      sink = malloc(3);\n\
      free(sink);\n\
    }\n\
    __attribute__((noinline,noclone)) static void work(void) {\n\
      for (int i = 0; i < 5; i++) {\n\
        inner();\n\
      }\n\
    }\n\
    int main(void) { work(); return 0; }\n";

/// Builds `program` and `program.debug`; the result is an address in `work`.
fn build_stripped(workshop: &Workshop, flags: &str) -> u64 {
    workshop.write("program.c", SOURCE);
    workshop.sh(&format!("gcc -O0 -g {flags} -o program program.c"));
    let address = address_of(&workshop.path("program"), "work");
    workshop.sh("objcopy --only-keep-debug program program.debug");
    workshop.sh("strip -s program");
    workshop.sh("objcopy --add-gnu-debuglink=program.debug program");
    address
}

fn problem(profile: &Profile) -> &str {
    profile.modules[0].symbol_problem.as_deref().unwrap_or_default()
}

#[test]
fn a_good_debug_file_beside_the_program_names_everything() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    let address = build_stripped(&workshop, "");
    let path = workshop.path("program");
    let profile = symbolize(&path, &[address + 4]);
    let frames = &frames_of(&profile)[0];
    assert_eq!((frames[0].0.as_str(), frames[0].3), ("work", 7));
    assert!(frames[0].2.ends_with("/program.c"));
    assert_eq!(profile.modules[0].symbol_problem, None);
    assert_eq!(profile.environment.compilers.len(), 1);

    // In .debug/ beside it, and below a debug dir.
    fs::create_dir(workshop.path(".debug")).unwrap();
    fs::rename(workshop.path("program.debug"), workshop.path(".debug/program.debug")).unwrap();
    assert_eq!(names(&symbolize(&path, &[address + 4])), [["work"]]);
    let below = workshop.path("global").join(path.parent().unwrap().strip_prefix("/").unwrap());
    fs::create_dir_all(&below).unwrap();
    fs::rename(workshop.path(".debug/program.debug"), below.join("program.debug")).unwrap();
    let options = Options { debug_dirs: vec![workshop.path("global")], ..Default::default() };
    assert_eq!(names(&symbolize_with(options, module_of(&path), &[address + 4])), [["work"]]);
}

#[test]
fn without_the_debug_file_the_functions_start_is_named() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    let address = build_stripped(&workshop, "");
    fs::remove_file(workshop.path("program.debug")).unwrap();
    let profile = symbolize(&workshop.path("program"), &[address + 4, address + 9]);
    let name = format!("program+{address:#x}");
    assert_eq!(names(&profile), [[name.as_str()], [name.as_str()]]);
    assert_eq!(profile.functions.len(), 1);
    assert!(problem(&profile).contains("stripped"), "{}", problem(&profile));
    assert!(problem(&profile).contains("\"program.debug\" was not found"), "{}", problem(&profile));
}

#[test]
fn a_debug_file_of_another_build_is_refused() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    for flags in ["", "-Wl,--build-id=none"] {
        let address = build_stripped(&workshop, flags);
        workshop.sh(&format!("gcc -O2 -g {flags} -o other program.c"));
        workshop.sh("objcopy --only-keep-debug other program.debug");
        let profile = symbolize(&workshop.path("program"), &[address + 4]);
        assert_eq!(names(&profile), [[format!("program+{address:#x}")]], "{flags}");
        assert!(problem(&profile).contains("is of another build"), "{}", problem(&profile));
        let reason = if flags.is_empty() { "build-id" } else { "CRC" };
        assert!(problem(&profile).contains(reason), "{}", problem(&profile));
    }
}

#[test]
fn a_debug_file_of_the_same_build_with_another_crc_is_refused() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    let address = build_stripped(&workshop, "");
    let mut bytes = fs::read(workshop.path("program.debug")).unwrap();
    bytes.extend_from_slice(b"more");
    fs::write(workshop.path("program.debug"), bytes).unwrap();
    let profile = symbolize(&workshop.path("program"), &[address + 4]);
    assert_eq!(names(&profile), [[format!("program+{address:#x}")]]);
    assert!(problem(&profile).contains("CRC"), "{}", problem(&profile));
}

#[test]
fn a_debug_file_is_found_by_build_id_also_when_the_program_is_gone() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    let address = build_stripped(&workshop, "-Wl,--build-id");
    let path = workshop.path("program");
    let module = module_of(&path);
    let (folder, rest) = module.build_id.split_at(2);
    let below = workshop.path("global").join(".build-id").join(folder);
    fs::create_dir_all(&below).unwrap();
    fs::rename(workshop.path("program.debug"), below.join(format!("{rest}.debug"))).unwrap();
    let options = || Options { debug_dirs: vec![workshop.path("global")], ..Default::default() };
    let profile = symbolize_with(options(), module.clone(), &[address + 4]);
    assert_eq!(names(&profile), [["work"]]);
    assert_eq!(profile.modules[0].symbol_problem, None);

    fs::remove_file(&path).unwrap();
    let profile = symbolize_with(options(), module, &[address + 4]);
    assert_eq!(names(&profile), [["work"]]);
    assert!(problem(&profile).contains("cannot be read"), "{}", problem(&profile));
}

#[test]
fn a_debug_file_without_debug_info_gives_symbols_and_says_so() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    let address = build_stripped(&workshop, "");
    workshop.sh("objcopy --remove-section .debug_info program.debug");
    workshop.sh("objcopy --remove-section .gnu_debuglink program");
    workshop.sh("objcopy --add-gnu-debuglink=program.debug program");
    let profile = symbolize(&workshop.path("program"), &[address + 4]);
    assert_eq!(names(&profile), [["work"]], "by its symbols");
    assert_eq!(frames_of(&profile)[0][0].3, 0);
    assert!(problem(&profile).contains("has no .debug_info"), "{}", problem(&profile));
}

#[test]
fn a_debug_link_does_not_leave_its_folders() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    let address = build_stripped(&workshop, "");
    let mut bytes = fs::read(workshop.path("program")).unwrap();
    let at = bytes.windows(13).position(|window| window == b"program.debug").unwrap();
    bytes[at..at + 13].copy_from_slice(b"../x/../y/z.d");
    fs::write(workshop.path("program"), bytes).unwrap();
    let profile = symbolize(&workshop.path("program"), &[address + 4]);
    assert!(problem(&profile).contains("is not a file name"), "{}", problem(&profile));
}

#[test]
fn compressed_sections_are_read() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    workshop.write("program.c", SOURCE);
    for kind in ["zlib", "zlib-gnu"] {
        workshop.sh("gcc -O2 -g -o program program.c");
        workshop.sh(&format!("objcopy --compress-debug-sections={kind} program"));
        let path = workshop.path("program");
        let profile = symbolize(&path, &[address_of(&path, "work") + 8]);
        assert_eq!(names(&profile)[0].last().unwrap(), "work", "{kind}");
        assert_eq!(profile.modules[0].symbol_problem, None);
    }
}

/// A file says how large a section will be; room is not made for more than can be in it.
#[test]
fn sections_that_say_to_be_huge_are_damaged() {
    let Some(workshop) = Workshop::with(&["gcc", "objcopy"]) else { return };
    workshop.write("program.c", SOURCE);
    workshop.sh("gcc -O2 -g -o program program.c");
    workshop.sh("objcopy --compress-debug-sections=zlib program");
    let path = workshop.path("program");
    let mut bytes = fs::read(&path).unwrap();
    let address = address_of(&path, "work") + 8;
    let places = object::File::parse(&*bytes).unwrap();
    let place = places.section_by_name(".debug_info").unwrap().file_range().unwrap().0 as usize;
    // `Elf64_Chdr`: type, reserved, size, alignment.
    bytes[place + 8..place + 16].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let profile = symbolize(&path, &[address]);
    assert_eq!(names(&profile)[0].last().unwrap(), "work");
    let problem = profile.modules[0].symbol_problem.as_deref().unwrap_or_default();
    assert!(problem.contains(".debug_info is compressed, and larger than it can be"), "{problem}");
}

/// The frames of all addresses of `work`, for comparison.
fn work_frames(path: PathBuf) -> (Vec<Vec<crate::build::Frame>>, Profile) {
    let start = address_of(&path, "work");
    let addresses: Vec<u64> = (start..start + 40).collect();
    let profile = symbolize(&path, &addresses);
    (frames_of(&profile), profile)
}

#[test]
fn split_dwarf_is_read_and_missed_by_name() {
    let Some(workshop) = Workshop::with(&["gcc", "dwp"]) else { return };
    workshop.write("program.c", SOURCE);
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        workshop.sh(&format!("gcc -O2 {version} -c program.c"));
        workshop.sh("gcc -o whole program.o");
        let (expected, _) = work_frames(workshop.path("whole"));
        assert!(expected.iter().any(|frames| frames.len() == 2), "something is inlined");

        workshop.sh(&format!("gcc -O2 {version} -gsplit-dwarf -c program.c"));
        workshop.sh("gcc -o split program.o");
        let (frames, profile) = work_frames(workshop.path("split"));
        assert_eq!(frames, expected, "{version}");
        assert_eq!(profile.modules[0].symbol_problem, None);

        if version == "-gdwarf-4" {
            // binutils' dwp knows version 4 only.
            workshop.sh("dwp -e split -o split.dwp");
            fs::remove_file(workshop.path("program.dwo")).unwrap();
            let (frames, profile) = work_frames(workshop.path("split"));
            assert_eq!(frames, expected);
            assert_eq!(profile.modules[0].symbol_problem, None);
            fs::remove_file(workshop.path("split.dwp")).unwrap();
        } else {
            fs::remove_file(workshop.path("program.dwo")).unwrap();
        }
        let (frames, profile) = work_frames(workshop.path("split"));
        assert!(frames.iter().all(|frames| frames.len() == 1 && frames[0].1 == "work"), "{frames:?}");
        assert!(problem(&profile).contains("program.dwo"), "{}", problem(&profile));
    }
}

#[test]
fn rusts_split_debug_information_is_read() {
    let Some(workshop) = Workshop::with(&["rustc"]) else { return };
    workshop.write("program.rs", "#[inline(never)] fn work(n: u32) -> String { n.to_string() }\nfn main() { println!(\"{}\", work(3)); }\n");
    for split in ["off", "unpacked", "packed"] {
        workshop.sh(&format!("rustc -O -g -Csplit-debuginfo={split} -o program program.rs"));
        let path = workshop.path("program");
        let start = address_of(&path, "7program4work");
        let profile = symbolize(&path, &(start..start + 60).collect::<Vec<_>>());
        assert_eq!(profile.modules[0].symbol_problem, None, "{split}");
        assert!(names(&profile).iter().any(|frames| frames.len() > 1), "{split}");
        assert!(names(&profile).iter().all(|frames| frames.last().unwrap() == "program::work"), "{split}");
    }
}

#[test]
fn what_dwz_shares_is_read_and_missed_by_name() {
    let Some(workshop) = Workshop::with(&["gcc", "dwz"]) else { return };
    workshop.write("program.c", SOURCE);
    workshop.sh("gcc -O2 -gdwarf-4 -o one program.c");
    let (expected, _) = work_frames(workshop.path("one"));
    workshop.sh("cp one two");
    workshop.sh("dwz -m shared one two");
    let (frames, profile) = work_frames(workshop.path("one"));
    assert_eq!(frames, expected);
    assert_eq!(profile.modules[0].symbol_problem, None);
    fs::remove_file(workshop.path("shared")).unwrap();
    assert!(problem(&work_frames(workshop.path("one")).1).contains("shared"));
}
