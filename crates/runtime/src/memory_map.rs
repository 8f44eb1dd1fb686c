//! `/proc/self/maps`, for the rare questions that the module table cannot answer: where does this thread's stack end,
//! and is that address code although it lies in no loaded object?

use crate::sys::{File, Query};

/// One line of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_code: bool,
}

/// How many bytes are read at a time. The lines are longer than what is kept of them only by their paths.
pub(crate) const BUFFER_BYTES: usize = 2048;

/// The mapping that holds an address; `None` also when the map cannot be read.
///
/// PERF: a process with 20,000 threads has as many lines; where the kernel (6.11) answers such a question itself, nothing
/// is read.
pub(crate) fn find(address: u64, buffer: &mut [u8; BUFFER_BYTES]) -> Option<Mapping> {
    let file = File::open(c"/proc/self/maps", false)?;
    match file.query_map(address) {
        Query::Found { start, end, is_code } => Some(Mapping { start, end, is_code }),
        Query::None => None,
        Query::Unknown => read(&file, address, buffer),
    }
}

/// The path of the file that is mapped at an address, as far as it fits: how long it is.
pub(crate) fn path_at(address: u64, path: &mut [u8], buffer: &mut [u8; BUFFER_BYTES]) -> usize {
    let Some(file) = File::open(c"/proc/self/maps", false) else { return 0 };
    let mut line = Line::default();
    let mut len = 0;
    loop {
        let read = file.read(buffer);
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { return 0 };
        for byte in part {
            match line.push(*byte) {
                Some(mapping) if mapping.start <= address && address < mapping.end => return len,
                Some(_) => len = 0,
                // Nothing before the path has a slash.
                None if (len > 0 || *byte == b'/') && len < path.len() => {
                    path[len] = *byte;
                    len += 1;
                }
                None => {}
            }
        }
    }
}

/// The same as [`find`], by reading the lines.
fn read(file: &File, address: u64, buffer: &mut [u8; BUFFER_BYTES]) -> Option<Mapping> {
    let mut line = Line::default();
    loop {
        let len = file.read(buffer);
        let part = buffer.get(..len).filter(|part| !part.is_empty())?;
        for byte in part {
            if let Some(mapping) = line.push(*byte)
                && mapping.start <= address
                && address < mapping.end
            {
                return Some(mapping);
            }
        }
    }
}

/// A line as far as it was read: `start-end rwxp …`.
#[derive(Default)]
struct Line {
    numbers: [u64; 2],
    field: usize,
    at: usize,
    is_code: bool,
}

impl Line {
    fn push(&mut self, byte: u8) -> Option<Mapping> {
        match byte {
            b'\n' => {
                let done = core::mem::take(self);
                return Some(Mapping { start: done.numbers[0], end: done.numbers[1], is_code: done.is_code });
            }
            b'-' if self.field == 0 => self.field = 1,
            b' ' if self.field < 3 => {
                self.field = self.field.max(1) + 1;
                self.at = 0;
            }
            b'x' if self.field == 2 && self.at == 2 => self.is_code = true,
            _ if self.field == 2 => self.at += 1,
            _ if self.field < 2 => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                self.numbers[self.field] = (self.numbers[self.field] << 4) | u64::from(digit);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(address: u64) -> Option<Mapping> {
        find(address, &mut [0; BUFFER_BYTES])
    }

    #[test]
    fn stacks_and_code_are_found() {
        let local = 0_u64;
        let stack = look_up((&raw const local).addr() as u64).unwrap();
        assert!(!stack.is_code);
        let code = look_up(look_up as *const () as u64).unwrap();
        assert!(code.is_code && code.start < code.end);
        assert_eq!(look_up(8), None);
    }

    #[test]
    fn a_mapping_has_its_files_path() {
        let path_of = |address, path: &mut [u8]| path_at(address, path, &mut [0; BUFFER_BYTES]);
        let own = std::env::current_exe().unwrap();
        let own = std::os::unix::ffi::OsStrExt::as_bytes(own.as_os_str());
        let code = look_up as *const () as u64;
        let mut path = [0; 1024];
        let len = path_of(code, &mut path);
        assert_eq!(&path[..len], own);
        assert_eq!((path_of(code, &mut path[..5]), &path[..5]), (5, &own[..5]));
        assert_eq!(path_of((&raw const path).addr() as u64, &mut [0; 8]), 0);
        assert_eq!(path_of(8, &mut [0; 8]), 0);
    }

    #[test]
    fn every_line_agrees_with_a_plain_reading() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        for line in text.lines().filter(|line| line.ends_with(".so.6") || line.contains("[vdso]")) {
            let (range, rest) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let start = u64::from_str_radix(start, 16).unwrap();
            let end = u64::from_str_radix(end, 16).unwrap();
            let expected = Mapping { start, end, is_code: rest.starts_with("r-x") };
            for address in [start, end - 1] {
                assert_eq!(look_up(address), Some(expected), "{line}");
                let file = File::open(c"/proc/self/maps", false).unwrap();
                assert_eq!(read(&file, address, &mut [0; BUFFER_BYTES]), Some(expected), "{line}");
            }
        }
    }
}
