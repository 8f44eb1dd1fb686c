//! What all drivers have in common: the window, and the probes of a build that asks what is come by.

/// Runs `work` so many times in the window `w`; once before it, so that what is made once is made.
pub fn measure(iterations: u64, mut work: impl FnMut()) {
    work();
    probe::start();
    {
        let _window = heaptally::window(c"w");
        // Not unrolled: each iteration has the same addresses.
        for _ in 0..std::hint::black_box(iterations) {
            work();
        }
        heaptally::iterations(c"w", iterations);
    }
    probe::tell();
}

#[cfg(not(planted_probe))]
mod probe {
    pub fn start() {}
    pub fn tell() {}
}

#[cfg(planted_probe)]
mod probe {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    const MOST: usize = 1 << 16;
    static ON: AtomicBool = AtomicBool::new(false);
    static BELOW: AtomicU64 = AtomicU64::new(0);
    static CALLS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
    static DEPTHS: [AtomicU64; MOST] = [const { AtomicU64::new(u64::MAX) }; MOST];

    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut c_void, size: i32) -> i32;
    }

    fn depth() -> u64 {
        let mut frames = [std::ptr::null_mut(); 256];
        // SAFETY: the buffer has room for so many.
        unsafe { backtrace(frames.as_mut_ptr(), 256) as u64 }
    }

    #[unsafe(no_mangle)]
    extern "C" fn planted_probe(id: u32) {
        let id = id as usize;
        if ON.load(Relaxed) && CALLS[id].fetch_add(1, Relaxed) < 1000 {
            DEPTHS[id].fetch_min(depth().saturating_sub(BELOW.load(Relaxed)), Relaxed);
        }
    }

    pub fn start() {
        BELOW.store(depth(), Relaxed);
        ON.store(true, Relaxed);
    }

    pub fn tell() {
        ON.store(false, Relaxed);
        for (id, calls) in CALLS.iter().enumerate().filter(|(_, calls)| calls.load(Relaxed) > 0) {
            println!("probe {id} {} {}", calls.load(Relaxed), DEPTHS[id].load(Relaxed));
        }
    }
}
