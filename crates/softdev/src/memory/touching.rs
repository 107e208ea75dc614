//! Access without a lock, and waiting for its end. A requester says by two plain stores whose
//! memory or connection it uses. The process that takes the memory or the connection away pays for
//! the order of the two (`membarrier(2)`) and waits.
//!
//! Either the requester finds that its target is gone, or the process that takes the target away
//! finds the requester at work.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sys::sync::{Atomic, Machine};

/// Runs `work` while `touching` names the queue pair `whom`. `work` must first check whether the
/// access is still allowed.
#[inline]
pub(crate) fn touch<Word: Atomic<Value = u32>, T>(touching: &Word, whom: u32, work: impl FnOnce() -> T) -> T {
    touching.store(whom, Relaxed);
    Word::On::light();
    let done = work();
    touching.store(0, Release);
    done
}

/// Waits until `touching` does not name `whom`, or `goes_on` returns false. Called after a right
/// was taken away, and after [`agree`](crate::transport::local::host::agree) has made sure that
/// every later access finds that.
pub(crate) fn await_end<Word: Atomic<Value = u32>>(
    touching: &Word,
    whom: u32,
    mut goes_on: impl FnMut() -> bool,
) {
    while touching.load(Acquire) == whom && goes_on() {
        Word::On::yield_cpu();
    }
}

#[cfg(test)]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    use super::*;
    use crate::sys::sync::model::{self, Loom, Moved, NoHeavy, NoLight, Weaker};

    /// The number of the memory's owner.
    const OWNER: u32 = 7;
    const KEY: u32 = 9;

    /// Memory that requesters access until its owner revokes the right, and the words of the
    /// requesters.
    struct Peers<Word> {
        memory: UnsafeCell<u32>,
        /// As in a table of memory regions, but without an order of its own.
        key: AtomicU32,
        touching: [Word; 2],
    }

    impl<Word: Atomic<Value = u32>> Peers<Word> {
        fn reach(&self, requester: usize) {
            touch(&self.touching[requester], OWNER, || {
                if self.key.load(Relaxed) == KEY {
                    // SAFETY: the memory is valid as long as its key is; otherwise loom reports it.
                    self.memory.with(|at| assert_eq!(unsafe { *at }, 1));
                }
            });
        }

        fn take_back(&self, requesters: usize) {
            self.key.store(0, Relaxed);
            Word::On::heavy();
            for touching in &self.touching[..requesters] {
                await_end(touching, OWNER, || true);
            }
            // SAFETY: no requester accesses the memory any more; otherwise loom reports it.
            self.memory.with_mut(|at| unsafe { *at = 2 });
        }
    }

    /// Requesters access memory, each `turns` times, while its owner revokes the right.
    fn taken_back<Word>(
        requesters: usize,
        turns: usize,
        word: impl Fn() -> Word + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static
    where
        Word: Atomic<Value = u32> + Send + Sync + 'static,
    {
        move || {
            let memory = UnsafeCell::new(1);
            let key = AtomicU32::new(KEY);
            let peers = Arc::new(Peers { memory, key, touching: [word(), word()] });
            let others: Vec<_> = (0..requesters)
                .map(|n| (n, Arc::clone(&peers)))
                .map(|(n, peers)| thread::spawn(move || (0..turns).for_each(|_| peers.reach(n))))
                .collect();
            peers.take_back(requesters);
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    }

    fn word() -> AtomicU32 {
        AtomicU32::new(0)
    }

    #[test]
    fn model_of_memory_that_is_taken_back() {
        model::check_within(Some(4), taken_back(1, 2, word));
        model::check_within(Some(3), taken_back(2, 1, word));
    }

    #[test]
    fn the_model_needs_both_fences_and_the_order_of_the_end() {
        let faults = [
            model::must_fail(taken_back(1, 1, || Moved::<_, NoLight<Loom>>::of(word()))),
            model::must_fail(taken_back(1, 1, || Moved::<_, NoHeavy<Loom>>::of(word()))),
            model::must_fail(taken_back(1, 1, || Weaker { word: word(), order: Release })),
            model::must_fail(taken_back(1, 1, || Weaker { word: word(), order: Acquire })),
        ];
        assert!(faults.iter().all(|why| why.contains("access")), "{faults:?}");
    }
}
