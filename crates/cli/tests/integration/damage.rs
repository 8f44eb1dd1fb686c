//! Every file that a command reads, damaged in every way: the command ends with the code for it, names the file, says why, and
//! leaves what was there.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::sandbox::{HEAPTALLY, Outcome, Sandbox, outcome, skip};

/// A call, in which `X` stands for the file that is damaged; what the file is; the code of a file that cannot be read.
struct Call {
    words: &'static str,
    file: Kind,
    code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Profile,
    Baseline,
    Heaptrack,
    Dhat,
    RawPprof,
    Folded,
    Limits,
    Thresholds,
    Rules,
    Config,
    Program,
}

const CALLS: [Call; 25] = [
    Call { words: "report X", file: Kind::Profile, code: 4 },
    Call { words: "report --json X", file: Kind::Profile, code: 4 },
    Call { words: "diff X good.pb.gz", file: Kind::Profile, code: 4 },
    Call { words: "diff good.pb.gz X --exit-code", file: Kind::Profile, code: 4 },
    Call { words: "check X --baseline ./good.pb.gz", file: Kind::Profile, code: 4 },
    Call { words: "check good.pb.gz --baseline X", file: Kind::Profile, code: 4 },
    Call { words: "check --baseline X --save-baseline old -- touch ran", file: Kind::Profile, code: 4 },
    Call { words: "merge good.pb.gz X -o old.pb.gz", file: Kind::Profile, code: 4 },
    Call { words: "limits update X --limits old.toml", file: Kind::Profile, code: 4 },
    Call { words: "limits show old.toml --profile X", file: Kind::Profile, code: 4 },
    Call { words: "diff main good.pb.gz", file: Kind::Baseline, code: 4 },
    Call { words: "check good.pb.gz --baseline main", file: Kind::Baseline, code: 4 },
    Call { words: "baseline show main", file: Kind::Baseline, code: 4 },
    Call { words: "report X", file: Kind::Heaptrack, code: 4 },
    Call { words: "report X", file: Kind::Dhat, code: 4 },
    Call { words: "report X", file: Kind::RawPprof, code: 4 },
    Call { words: "diff X X", file: Kind::Folded, code: 4 },
    Call { words: "check good.pb.gz --limits X", file: Kind::Limits, code: 4 },
    Call { words: "limits show X", file: Kind::Limits, code: 4 },
    Call { words: "limits update good.pb.gz --limits X", file: Kind::Limits, code: 4 },
    Call { words: "check good.pb.gz --limits X", file: Kind::Thresholds, code: 4 },
    Call { words: "limits update good.pb.gz --limits X", file: Kind::Thresholds, code: 4 },
    Call { words: "report good.pb.gz --rules X", file: Kind::Rules, code: 2 },
    Call { words: "report good.pb.gz --config X", file: Kind::Config, code: 2 },
    Call { words: "symbols X", file: Kind::Program, code: 4 },
];

