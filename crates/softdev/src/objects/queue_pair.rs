//! The state of queue pairs.

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

/// A queue pair. The part that its peers see is in this process's arena.
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) ibv: ibv_qp_ex,
    pub(crate) host: &'static Host,
    /// The part that its peers see.
    pub(crate) shared: &'static SharedQp,
    /// The number of its protection domain.
    pub(crate) pd: u32,
    /// The number of its device.
    pub(crate) device: u8,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) sq_sig_all: bool,
    /// The attributes that `modify_qp` has set.
    pub(crate) attr: SpinLock<ibv_qp_attr>,
    /// Where the route of its connection led when it was set.
    pub(crate) way: SpinLock<Way>,
    pub(crate) send: OwnLock<SendQueue>,
    /// The position up to which sends have left the queue.
    pub(crate) retired: AtomicU32,
    /// The operations of its service, a bit for each `IBV_WR_*`.
    pub(crate) operations: u32,
    /// The number of Reads and atomics that it may have under way (`max_rd_atomic`).
    pub(crate) initiator_depth: AtomicU8,
    pub(crate) receiving: Receiving,
    /// The shared queue that it takes receives from, which lives at least as long.
    pub(crate) srq: Option<&'static Srq>,
    /// The number of threads that hold the queue pair although it is on no list that they have
    /// locked: destruction waits for them.
    pub(crate) holders: AtomicU32,
    /// For programs that build work requests by calls.
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
