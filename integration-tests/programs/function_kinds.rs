//! Functions of Rust beneath which windows are to be; nothing here knows of the recorder. 10 rounds of each:
//!
//! `generic<T>`      two instances: 1 allocation of each
//! `by_closure`      its closure: 1 allocation
//! `wait_thrice`     an async function that is polled 4 times: 1 allocation a poll
//! `panics`          1 allocation, and what the panic takes; it is caught in `main`

use std::future::Future;
use std::hint::black_box;
use std::panic;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[inline(never)]
fn generic<T: Copy>(value: T) -> T {
    black_box(Box::new(value));
    black_box(value)
}

#[inline(never)]
fn call(closure: &dyn Fn(u32) -> u32) -> u32 {
    black_box(closure)(3)
}

#[inline(never)]
fn by_closure(factor: u32) -> u32 {
    call(&|value| *black_box(Box::new(value * factor)))
}

struct Later(u32);

impl Future for Later {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        black_box(Box::new(self.0));
        self.0 += 1;
        if self.0 > 3 { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn wait_thrice() -> u32 {
    Later(0).await;
    black_box(7)
}

#[inline(never)]
fn panics(number: u32) -> u32 {
    black_box(Box::new(number));
    if number < 100 {
        panic::resume_unwind(Box::new(number));
    }
    number
}

fn main() {
    let mut sum = 0;
    for round in 0..10 {
        sum += generic(round) + generic(u64::from(round)) as u32;
        sum += by_closure(round);
        let mut future: Pin<Box<dyn Future<Output = u32>>> = Box::pin(wait_thrice());
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(value) = black_box(&mut future).as_mut().poll(&mut context) {
                sum += value;
                break;
            }
        }
        sum += panic::catch_unwind(|| panics(round)).unwrap_or_else(|value| *value.downcast::<u32>().unwrap_or_default());
    }
    println!("{sum}");
}
