//! The processes of a run that follows children: which there were, what each did, a profile for each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use heaptally_profile::model::{ChildProgram, Children, ImageId, Losses, Profile, StackId};
use heaptally_profile::part::ByImage;
use heaptally_profile::path_text::escape_path;
use heaptally_profile::pprof;
use heaptally_report::escape::escape;
use heaptally_segment::layout::{CHILD_NAME_BYTES, FLAG_CHILD};
use heaptally_segment::read::{Snapshot, State};
use rustix::fs::{major, minor};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

use crate::convert::add_losses;
use crate::exit::Failure;
use crate::output::{Content, Output};
use crate::process::End;

/// How many processes are shown.
const SHOWN: usize = 20;
/// The longest name of a program in a file's name, in bytes.
const NAME_BYTES: usize = 64;

/// One process, with all images that it ran.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    /// Indices into the profile's images, which are in the order of the segment's areas.
    images: Vec<ImageId>,
    is_child: bool,
    /// Of the program itself.
    end: Option<End>,
    /// It runs on, and has the segment mapped.
    is_running: bool,
    losses: Losses,
    frees_from_before: u64,
    program: String,
    allocations: u64,
    stacks: u64,
    profile: Option<String>,
}

/// The processes of a snapshot, in the order in which they attached. `running` are those that run on.
pub(crate) fn processes(snapshot: &Snapshot, running: &BTreeSet<u32>, end: End) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    // The process that has a number, while it goes on from image to image.
    let mut current: HashMap<u32, usize> = HashMap::new();
    for (image, area) in snapshot.areas.iter().enumerate() {
        let is_child = area.flags & FLAG_CHILD != 0;
        let known = current.get(&area.pid).copied().filter(|_| image > 0);
        let at = known.unwrap_or_else(|| {
            processes.push(Process {
                pid: area.pid,
                images: Vec::new(),
                is_child,
                end: (!is_child).then_some(end),
                is_running: false,
                losses: Losses::default(),
                frees_from_before: 0,
                program: String::new(),
                allocations: 0,
                stacks: 0,
                profile: None,
            });
            processes.len() - 1
        });
        if area.state == State::Replaced {
            current.insert(area.pid, at);
        } else {
            current.remove(&area.pid);
        }
        if let Some(process) = processes.get_mut(at) {
            process.images.push(image);
            add_losses(&mut process.losses, &area.losses);
            process.frees_from_before = process.frees_from_before.saturating_add(area.frees_from_before);
        }
    }
    for process in processes.iter_mut().filter(|process| process.is_child) {
        process.is_running = running.contains(&process.pid);
    }
    processes
}

/// The numbers of the processes that have the segment mapped: descendants that run on, those included that have not
/// allocated yet and have no area. Other users' cannot be looked at.
///
/// They are looked for until two looks agree: one that forks and ends while the list is read hides its child from it.
pub(crate) fn running(segment: &File) -> BTreeSet<u32> {
    const LOOKS: usize = 5;
    let mut found = look_for_running(segment);
    for _ in 0..LOOKS {
        let again = look_for_running(segment);
        if again == found {
            break;
        }
        found = again;
    }
    found
}

fn look_for_running(segment: &File) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    // Most processes of a machine are older; to read the maps of all of them takes long.
    let start = start_time(own).unwrap_or(0);
    let is_younger = |pid: u32| pid != own && start_time(pid).is_some_and(|of| of >= start);
    numbers.filter(|pid| is_younger(*pid) && is_mapped(*pid, segment)).collect()
}

/// When a process began, in the kernel's ticks.
fn start_time(pid: u32) -> Option<u64> {
    /// Its place behind the name, which stands in brackets and may hold blanks (proc_pid_stat(5)).
    const FIELD: usize = 19;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(FIELD)?.parse().ok()
}

/// Which programs the processes run that have the segment mapped, and how many of them.
pub(crate) fn running_programs(segment: &File) -> BTreeMap<String, u64> {
    let mut programs: BTreeMap<String, u64> = BTreeMap::new();
    for pid in running(segment) {
        let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
        // As the recorder keeps it.
        let name = name.get(..CHILD_NAME_BYTES).unwrap_or(name);
        *programs.entry(escape_path(name)).or_default() += 1;
    }
    programs
}

/// Adds the children that ran on and had not been noticed: one that is forked at the very end gets its first turn after
/// the program's end.
pub(crate) fn add_unnoticed(children: &mut Children, running: BTreeMap<String, u64>) {
    for (program, count) in running {
        match children.not_recorded.iter_mut().find(|child| child.program == program) {
            Some(child) => child.count = child.count.max(count),
            None => children.not_recorded.push(ChildProgram { program, count }),
        }
    }
    children.not_recorded.sort();
}

/// Whether a process that runs has a file mapped. Its number alone would not do: another process may have it by now.
fn is_mapped(pid: u32, file: &File) -> bool {
    let (Ok(maps), Ok(metadata)) = (fs::read(format!("/proc/{pid}/maps")), file.metadata()) else {
        return false;
    };
    let device = format!("{:02x}:{:02x}", major(metadata.dev()), minor(metadata.dev()));
    let inode = metadata.ino().to_string();
    String::from_utf8_lossy(&maps).lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        fields.next() == Some(&device) && fields.next() == Some(&inode)
    })
}

impl Process {
    /// How it ended, as far as that is known.
    fn ending(&self) -> String {
        match self.end {
            Some(End { signal: Some(signal), .. }) => format!("signal {signal}"),
            Some(End { exit_code, .. }) => format!("exit {}", exit_code.unwrap_or(0)),
            None if self.is_running => "runs on".to_owned(),
            None => "ended".to_owned(),
        }
    }

