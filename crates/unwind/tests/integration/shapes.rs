//! Single frames that end a walk, or need the fallback.

use std::cell::Cell;
use std::ffi::c_void;

use heaptally_unwind::{End, FRAME_POINTER};

use crate::frame_shape::{
    Next, shape_no_cfi, shape_no_cfi_junk_rbp, shape_no_cfi_rbp_to, shape_r12_cfa, shape_rbp, shape_rbx_cfa,
    shape_rsp, shape_zero_return_address,
};
use crate::harness::{OTHER_CODE, Recorder};

thread_local! {
    static RECORDER: Cell<*mut Recorder> = const { Cell::new(std::ptr::null_mut()) };
}

extern "C" fn event(_: *mut c_void) {
    // SAFETY: the test stored its recorder.
    let recorder = unsafe { &mut *RECORDER.get() };
    recorder.event();
    recorder.event();
}

extern "C" fn through_rsp(data: *mut c_void) {
    // SAFETY: `event` takes anything.
    unsafe { shape_rsp(event, data) };
}

/// A recorder that is not compared with libgcc, which gives up at such frames or calls them the end.
fn recorder() -> Recorder {
    let mut recorder = Recorder::new();
    recorder.asks_libgcc = false;
    recorder
}

fn end_of(recorder: &Recorder) -> End {
    recorder.walk.expect("an event").end
}

#[test]
fn without_information_a_frame_pointer_leads_on() {
    let mut recorder = recorder();
    RECORDER.set(&raw mut recorder);
    for next in [event as Next, through_rsp] {
        // SAFETY: `next` takes anything.
        unsafe { shape_no_cfi(next, std::ptr::null_mut()) };
        assert_eq!(end_of(&recorder), End::Complete);
        let flagged = recorder.stack.iter().filter(|address| **address & FRAME_POINTER != 0).count();
        assert_eq!(flagged, 1, "{:x?}", recorder.stack);
        assert!(recorder.walk.unwrap().kept > 3, "code of modules is remembered: {:?}", recorder.walk);
    }
}

#[test]
fn without_information_and_frame_pointer_the_walk_is_cut() {
    let mut recorder = recorder();
    RECORDER.set(&raw mut recorder);
    // SAFETY: `event` takes anything.
    unsafe { shape_no_cfi_junk_rbp(through_rsp, std::ptr::null_mut()) };
    assert_eq!(end_of(&recorder), End::CutNoInformation);
    let len = recorder.stack.len();
    // A stack word that is no code is no return address.
    let mut fake = [0u64; 4];
    let rbp = &raw mut fake as u64;
    fake[1] = rbp;
    std::hint::black_box(&mut fake);
    // SAFETY: likewise.
    unsafe { shape_no_cfi_rbp_to(through_rsp, std::ptr::null_mut(), rbp) };
    assert_eq!((end_of(&recorder), recorder.stack.len()), (End::CutNoInformation, len));
    // Nor is one outside of the stack.
    let mut heap = Box::new([0u64; 4]);
    heap[1] = event as *const () as u64 + 4;
    // SAFETY: likewise.
    unsafe { shape_no_cfi_rbp_to(through_rsp, std::ptr::null_mut(), heap.as_ptr() as u64) };
    assert_eq!((end_of(&recorder), recorder.stack.len()), (End::CutNoInformation, len));
}

#[test]
fn what_a_wrong_frame_pointer_leads_to_is_read_with_care() {
    let mut recorder = recorder();
    RECORDER.set(&raw mut recorder);
    // A believable return address, into a function whose frame is found by rbp; and an rbp that leads nowhere.
    for junk in [0u64, 8, 0x1234_5678_1234_5678, 0x5555_0000_0000, u64::MAX - 7, 0x7fff_ffff_fff8] {
        // The call in `shape_rbp` ends 16 bytes behind its start.
        let inside = shape_rbp as *const () as u64 + 16;
        let fake = [junk, inside, 0, 0];
        // SAFETY: `through_rsp` takes anything.
        unsafe { shape_no_cfi_rbp_to(through_rsp, std::ptr::null_mut(), fake.as_ptr() as u64) };
        assert_eq!(end_of(&recorder), End::CutBadStack, "{junk:#x}");
        assert_eq!(recorder.stack.last(), Some(&(inside | FRAME_POINTER)));
        std::hint::black_box(fake);
    }
}

