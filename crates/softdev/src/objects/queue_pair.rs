//! Queue pairs: creation, state changes, failure.

use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicU8, AtomicU32};

use verbs::abi::*;

use crate::memory::layout::SharedQp;
use crate::objects::builder::Builder;
use crate::objects::receiving::Receiving;
use crate::objects::send_queue::SendQueue;
use crate::objects::srq::Srq;
use crate::sys::own_lock::OwnLock;
use crate::sys::spin::SpinLock;
use crate::transport::local::address::Way;
use crate::transport::local::host::Host;

/// A queue pair. What its peers see of it stands in this process's arena.
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) ibv: ibv_qp_ex,
    pub(crate) host: &'static Host,
    /// What its peers see of it.
    pub(crate) shared: &'static SharedQp,
    /// Number of its protection domain.
    pub(crate) pd: u32,
    /// Number of its device.
    pub(crate) device: u8,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) sq_sig_all: bool,
    /// What modify_qp has set.
    pub(crate) attr: SpinLock<ibv_qp_attr>,
    /// Where the route of its connection led when it was set.
    pub(crate) way: SpinLock<Way>,
    pub(crate) send: OwnLock<SendQueue>,
    /// Position up to which sends have left the queue.
    pub(crate) retired: AtomicU32,
    /// Operations that its service has: a bit for each `IBV_WR_*`.
    pub(crate) operations: u32,
    /// Reads and atomics that it may have under way (`max_rd_atomic`).
    pub(crate) initiator_depth: AtomicU8,
    pub(crate) receiving: Receiving,
    /// The shared queue that it takes receives from, which lives at least as long.
    pub(crate) srq: Option<&'static Srq>,
    /// Threads that hold the queue pair although no list that they have locked does: destruction
    /// waits for them.
    pub(crate) holders: AtomicU32,
    /// For who builds work requests by calls.
    pub(crate) builder: Option<Builder>,
}

impl Qp {
    /// # Safety
    /// `qp` is a live queue pair of this device.
    #[inline]
    pub(crate) unsafe fn from<'a>(qp: *mut ibv_qp) -> &'a Self {
        // SAFETY: every ibv_qp of this device is the first member of a Qp.
        unsafe { &*qp.cast::<Self>() }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &'static SharedQp {
        self.shared
    }

    #[inline]
    pub(crate) fn state(&self) -> ibv_qp_state {
        self.shared().state.load(Acquire)
    }
}
