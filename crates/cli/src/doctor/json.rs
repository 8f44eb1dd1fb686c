//! The findings for programs: `schema/doctor.v1.schema.json` describes them.

use std::path::Path;

use heaptally_profile::path_text::escape_path;
use heaptally_report::escape::escape;
use serde_json::{Value, json};

use super::{Diagnosis, ProgramDiagnosis};

/// One object, on one line.
pub(crate) fn json(diagnosis: &Diagnosis) -> String {
    let program = diagnosis.program.as_ref().map(|program| {
        let ProgramDiagnosis { name, path, image, findings } = program;
        json!({
            "name": visible(name.as_encoded_bytes()),
            "path": path.as_deref().map(path_text),
            "image": image.as_deref().map(path_text),
            "findings": findings,
        })
    });
    let object: Value = json!({
        "schema": "heaptally-doctor",
        "version": 1,
        "machine": diagnosis.machine,
        "program": program,
        "recordable": diagnosis.is_recordable(),
    });
    format!("{object}\n")
}

fn path_text(path: &Path) -> String {
    visible(path.as_os_str().as_encoded_bytes())
}

/// Bytes as text in which nothing is left that a terminal could act on.
fn visible(bytes: &[u8]) -> String {
    escape(&escape_path(bytes)).into_owned()
}
