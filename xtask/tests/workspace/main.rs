//! What holds for the workspace as a whole: its arrows, its sources' form, and what the preload library shows.

#![expect(clippy::unwrap_used, reason = "a test that cannot look fails")]

mod arrow;
mod header;
mod preload_symbol;
mod source_form;

use std::path::{Path, PathBuf};

/// The workspace's folder.
fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    folder.canonicalize().unwrap_or(folder)
}
