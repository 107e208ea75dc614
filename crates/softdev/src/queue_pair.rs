//! Queue pairs: creation, state changes, failure.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32};

use verbs::abi::*;

use crate::completion::Cq;
use crate::context::Ctx;
use crate::memory::layout::SharedQp;
use crate::receive::Receiving;
use crate::send::SendQueue;
use crate::sys::own_lock::OwnLock;
use crate::sys::spin::SpinLock;
use crate::sys::sync::Cpu;
use crate::transport::local::arming::shown;
use crate::transport::local::host::Host;
use crate::transport::local::notify::notify;
use crate::verbs::builder::Builder;

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
    pub(crate) send: OwnLock<SendQueue>,
    /// Position up to which sends have left the queue.
    pub(crate) retired: AtomicU32,
    /// Operations that its service has: a bit for each `IBV_WR_*`.
    pub(crate) operations: u32,
    /// Reads and atomics that it may have under way (`max_rd_atomic`).
    pub(crate) initiator_depth: AtomicU8,
    pub(crate) receiving: Receiving,
    /// Threads that hold the queue pair although no list that they have locked does: destruction waits for them.
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
    pub(crate) fn ctx(&self) -> &Ctx {
        // SAFETY: a queue pair's context lives at least as long as the queue pair.
        unsafe { Ctx::from(self.ibv.context) }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &'static SharedQp {
        self.shared
    }

    #[inline]
    pub(crate) fn state(&self) -> ibv_qp_state {
        self.shared().state.load(Acquire)
    }

    /// Enters ERR: everything that is posted is flushed.
    #[cold]
    pub(crate) fn fail(&self) {
        let queue = self.send.lock();
        self.shared().state.store(IBV_QPS_ERR, SeqCst);
        drop(queue);
        self.flush();
    }

    /// Flushes everything that is posted if the queue pair has failed (and has not been reset since).
    #[cold]
    pub(crate) fn flush(&self) {
        let mut queue = self.send.lock();
        if self.state() != IBV_QPS_ERR {
            return;
        }
        self.flush_sends(&mut queue);
        drop(queue);
        self.flush_receives();
    }

    /// Tells whoever sleeps that receives were flushed.
    pub(crate) fn announce_flush(&self) {
        shown::<Cpu>();
        notify(self.host, &self.host.arena.view, None, self.shared().recv_cq.load(Relaxed), true);
    }

    pub(crate) fn reset(&self) {
        // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
        let (send_cq, recv_cq) = unsafe { (Cq::from(self.ibv.send_cq), Cq::from(self.ibv.recv_cq)) };
        self.land();
        // Under the lock, so that no failing send overwrites the state, and so that neither a completion of before is
        // polled nor another one added between the cleaning and the new count of positions.
        let mut queue = self.send.lock();
        self.shared().state.store(IBV_QPS_RESET, SeqCst);
        self.shared().generation.fetch_add(1, SeqCst);
        send_cq.clean(self);
        self.clear_sends(&mut queue);
        drop(queue);
        self.settle();
        recv_cq.quiet(|| self.clear_receives());
    }

    /// Lets whoever polls for receives finish.
    pub(crate) fn pause_polling(&self) {
        // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
        unsafe { Cq::from(self.ibv.recv_cq) }.quiet(|| ());
    }

    /// Changes the state unless an error has changed it meanwhile.
    pub(crate) fn advance(&self, from: ibv_qp_state, to: ibv_qp_state) -> bool {
        let _no_send_fails_meanwhile = self.send.lock();
        self.shared().state.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }
}
