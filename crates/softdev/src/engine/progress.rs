//! Making progress with waiting sends, and waiting until peers have finished.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use crate::objects::context::Ctx;
use crate::transport::local::host::agree;

impl Ctx {
    /// Tries waiting sends again.
    #[inline]
    pub(crate) fn progress(&self) {
        if self.waiting.load(Relaxed) != 0 {
            self.progress_waiting();
        }
    }

    /// Waits until all messages under way to or from memory of a protection domain have been
    /// placed.
    pub(crate) fn settle(&self, pd: u32) {
        agree();
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair removes itself from the list, under the same lock, before it is
            // destroyed.
            let qp = unsafe { &**qp };
            if qp.pd == pd {
                // This process's own copies take place under these two locks.
                drop(qp.send.lock());
                qp.pause_polling();
                qp.await_messages();
            }
        }
    }

    /// Waits until no peer accesses memory of a protection domain by a right that it had before.
    pub(crate) fn await_access(&self, pd: u32) {
        agree();
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair removes itself from the list, under the same lock, before it is
            // destroyed.
            let qp = unsafe { &**qp };
            if qp.pd == pd {
                qp.await_access();
            }
        }
    }

    #[cold]
    fn progress_waiting(&self) {
        // Another thread that is at work here, or at a queue, does the work of both: neither waits.
        let Ok(queue_pairs) = self.queue_pairs.try_lock() else { return };
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair removes itself from the list, under the same lock, before it is
            // destroyed.
            unsafe { &**qp }.retry();
        }
    }
}
