//! (to be written)
#![no_std]