    /// For `--json-status`.
    pub(crate) fn json(&self) -> Value {
        json!({
            "pid": self.pid,
            "program": self.program,
            "child": self.is_child,
            "running": self.is_running,
            "exit_code": self.end.and_then(|end| end.exit_code),
            "signal": self.end.and_then(|end| end.signal),
            "allocations": self.allocations,
            "stacks": self.stacks,
            "profile": self.profile,
        })
    }

    /// Its own profile.
    fn own_profile(&self, by_image: &ByImage<'_>) -> Result<Profile, heaptally_profile::Error> {
        let mut own = by_image.of(&self.images)?;
        own.losses = self.losses.clone();
        own.environment.frees_from_before = self.frees_from_before;
        own.environment.exit_code = self.end.map(|end| i32::from(end.code()));
        Ok(own)
    }
}

/// Takes from the profile, whose images are still those of the areas, what is said of each process.
pub(crate) fn note(processes: &mut [Process], profile: &Profile) {
    let mut owners: Vec<Option<usize>> = vec![None; profile.images.len()];
    for (number, process) in processes.iter_mut().enumerate() {
        let image = process.images.last().and_then(|image| profile.images.get(*image));
        process.program = image.map(|image| image.label.clone()).unwrap_or_default();
        for image in &process.images {
            if let Some(owner) = owners.get_mut(*image) {
                *owner = Some(number);
            }
        }
    }
    let mut stacks: BTreeSet<(usize, StackId)> = BTreeSet::new();
    for row in profile.rows.iter().filter(|row| row.counts.allocations > 0) {
        let image = profile.windows.get(row.window).map(|window| window.image);
        let Some(owner) = image.and_then(|image| owners.get(image).copied().flatten()) else { continue };
        let Some(process) = processes.get_mut(owner) else { continue };
        process.allocations = process.allocations.saturating_add(row.counts.allocations);
        process.stacks += u64::from(stacks.insert((owner, row.stack)));
    }
}

/// Writes a profile for each process beside the one of all, `x.<program>-<pid>.pb.gz` beside `x.pb.gz`.
pub(crate) fn write_profiles(
    processes: &mut [Process],
    profile: &Profile,
    output: &Path,
) -> Result<(), Failure> {
    let mut taken: HashMap<PathBuf, u32> = HashMap::new();
    let by_image = profile.by_image().map_err(|error| {
        Failure::recorder(format!(
            "the processes cannot be told apart: {error}\nrun without --follow-children"
        ))
    })?;
    for process in processes {
        let own = process.own_profile(&by_image).map_err(|error| {
            Failure::recorder(format!("the profile of process {} cannot be made: {error}", process.pid))
        })?;
        let mut path = path_of(output, &process.program, process.pid, 0);
        // A number that was used twice.
        let uses = taken.entry(path.clone()).and_modify(|uses| *uses += 1).or_insert(0);
        if *uses > 0 {
            path = path_of(output, &process.program, process.pid, *uses);
        }
        Output::prepare(&path, Content::Profile)?.write(&pprof::write(&own))?;
        process.profile = Some(escape_path(path.as_os_str().as_bytes()));
    }
    Ok(())
}

fn path_of(output: &Path, program: &str, pid: u32, again: u32) -> PathBuf {
    let name = output.file_name().unwrap_or_default();
    let stem = name.as_bytes().strip_suffix(b".pb.gz").unwrap_or(name.as_bytes());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    let program = program.bytes().take(NAME_BYTES).map(|byte| if is_plain(byte) { byte } else { b'_' });
    let mut file = stem.to_vec();
    file.push(b'.');
    file.extend(program);
    file.extend(format!("-{pid}").bytes());
    if again > 0 {
        file.extend(format!("-{}", again + 1).bytes());
    }
    file.extend(b".pb.gz");
    output.with_file_name(std::ffi::OsStr::from_bytes(&file))
}

/// The table of processes: the program first, then those that allocated most.
pub(crate) fn table(processes: &[Process]) -> String {
    let mut order: Vec<&Process> = processes.iter().collect();
    order.sort_by_key(|process| (process.is_child, std::cmp::Reverse(process.allocations)));
    let mut lines = vec![["pid", "program", "end", "allocations", "stacks"].map(str::to_owned)];
    for process in order.iter().take(SHOWN) {
        lines.push([
            process.pid.to_string(),
            escape(&process.program).into_owned(),
            process.ending(),
            process.allocations.to_string(),
            process.stacks.to_string(),
        ]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = format!(
        "{} {} recorded",
        processes.len(),
        if processes.len() == 1 { "process" } else { "processes" }
    );
    for line in &lines {
        text.push_str(&format!(
            "\n{:>pid$}  {:<program$}  {:<end$}  {:>allocations$}  {:>stacks$}",
            line[0],
            line[1],
            line[2],
            line[3],
            line[4],
            pid = widths[0],
            program = widths[1],
            end = widths[2],
            allocations = widths[3],
            stacks = widths[4],
        ));
    }
    if order.len() > SHOWN {
        text.push_str(&format!("\n{} more; --json-status lists all", order.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_file_beside_that_of_all() {
        let path = |output: &str, program: &str, again| path_of(Path::new(output), program, 7, again);
        assert_eq!(path("out/x.pb.gz", "cc1", 0), Path::new("out/x.cc1-7.pb.gz"));
        assert_eq!(path("x", "a b/\u{1b}", 1), Path::new("x.a_b__-7-2.pb.gz"));
    }

    #[test]
    fn this_process_has_its_own_program_mapped() {
        let program = File::open("/proc/self/exe").unwrap();
        assert!(is_mapped(std::process::id(), &program));
        assert!(!is_mapped(std::process::id(), &tempfile::tempfile().unwrap()));
        assert!(!is_mapped(u32::MAX, &program));
    }
}
