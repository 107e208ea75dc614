//! Contexts, protection domains and address handles.

use std::mem::offset_of;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::event::Events;
use crate::flight::Keeper;
use crate::queue_pair::Qp;
use crate::transport::local::address::Way;
use crate::transport::local::host::agree;
use crate::verbs::parent_domain::Parts;

/// A context with what the device keeps for it.
#[repr(C)]
pub(crate) struct Ctx {
    pub(crate) verbs: verbs_context,
    /// Number of its device.
    pub(crate) device: u8,
    /// Its asynchronous events.
    pub(crate) events: Events,
    /// Queue pairs of this context with sends that wait: all that polling has to look at when nothing waits.
    pub(crate) waiting: AtomicUsize,
    pub(crate) queue_pairs: Mutex<Vec<*const Qp>>,
    /// What imitates a link, if anything does.
    pub(crate) keeper: Mutex<Option<Keeper>>,
}

impl Ctx {
    /// # Safety
    /// `context` is a live context of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(context: *mut ibv_context) -> &'a Self {
        // SAFETY: every ibv_context of this device is the last member of the verbs_context that a Ctx begins with.
        unsafe { &*context.byte_sub(CONTEXT_AT).cast::<Self>() }
    }

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

/// Where the part of a [`Ctx`] that programs know begins.
pub(crate) const CONTEXT_AT: usize = offset_of!(Ctx, verbs.context);

/// A protection domain. Its handle is its number in this process.
#[repr(C)]
pub(crate) struct Pd {
    pub(crate) ibv: ibv_pd,
    /// Regions, queue pairs, address handles and parent domains in it.
    pub(crate) children: AtomicUsize,
    /// What it stands for, if it is a parent domain.
    pub(crate) parts: Option<Parts>,
}

/// An address handle.
#[repr(C)]
pub(crate) struct Ah {
    pub(crate) ibv: ibv_ah,
    pub(crate) attr: ibv_ah_attr,
    pub(crate) destination: Way,
}
