//! Contexts, protection domains and address handles.

use std::mem::offset_of;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::objects::event::Events;
use crate::objects::keeper::Keeper;
use crate::objects::queue_pair::Qp;
use crate::transport::local::address::Way;
use crate::transport::message::Ends;

/// The domains that a parent domain stands for.
pub(crate) struct Parts {
    pub(crate) pd: *mut ibv_pd,
    pub(crate) td: *mut Td,
}

/// A context, with the device's data.
#[repr(C)]
pub(crate) struct Ctx {
    pub(crate) verbs: verbs_context,
    /// The number of its device.
    pub(crate) device: u8,
    /// Its asynchronous events.
    pub(crate) events: Events,
    /// The number of this context's queue pairs with waiting sends: polling looks only at this if
    /// nothing waits.
    pub(crate) waiting: AtomicUsize,
    pub(crate) queue_pairs: Mutex<Vec<*const Qp>>,
    /// The thread of a link model, if there is one.
    pub(crate) keeper: Mutex<Option<Keeper>>,
}

/// The offset of the part of a [`Ctx`] that programs know.
pub(crate) const CONTEXT_AT: usize = offset_of!(Ctx, verbs.context);

/// A protection domain. Its handle is its number in this process.
#[repr(C)]
pub(crate) struct Pd {
    pub(crate) ibv: ibv_pd,
    /// Regions, queue pairs, address handles and parent domains in it.
    pub(crate) children: AtomicUsize,
    /// The domains that it stands for, if it is a parent domain.
    pub(crate) parts: Option<Parts>,
}

/// An address handle.
#[repr(C)]
pub(crate) struct Ah {
    pub(crate) ibv: ibv_ah,
    pub(crate) attr: ibv_ah_attr,
    pub(crate) destination: Way,
    /// For a global route, the GIDs of the sender and the receiver when the handle was made.
    pub(crate) ends: Option<&'static Ends>,
}

impl Qp {
    #[inline]
    pub(crate) fn ctx(&self) -> &Ctx {
        // SAFETY: a queue pair's context lives at least as long as the queue pair.
        unsafe { Ctx::from(self.ibv.context) }
    }
}

impl Qp {
    /// Raises an event of this queue pair.
    #[cold]
    pub(crate) fn raise(&self, event: ibv_event_type) {
        let serial = self.shared().generation.load(Relaxed);
        self.ctx().events.raise(event, self.ibv.qp_num, serial);
    }
}

impl Ctx {
    /// # Safety
    /// `context` is a live context of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(context: *mut ibv_context) -> &'a Self {
        // SAFETY: every ibv_context of this device is the last member of the verbs_context that a
        // Ctx begins with.
        unsafe { &*context.byte_sub(CONTEXT_AT).cast::<Self>() }
    }
}

/// `struct ibv_td`.
#[repr(C)]
pub(crate) struct Td {
    pub(crate) context: *mut ibv_context,
    /// The number of parent domains that contain it.
    pub(crate) users: AtomicUsize,
}