impl Kind {
    /// The file's name in the working folder.
    fn name(self) -> &'static str {
        match self {
            Self::Profile => "./x.pb.gz",
            Self::Baseline => ".heaptally/main.pb.gz",
            Self::Heaptrack => "x.zst",
            Self::Dhat => "x.json",
            Self::RawPprof => "x.pb",
            Self::Folded => "x.folded",
            Self::Limits => "x.toml",
            Self::Thresholds => "A.process.p90.json",
            Self::Rules => "x.rules",
            Self::Config => "x.config.toml",
            Self::Program => "./x.program",
        }
    }

    /// A good one.
    fn content(self, profile: &[u8]) -> Vec<u8> {
        let fixture = |name: &str| {
            fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/fixture").join(name))
                .unwrap()
        };
        match self {
            Self::Profile | Self::Baseline => profile.to_vec(),
            Self::Heaptrack => fixture("heaptrack.zst"),
            Self::Dhat => unpacked(&fixture("dhat_rs.json.gz")),
            Self::RawPprof => unpacked(&fixture("go.pb.gz")),
            Self::Folded => unpacked(&fixture("heaptrack.folded.gz")),
            Self::Limits => b"[window.process]\nallocs = 100000\nbytes = 10000000\n".to_vec(),
            Self::Thresholds => b"{\n  \"mallocCountTotal\" : 100000,\n  \"other\" : 7\n}\n".to_vec(),
            Self::Rules => b"[function]\nmine::wrap*\n[module]\n/opt/own/*\n".to_vec(),
            Self::Config => b"[report]\nlimit = 3\n".to_vec(),
            Self::Program => fs::read(c_library()).unwrap(),
        }
    }

    /// Whether a part of it can be a whole file, too, and any bit of it another one.
    fn is_loose(self) -> bool {
        matches!(
            self,
            Self::Folded | Self::Limits | Self::Thresholds | Self::Rules | Self::Config | Self::Program
        )
    }

    /// Numbers that no program counts.
    fn huge(self) -> Option<Vec<u8>> {
        // A message of a length of 2^62 bytes.
        let endless = [0x0a, 4, 8, 1, 16, 2, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0];
        Some(match self {
            Self::Profile | Self::Baseline => {
                let mut packer = GzEncoder::new(Vec::new(), Compression::default());
                packer.write_all(&endless).unwrap();
                packer.finish().unwrap()
            }
            Self::Heaptrack => b"v 10400 3\ns ffffffffffffffff f\n".to_vec(),
            Self::Dhat => String::from_utf8(self.content(&[]))
                .unwrap()
                .replace("\"tbk\":", "\"tbk\":99999999999999999999")
                .into(),
            Self::RawPprof => endless.to_vec(),
            Self::Folded => b"a;b 18446744073709551614\na;c 7\n".to_vec(),
            Self::Limits => b"[window.process]\nallocs = 99999999999999999999999999\n".to_vec(),
            Self::Thresholds => b"{ \"mallocCountTotal\" : 1e999 }".to_vec(),
            Self::Config => b"[report]\nlimit = 99999999999999999999999999\n".to_vec(),
            Self::Rules | Self::Program => return None,
        })
    }
}

/// A library that names functions whatever was stripped: that which this test runs with.
fn c_library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.rfind(|path| path.ends_with("/libc.so.6")).unwrap().to_owned()
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut content).unwrap();
    content
}

/// A file in its place.
enum State {
    Missing,
    Folder,
    Loop,
    /// A device.
    Device(&'static str),
    /// What a pipe gives before it ends.
    Pipe(Vec<u8>),
    Bytes(Vec<u8>),
}

/// What becomes of the file, in words; and whether the command may take it for a whole one.
fn states(kind: Kind, good: &[u8]) -> Vec<(String, State, bool)> {
    let loose = kind.is_loose();
    let text = matches!(kind, Kind::Limits | Kind::Rules | Kind::Config);
    let mut states = vec![
        // `limits update` makes its file.
        ("missing".to_owned(), State::Missing, matches!(kind, Kind::Limits | Kind::Thresholds)),
        ("a folder".to_owned(), State::Folder, false),
        ("a link to itself".to_owned(), State::Loop, false),
        ("empty".to_owned(), State::Bytes(Vec::new()), text),
        ("/dev/null".to_owned(), State::Device("/dev/null"), text),
        ("/dev/zero".to_owned(), State::Device("/dev/zero"), false),
        ("an empty pipe".to_owned(), State::Pipe(Vec::new()), text),
        ("half a pipe".to_owned(), State::Pipe(good[..good.len() / 2].to_vec()), loose),
        ("one byte".to_owned(), State::Bytes(good[..1].to_vec()), loose),
        (
            "a picture".to_owned(),
            State::Bytes([&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &[0; 100]].concat()),
            false,
        ),
        ("packed by xz".to_owned(), State::Bytes([&b"\xfd7zXZ\0\0\x04"[..], &[0; 40]].concat()), false),
        ("Latin-1".to_owned(), State::Bytes(b"caf\xe9 = 1\n".repeat(40)), false),
        (
            "UTF-16".to_owned(),
            State::Bytes("\u{feff}limit = 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
            false,
        ),
        ("zeros".to_owned(), State::Bytes(vec![0; 5000]), false),
    ];
    if kind != Kind::Program {
        states.push(("a program".to_owned(), State::Bytes(crate::elf_copy::plain()), false));
    }
    if let Some(huge) = kind.huge() {
        states.push(("huge numbers".to_owned(), State::Bytes(huge), false));
    }
    for percent in [10, 50, 90, 99] {
        let bytes = good[..good.len() * percent / 100].to_vec();
        states.push((format!("cut to {percent} %"), State::Bytes(bytes), loose));
    }
    // What gzip's checksum or heaptally's own digest holds is refused; of the ten bytes before them some have no meaning.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..50 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (at, bit) = ((random >> 33) as usize % good.len(), (random >> 8) % 8);
        let mut bytes = good.to_vec();
        bytes[at] ^= 1 << bit;
        let is_sealed = matches!(kind, Kind::Profile | Kind::Baseline) && at >= 10;
        states.push((format!("bit {bit} of byte {at} turned"), State::Bytes(bytes), !is_sealed));
    }
    states
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Err(_) => {}
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
    }
}

