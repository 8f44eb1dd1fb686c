// Values of Rust threads whose drop allocates: as many threads as the first argument says, each with 3 boxes in `body_work` and 5
// in `drop_work`, which runs in the drop of a thread-local value.
use std::cell::Cell;
use std::hint::black_box;

struct Value(Cell<u32>);

#[inline(never)]
fn body_work() {
    for at in 0..3_u64 {
        drop(black_box(Box::new(at)));
    }
}

#[inline(never)]
fn drop_work() {
    for at in 0..5_u64 {
        drop(black_box(Box::new([at; 4])));
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        drop_work();
    }
}

thread_local! {
    static VALUE: Value = const { Value(Cell::new(0)) };
}

fn main() {
    let threads: u32 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    for number in 0..threads {
        let thread = std::thread::spawn(move || {
            VALUE.with(|value| value.0.set(number));
            body_work();
        });
        thread.join().expect("the thread ends well");
    }
}
