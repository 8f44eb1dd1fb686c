//! The segment's file, as this command makes it: at its full, sparse size, with its header.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use heaptally_segment::layout::{
    AREA_BYTES, AREA_LIMIT, FIRST_AREA, FileHeader, MAGIC, NAMES_BYTES, OPTION_FOLLOW_BENCHMARKS,
    OPTION_FOLLOW_CHILDREN, OPTION_NAMED_WINDOWS, PAGE, VERSION,
};
use rustix::fs::MemfdFlags;

use crate::exit::Failure;
use crate::message::quote;

/// Room for the images of one process: those that replace each other.
const AREAS_OF_ONE_PROCESS: u32 = 64;

/// The windows that were asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) all: &'a [OsString],
    /// So many of them, from the first on, can be restarted.
    pub(crate) restartable: u32,
    /// Only these exist.
    pub(crate) are_all: bool,
}

/// The file in which recorder and command meet.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    file: File,
    path: PathBuf,
    is_named: bool,
}

impl SegmentFile {
    /// Makes the file: in memory, or in a folder.
    pub(crate) fn create(folder: Option<&Path>, options: u32, names: Names<'_>) -> Result<Self, Failure> {
        const FOLLOW: u32 = OPTION_FOLLOW_CHILDREN | OPTION_FOLLOW_BENCHMARKS;
        let page = header(options, names)?;
        let segment = match folder {
            None => Self::in_memory(),
            Some(folder) => Self::in_folder(folder),
        }
        .map_err(|error| cannot(folder, &error))?;
        let areas = if options & FOLLOW == 0 { AREAS_OF_ONE_PROCESS } else { AREA_LIMIT };
        segment.write(page, areas).map_err(|error| cannot(folder, &error))?;
        segment.refuse_unreachable()?;
        Ok(segment)
    }

    /// Writes the header, for as many areas as a file of this file system can hold.
    fn write(&self, mut page: Vec<u8>, areas: u32) -> io::Result<()> {
        let mut areas = areas;
        while let Err(error) = self.file.set_len(FIRST_AREA + u64::from(areas) * AREA_BYTES) {
            areas /= 2;
            if areas < AREAS_OF_ONE_PROCESS
                || !matches!(error.raw_os_error(), Some(libc::EFBIG | libc::EINVAL))
            {
                return Err(error);
            }
        }
        let at = offset_of!(FileHeader, area_limit);
        page[at..at + 4].copy_from_slice(&areas.to_le_bytes());
        self.file.write_all_at(&page, 0)
    }

    /// The program opens the segment by its path, and reads where it is from /proc.
    fn refuse_unreachable(&self) -> Result<(), Failure> {
        if let Err(error) = File::open("/proc/self/environ") {
            return Err(Failure::recorder(format!(
                "cannot read /proc/self/environ: {error}\nmount /proc: the recorder reads it in the program"
            )));
        }
        let opened = OpenOptions::new().read(true).write(true).open(&self.path);
        opened.map(drop).map_err(|error| {
            Failure::recorder(format!(
                "cannot open the segment by its path {}, as the program has to: {error}\n\
                 mount /proc of this pid namespace (unshare --mount-proc), or use --segment-dir DIR, a folder that the \
                 program can write to",
                quote(&self.path)
            ))
        })
    }

    fn in_memory() -> io::Result<Self> {
        let file = File::from(rustix::fs::memfd_create("heaptally", MemfdFlags::CLOEXEC)?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Self { file, path: path.into(), is_named: false })
    }

    fn in_folder(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        for attempt in 0.. {
            let path = folder.join(format!("heaptally-{}-{attempt}.segment", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { file, path, is_named: true }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < 100 => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(ErrorKind::AlreadyExists))
    }

    /// The path by which the program's recorder opens it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if self.is_named {
            // What cannot be removed now is the user's folder's business.
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

fn cannot(folder: Option<&Path>, error: &io::Error) -> Failure {
    let is_limit = matches!(error.raw_os_error(), Some(libc::EFBIG));
    let limit = "raise the limit of the size of files (ulimit -f unlimited)";
    match folder {
        None => {
            let next = if is_limit {
                limit
            } else {
                "use --segment-dir DIR, a folder that the program can write to"
            };
            Failure::recorder(format!("cannot make the segment in memory (memfd_create): {error}\n{next}"))
        }
        Some(folder) => {
            let next = if is_limit { limit } else { "choose another --segment-dir" };
            Failure::recorder(format!("cannot make the segment in {}: {error}\n{next}", quote(folder)))
        }
    }
}

fn header(options: u32, names: Names<'_>) -> Result<Vec<u8>, Failure> {
    use std::os::unix::ffi::OsStrExt;

    let Names { all: names, restartable, are_all } = names;
    let mut joined = Vec::new();
    for name in names {
        joined.extend_from_slice(name.as_bytes());
        joined.push(0);
    }
    if names.iter().any(|name| name.is_empty()) {
        return Err(Failure::recorder("a name of --window is empty\nname a window that the program opens"));
    }
    if joined.len() > NAMES_BYTES {
        return Err(Failure::recorder(format!(
            "the names of --window have {} bytes together, and {NAMES_BYTES} is the most\nname fewer windows",
            joined.len()
        )));
    }
    let options = options | if are_all { OPTION_NAMED_WINDOWS } else { 0 };
    let mut page = vec![0; PAGE as usize];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(offset_of!(FileHeader, magic), &MAGIC.to_le_bytes());
    put(offset_of!(FileHeader, version), &VERSION.to_le_bytes());
    put(offset_of!(FileHeader, options), &options.to_le_bytes());
    put(offset_of!(FileHeader, area_bytes), &AREA_BYTES.to_le_bytes());
    put(offset_of!(FileHeader, names_len), &(joined.len() as u32).to_le_bytes());
    put(offset_of!(FileHeader, restartable), &restartable.to_le_bytes());
    put(offset_of!(FileHeader, names), &joined);
    Ok(page)
}
