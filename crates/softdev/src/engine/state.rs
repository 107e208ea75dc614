//! Failure, reset and other changes of a queue pair's state.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use verbs::abi::*;

use crate::objects::completion::Cq;
use crate::objects::queue_pair::Qp;
use crate::sys::sync::Cpu;
use crate::transport::local::arming::shown;
use crate::transport::local::notify::notify;

impl Qp {
    /// Enters ERR and flushes everything that is posted.
    #[cold]
    pub(crate) fn fail(&self) {
        let queue = self.send.lock();
        self.shared().state.store(IBV_QPS_ERR, SeqCst);
        drop(queue);
        self.flush();
    }

    /// Flushes everything that is posted if the queue pair has failed (and has not been reset
    /// since).
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

    /// Tells sleepers that receives were flushed.
    pub(crate) fn announce_flush(&self) {
        shown::<Cpu>();
        notify(self.host, &self.host.arena.view, None, self.shared().recv_cq.load(Relaxed), true);
    }

    pub(crate) fn reset(&self) {
        // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
        let (send_cq, recv_cq) = unsafe { (Cq::from(self.ibv.send_cq), Cq::from(self.ibv.recv_cq)) };
        self.land();
        // Under the lock, so that no failing send overwrites the state. Between the cleaning and
        // the new count of positions, no old completion is polled and no other one is added.
        let mut queue = self.send.lock();
        self.shared().state.store(IBV_QPS_RESET, SeqCst);
        self.shared().generation.fetch_add(1, SeqCst);
        send_cq.clean(self);
        self.clear_sends(&mut queue);
        drop(queue);
        self.settle();
        recv_cq.quiet(|| self.clear_receives());
    }

    /// Waits until a thread that polls for receives has finished.
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