/// Puts a file in its place; a pipe's writer waits for its reader.
fn place(path: &Path, state: &State) {
    remove(path);
    match state {
        State::Missing => {}
        State::Folder => fs::create_dir(path).unwrap(),
        State::Loop => symlink(path.file_name().unwrap(), path).unwrap(),
        State::Device(device) => symlink(device, path).unwrap(),
        State::Bytes(bytes) => {
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        State::Pipe(bytes) => {
            let (path, bytes) = (path.to_owned(), bytes.clone());
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o755.into(), 0).unwrap();
            thread::spawn(move || {
                // A reader that does not read, or nobody who reads: see `release`.
                let _closed =
                    OpenOptions::new().write(true).open(path).and_then(|mut pipe| pipe.write_all(&bytes));
            });
        }
    }
}

/// Lets a pipe's writer go that nobody read from.
fn release(path: &Path) {
    let nonblocking = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::RDONLY;
    let _reader = rustix::fs::open(path, nonblocking, rustix::fs::Mode::empty());
}

/// Calls the command with four gigabytes of addresses, for at most two minutes.
fn call(sandbox: &Sandbox, words: &str, file: &str) -> Outcome {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 4000000; exec timeout 120 \"$@\"", "sh", HEAPTALLY]);
    shell.args(words.split(' ').map(|word| if word == "X" { file } else { word }));
    let command = sandbox.command([""; 0]);
    shell.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    outcome(&mut shell)
}

/// A sandbox with a profile, a baseline of it, and what must stay.
fn sandbox() -> (Sandbox, Vec<u8>) {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-q", "-o", "good.pb.gz", "sort", "/etc/hostname"]).expect(0);
    fs::create_dir(sandbox.work(".git")).unwrap();
    sandbox.call(["run", "-q", "-o", "old.pb.gz", "--save-baseline", "old", "true"]).expect(0);
    sandbox.write("old.toml", "# mine\n[window.process]\nallocs = 1\n", 0o644);
    let profile = fs::read(sandbox.work("good.pb.gz")).unwrap();
    (sandbox, profile)
}