#[test]
fn an_unknown_register_is_never_invented() {
    let mut recorder = recorder();
    RECORDER.set(&raw mut recorder);
    // SAFETY: `event` takes anything.
    unsafe { shape_r12_cfa(event, std::ptr::null_mut()) };
    assert_eq!(end_of(&recorder), End::CutBadInformation);
}

/// rbx is where an inner frame saved it, or what it still is; the recorder compares each walk with libgcc's.
#[test]
fn a_frame_whose_end_is_in_rbx() {
    extern "C" fn through_other_rbx(data: *mut c_void) {
        // SAFETY: `event` takes anything.
        unsafe { shape_rbx_cfa(event, data) };
    }
    let mut recorder = recorder();
    recorder.asks_libgcc = true;
    RECORDER.set(&raw mut recorder);
    for next in [event as Next, through_rsp, through_other_rbx, event, through_rsp] {
        // SAFETY: each takes anything.
        unsafe { shape_rbx_cfa(next, std::ptr::null_mut()) };
        assert_eq!(end_of(&recorder), End::Complete);
        let inside =
            |address: &u64| (1..32).contains(&address.wrapping_sub(shape_rbx_cfa as *const () as u64));
        let is_other = next as usize == through_other_rbx as *const () as usize;
        assert_eq!(
            recorder.stack.iter().filter(|address| inside(address)).count(),
            1 + usize::from(is_other)
        );
    }
}

#[test]
fn a_return_address_of_zero_is_the_end_as_long_as_it_is_zero() {
    thread_local! {
        static ENDS: Cell<[Option<(End, usize)>; 4]> = const { Cell::new([None; 4]) };
    }
    // NOTE: no assertion in here: a panic's backtrace would go by the lie on the stack.
    extern "C" fn change(slot: *mut c_void) {
        let slot = slot.cast::<u64>();
        // SAFETY: the test stored its recorder.
        let recorder = unsafe { &mut *RECORDER.get() };
        ENDS.set([0, 0, u64::MAX, 0].map(|word| {
            // SAFETY: the slot is a word of `shape_zero_return_address`'s frame that it does not use.
            unsafe { slot.write_volatile(word) };
            recorder.event();
            Some((end_of(recorder), recorder.walk.unwrap().kept))
        }));
    }
    let mut recorder = recorder();
    RECORDER.set(&raw mut recorder);
    // SAFETY: `change` takes what it gets from this shape.
    unsafe { shape_zero_return_address(change, std::ptr::null_mut()) };
    let [Some((End::Complete, 0)), Some((End::Complete, kept)), cut, again] = ENDS.get() else {
        panic!("{:?}", ENDS.get());
    };
    assert!(kept > 0);
    assert_eq!((cut, again), (Some((End::CutBadStack, 0)), Some((End::Complete, 0))));
}

/// The same code as `shape_no_cfi`'s, in memory that no module owns.
#[test]
fn code_made_at_run_time_is_walked_by_its_frame_pointer() {
    let code: [u8; 14] = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3];
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the page is ours and larger.
    unsafe { page.cast::<[u8; 14]>().write(code) };
    // SAFETY: these bytes are a function of this type.
    let made: crate::frame_shape::Shape = unsafe { std::mem::transmute(page) };
    let mut recorder = recorder();
    RECORDER.set(&raw mut recorder);
    // The made function calls `shape_no_cfi(event, …)`, so that the way into the made one is a frame pointer too.
    // SAFETY: both take two pointers.
    let inner: Next = unsafe { std::mem::transmute(shape_no_cfi as crate::frame_shape::Shape) };
    for is_known in [true, false, true] {
        OTHER_CODE.set(if is_known { page as u64 } else { 0 });
        for _ in 0..2 {
            // SAFETY: `event` takes anything.
            unsafe { made(inner, event as *mut c_void) };
            let flagged = recorder.stack.iter().filter(|address| **address & FRAME_POINTER != 0).count();
            let expected = if is_known { (End::Complete, 2) } else { (End::CutNoInformation, 0) };
            assert_eq!((end_of(&recorder), flagged), expected, "{:x?}", recorder.stack);
        }
    }
}
