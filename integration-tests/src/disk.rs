//! Small disks.

use crate::scratch::Scratch;
use crate::tool;

/// A tmpfs in the folder `small` of a scratch folder, mounted for as long as this lives.
#[derive(Debug)]
pub struct SmallDisk<'a> {
    scratch: &'a Scratch,
}

impl<'a> SmallDisk<'a> {
    /// Mounts one with the options `options`, such as `size=64k`.
    ///
    /// `None` where that cannot be done: the test is skipped.
    pub fn mount(scratch: &'a Scratch, options: &str) -> Option<Self> {
        if !tool::is_root() || !tool::have(&["mount"]) {
            tool::skip("mounting a tmpfs needs root");
            return None;
        }
        scratch.shell(&format!("mkdir -p small && mount -t tmpfs -o {options} none small"));
        Some(Self { scratch })
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        self.scratch.shell("umount -l small");
    }
}
