//! Threads that look at modules: each takes the next one until none is left.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// A thread's stack. Names can be nested deeply; only what is used becomes resident.
const STACK_BYTES: usize = 16 << 20;
/// How often somebody who watches is told at most, but for modules that are done.
const TICK: Duration = Duration::from_millis(50);

/// Does `work` for each of the tasks, the first ones first, and returns the results in the order of the tasks.
///
/// `observe` gets the number of tasks that are done: when this changed, and from time to time. Where no thread can be
/// had, the caller's does the work.
pub(crate) fn for_each<T: Sync, R: Send>(
    tasks: &[T],
    threads: usize,
    work: &(dyn Fn(&T) -> R + Sync),
    observe: &mut dyn FnMut(usize),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(tasks.len(), || None);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        tasks.get(index).map(|task| (index, task))
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let mut is_any_started = false;
        for _ in 0..threads.min(tasks.len()) {
            let sender = sender.clone();
            let started = spawn(scope, move || {
                while let Some((index, task)) = take() {
                    // Who receives stays until all are done.
                    let _ = sender.send((index, work(task)));
                }
            });
            is_any_started |= started.is_some();
        }
        drop(sender);
        let mut done = 0;
        if !is_any_started {
            while let Some((index, task)) = take() {
                results[index] = Some(work(task));
                done += 1;
                observe(done);
            }
        }
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((index, result)) => {
                    results[index] = Some(result);
                    done += 1;
                    for (index, result) in receiver.try_iter() {
                        results[index] = Some(result);
                        done += 1;
                    }
                    observe(done);
                }
                Err(RecvTimeoutError::Timeout) => observe(done),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    results.into_iter().flatten().collect()
}

/// Does `work` for each part, the first on the caller's thread and each other on one of its own if it can be had.
pub(crate) fn in_parts<T: Send, R: Send>(parts: Vec<T>, work: &(dyn Fn(T) -> R + Sync)) -> Vec<R> {
    thread::scope(|scope| {
        let mut parts = parts.into_iter();
        let first = parts.next();
        // A part whose thread cannot be had comes back and is done here.
        let others: Vec<_> = parts
            .map(|part| {
                let slot = Arc::new(Mutex::new(Some(part)));
                let for_thread = Arc::clone(&slot);
                let handle = spawn(scope, move || taken(&for_thread).map(work));
                (slot, handle)
            })
            .collect();
        let mut results: Vec<R> = first.map(work).into_iter().collect();
        for (slot, handle) in others {
            let by_thread = handle.and_then(|handle| match handle.join() {
                Ok(result) => result,
                Err(fault) => panic::resume_unwind(fault),
            });
            results.extend(by_thread.or_else(|| taken(&slot).map(work)));
        }
        results
    })
}

fn taken<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().ok()?.take()
}

fn spawn<'scope, 'env, R: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, R>> {
    thread::Builder::new().name("symbolize".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        let tasks: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 2, 7] {
            let mut told = Vec::new();
            let results = for_each(&tasks, threads, &|task| task * 2, &mut |done| told.push(done));
            assert_eq!(results, (0..100).map(|task| task * 2).collect::<Vec<_>>(), "{threads} threads");
            assert!(told.is_sorted() && told.last() == Some(&100), "{threads} threads: {told:?}");
            assert_eq!(in_parts(tasks.clone(), &|task| task * 2), results);
        }
        assert!(for_each(&[0; 0], 3, &|_| (), &mut |_| ()).is_empty());
        assert!(in_parts(Vec::<u8>::new(), &|_| ()).is_empty());
    }

    #[test]
    fn a_fault_in_a_thread_is_not_lost() {
        let fault = panic::catch_unwind(|| {
            for_each(&[1, 2, 3], 2, &|task| assert_ne!(*task, 2, "wanted by the test"), &mut |_| ())
        });
        assert!(fault.is_err());
    }
}
