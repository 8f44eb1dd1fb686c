//! What a report shows.

use heaptally_profile::model::Profile;

/// What a report shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many stacks are shown of each window; 0: all. Text only: JSON holds all of them.
    pub limit: usize,
    /// The names of the windows to show; empty: all, and of an automatic `process` window beside others its head line
    /// only.
    pub windows: Vec<String>,
    /// Whether to write terminal colours. Text only.
    pub color: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { limit: 20, windows: Vec::new(), color: false }
    }
}

impl Options {
    /// The names of [`windows`](Self::windows) that the profile does not have.
    pub fn missing_windows(&self, profile: &Profile) -> Vec<&str> {
        let known = |name: &&str| profile.windows.iter().any(|window| window.name == *name);
        self.windows.iter().map(String::as_str).filter(|name| !known(name)).collect()
    }
}
