//! What `heaptally check` and `heaptally limits` are made of.

pub(crate) mod form;
pub(crate) mod limits_file;
pub(crate) mod record;
pub(crate) mod self_test;
