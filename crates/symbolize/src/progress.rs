//! How far the symboliser is.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How far [`Symbolizer::symbolize_observed`](crate::Symbolizer::symbolize_observed) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// How many modules are done.
    pub modules_done: usize,
    /// How many modules there are to look at.
    pub modules_total: usize,
    /// How many addresses are looked up.
    pub addresses_done: usize,
    /// How many addresses there are to look up.
    pub addresses_total: usize,
    /// The path of the module that was begun last.
    pub module: &'a str,
}

/// What the threads count. Only numbers for people: nothing is ordered by them.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    addresses: AtomicUsize,
    module: AtomicUsize,
}

impl Counter {
    /// Addresses were looked up.
    pub(crate) fn add(&self, addresses: usize) {
        self.addresses.fetch_add(addresses, Ordering::Relaxed);
    }

    /// A module was begun.
    pub(crate) fn begin(&self, module: usize) {
        self.module.store(module, Ordering::Relaxed);
    }

    /// The addresses that are done, and the module that was begun last.
    pub(crate) fn read(&self) -> (usize, usize) {
        (self.addresses.load(Ordering::Relaxed), self.module.load(Ordering::Relaxed))
    }
}
