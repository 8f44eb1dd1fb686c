//! The profile as its users see it: whole profiles through files and into their normal form.

mod arbitrary;
mod diff;
mod import;
mod merge;
mod normal_form;
mod round_trip;
