//! The reports of whole profiles: text by snapshots, JSON against its schema.

mod check;
mod diff;
mod diff_answer;
mod fixture;
mod form;
mod json;
mod schema;
mod summary;
mod text;
