//! Contexts, protection domains and address handles.

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

    /// Waits until every message to or from memory of a domain that is under way has been placed.
    pub(crate) fn settle(&self, pd: u32) {
        agree();
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
            let qp = unsafe { &**qp };
            if qp.pd == pd {
                // Copying of this process's own takes place under these two locks.
                drop(qp.send.lock());
                qp.pause_polling();
                qp.await_messages();
            }
        }
    }

    /// Waits until no peer is at work in the memory of a domain that had a right to it before.
    pub(crate) fn await_access(&self, pd: u32) {
        agree();
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
            let qp = unsafe { &**qp };
            if qp.pd == pd {
                qp.await_access();
            }
        }
    }

    #[cold]
    fn progress_waiting(&self) {
        // Another thread at work here, or at a queue, does for both: nobody waits.
        let Ok(queue_pairs) = self.queue_pairs.try_lock() else { return };
        for qp in queue_pairs.iter() {
            // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
            unsafe { &**qp }.retry();
        }
    }
}
