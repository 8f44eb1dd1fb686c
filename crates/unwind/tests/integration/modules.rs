//! The modules and stacks of this process, as the dynamic loader and the C library tell of them.

extern crate std;
use std::ffi::{CStr, c_int, c_void};
use std::string::String;
use std::vec::Vec;

use heaptally_unwind::ModuleSections;

/// The loaded modules that have unwind information, with their paths (empty for the executable).
pub(crate) fn loaded_modules() -> Vec<(String, ModuleSections)> {
    let mut modules: Vec<(String, ModuleSections)> = Vec::new();
    // SAFETY: `add` gets the vector that stands here.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid record, and `data` is what `loaded_modules` gave.
    let (info, modules) = unsafe { (&*info, &mut *data.cast::<Vec<(String, ModuleSections)>>()) };
    // SAFETY: the loader gives a C string.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned();
    // SAFETY: the loader gives that many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let range = |header: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        (start, start + header.p_memsz)
    };
    let loads: Vec<_> = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).collect();
    let hull = |loads: &mut dyn Iterator<Item = (u64, u64)>| {
        loads.fold((u64::MAX, 0), |hull, range| (hull.0.min(range.0), hull.1.max(range.1)))
    };
    let (start, end) = hull(&mut loads.iter().map(|load| range(load)));
    let is_code = |load: &&&libc::Elf64_Phdr| load.p_flags & libc::PF_X != 0;
    let (text_start, text_end) = hull(&mut loads.iter().filter(is_code).map(|load| range(load)));
    let (eh_frame_hdr, eh_frame_hdr_len) = headers
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_EH_FRAME)
        .map_or((0, 0), |header| (range(header).0, header.p_memsz));
    let mapped_end = loads
        .iter()
        .map(|load| range(load))
        .find(|range| (range.0..range.1).contains(&eh_frame_hdr))
        .map_or(0, |range| range.1);
    modules.push((
        name,
        ModuleSections { start, end, text_start, text_end, eh_frame_hdr, eh_frame_hdr_len, mapped_end },
    ));
    0
}
