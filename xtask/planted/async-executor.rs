//! Tasks that wait for each other.
mod harness;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use async_executor::{Executor, LocalExecutor};

/// Polls to the end; tasks wake nobody outside of the executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

async fn yield_now() {
    let mut is_second = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut is_second, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn work() -> usize {
    let executor = Executor::new();
    let sum = block_on(executor.run(async {
        let mut tasks = Vec::new();
        executor.spawn_many((0..5_usize).map(|at| async move { at }), &mut tasks);
        for at in 0..20_usize {
            tasks.push(executor.spawn(async move {
                yield_now().await;
                at * 2
            }));
        }
        let mut sum = 0;
        for task in tasks {
            sum += task.await;
        }
        sum
    }));
    let local = LocalExecutor::new();
    let count = Rc::new(Cell::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|at| {
            let count = count.clone();
            local.spawn(async move {
                yield_now().await;
                count.set(count.get() + at);
            })
        })
        .collect();
    while local.try_tick() {}
    block_on(local.run(async {
        for task in tasks {
            task.await;
        }
        local.tick().await;
    }).or_ready());
    let text = format!("{executor:?}{local:?}").len().min(1);
    sum + count.get() + usize::from(local.is_empty()) + text
}

/// Once is enough: what has no more to do waits for ever.
trait OrReady: Future<Output = ()> + Sized {
    async fn or_ready(self) {
        let mut this = pin!(self);
        poll_fn(|context| {
            let _ = this.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
    }
}

impl<F: Future<Output = ()>> OrReady for F {}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