/// The files that no call may change when it fails.
fn kept(sandbox: &Sandbox) -> Vec<(PathBuf, Vec<u8>)> {
    let files =
        ["old.pb.gz", "old.toml", ".heaptally/old.pb.gz", "good.pb.gz"].map(|name| sandbox.work(name));
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

#[test]
fn every_file_in_every_state() {
    let (sandbox, profile) = sandbox();
    let before = kept(&sandbox);
    let (mut refused, mut faults) = (0, Vec::new());
    for Call { words, file, code } in CALLS {
        let path = sandbox.work(file.name());
        let good = file.content(&profile);
        for (name, state, may_be_whole) in states(file, &good) {
            place(&path, &state);
            let outcome = call(&sandbox, words, file.name());
            // What keeps to its form may limit nothing that is known; a program is replaced by no file.
            let is_empty = outcome.code == Some(4) && outcome.output.starts_with("NOT MEASURED: no limit");
            let is_kept = outcome.code == Some(2) && outcome.errors.contains("a program is there");
            let is_refused = (outcome.code == Some(code) || is_kept) && !is_empty;
            refused += u64::from(is_refused);
            let mut wrong =
                |what: &str| faults.push(format!("{what}: {words}, {file:?}: {name}: {outcome:#?}"));
            // A signal, an internal error, a panic, the time that was up.
            if outcome.code.is_none_or(|code| [1, 101, 124, 134, 139].contains(&code)) {
                wrong("it ended badly");
            } else if !is_refused && !may_be_whole {
                wrong("it was taken for a whole one");
            }
            if is_refused {
                let shown = file.name().trim_start_matches("./");
                let is_named = outcome.errors.contains(shown)
                    || (file == Kind::Baseline && outcome.errors.contains("`main`"));
                if !is_named {
                    wrong("it does not name the file");
                }
                if !outcome.output.is_empty() {
                    wrong("something was printed");
                }
                if sandbox.work("ran").exists() {
                    wrong("the program ran");
                }
                if before.iter().any(|(kept, content)| fs::read(kept).ok().as_ref() != Some(content)) {
                    wrong("another file was lost");
                }
                if let State::Bytes(bytes) = &state
                    && fs::read(&path).ok().as_ref() != Some(bytes)
                {
                    wrong("the file itself was changed");
                }
            }
            // What a whole one gives in its place.
            for (kept, content) in &before {
                fs::write(kept, content).unwrap();
                remove(&kept.with_extension("gz.stale"));
            }
            release(&path);
            remove(&path);
        }
        // Else nothing was shown.
        place(&path, &State::Bytes(good));
        let ended = call(&sandbox, words, file.name()).code;
        assert!(matches!(ended, Some(0 | 3)), "{words}, {file:?}: a good file gives {ended:?}");
        for (kept, content) in &before {
            fs::write(kept, content).unwrap();
        }
        remove(&path);
        remove(&sandbox.work("ran"));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(refused > 1000, "{refused} calls refused their file");
}

#[test]
fn a_file_that_may_not_be_read_is_said() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can call as another user");
        return;
    }
    const NOBODY: u32 = 65534;
    let (sandbox, profile) = sandbox();
    for folder in ["", "work"] {
        fs::set_permissions(sandbox.path(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for Call { words, file, code } in CALLS.iter().filter(|call| !matches!(call.file, Kind::Program)) {
        let path = sandbox.work(file.name());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, file.content(&profile)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let words: Vec<&str> =
            words.split(' ').map(|word| if word == "X" { file.name() } else { word }).collect();
        let mut command = sandbox.command(&words);
        let Ok(_) = command.uid(NOBODY).gid(NOBODY).output() else {
            return skip("another user cannot execute the command where it is");
        };
        let outcome = outcome(&mut command);
        // Where a file cannot be written, that comes first.
        outcome.expect(*code).says(&["Permission denied"]);
        remove(&path);
    }
}

/// On a disk without room nothing that is there is lost.
#[test]
fn a_full_disk_takes_nothing_away() {
    let (sandbox, profile) = sandbox();
    let script = "set -e; mkdir full; mount -t tmpfs -o size=32k tmpfs full; cp good.pb.gz old.toml full; \
                  mkdir full/.git full/.heaptally; cp good.pb.gz full/.heaptally/main.pb.gz; \
                  (cat /dev/zero > full/fill) 2>/dev/null || true; cd full; shift; set +e; \"$@\"; code=$?; \
                  cat good.pb.gz .heaptally/main.pb.gz > ../after; cat old.toml > ../after.toml; exit $code";
    for (words, code) in [
        ("merge ../good.pb.gz ../old.pb.gz -o good.pb.gz", 4),
        ("limits update ../good.pb.gz --limits old.toml", 4),
        ("check ../good.pb.gz --baseline ../good.pb.gz --report report.txt", 4),
        ("check ../good.pb.gz --baseline ../good.pb.gz --write sarif=report.sarif", 4),
        ("run -o good.pb.gz true", 125),
        ("run -o /dev/null --save-baseline main true", 125),
        ("check --baseline main --save-baseline main -- true", 4),
    ] {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rm", "sh", "-c", script, "sh", "--", HEAPTALLY]).args(words.split(' '));
        let command = sandbox.command([""; 0]);
        unshare.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            unshare.env(name, value);
        }
        let outcome = outcome(&mut unshare);
        if outcome.code == Some(1) && !outcome.errors.contains("heaptally: ") {
            return skip(&format!("a folder of its own cannot be mounted: {}", outcome.errors));
        }
        outcome.expect(code).says(&["No space left"]);
        assert_eq!(fs::read(sandbox.work("after")).unwrap(), [&profile[..], &profile].concat(), "{words}");
        assert_eq!(
            fs::read_to_string(sandbox.work("after.toml")).unwrap(),
            "# mine\n[window.process]\nallocs = 1\n"
        );
        fs::remove_dir(sandbox.work("full")).unwrap();
    }
}

/// A pipe is a file like another: `heaptally report <(zcat …)`.
#[test]
fn a_pipe_can_be_read() {
    let (sandbox, profile) = sandbox();
    let path = sandbox.work("pipe.pb.gz");
    place(&path, &State::Pipe(profile));
    let whole = sandbox.call(["report", "good.pb.gz"]).expect(0).output.clone();
    assert_eq!(sandbox.call(["report", "pipe.pb.gz"]).expect(0).output, whole);
    assert!(File::open(sandbox.work("good.pb.gz")).is_ok());
}
