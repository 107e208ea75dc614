//! Objects of a rig that another thread uses.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

use verbs::Provider;
use verbs::abi::*;

use super::{Rig, errno};

/// An object of a rig that another thread uses while the rig's owner does something else.
pub struct Loan<T> {
    provider: &'static Provider,
    object: *mut T,
}

// SAFETY: verbs are thread-safe; the borrower ends before the object does (scoped threads).
unsafe impl<T> Send for Loan<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Loan<T> {}

impl Rig {
    /// A channel to wait on.
    pub fn waiter(&self, channel: usize) -> Loan<ibv_comp_channel> {
        Loan { provider: self.provider, object: self.channels[channel] }
    }

    /// A queue of which to acknowledge events.
    pub fn acknowledger(&self, cq: usize) -> Loan<ibv_cq> {
        Loan { provider: self.provider, object: self.queues[cq] }
    }

    /// A queue pair to post to.
    pub fn poster(&self, qp: usize) -> Loan<ibv_qp> {
        Loan { provider: self.provider, object: self.pairs[qp] }
    }

    /// An event to acknowledge.
    pub fn async_acknowledger(&mut self, event: usize) -> Loan<ibv_async_event> {
        Loan { provider: self.provider, object: &raw mut self.events[event] }
    }

    /// A context on whose events to wait.
    pub fn async_waiter(&self) -> Loan<ibv_context> {
        Loan { provider: self.provider, object: self.context }
    }

    /// A queue to poll.
    pub fn poller(&self, cq: usize) -> Loan<ibv_cq> {
        self.acknowledger(cq)
    }
}

impl Loan<ibv_comp_channel> {
    /// Waits for an event. Returns the error number.
    pub fn wait(&self) -> i32 {
        let mut cq = null_mut();
        let mut context = null_mut();
        // SAFETY: the channel is alive and both results are writable.
        match unsafe { (self.provider.get_cq_event)(self.object, &raw mut cq, &raw mut context) } {
            0 => 0,
            _ => errno() as i32,
        }
    }
}

impl Loan<ibv_async_event> {
    /// Acknowledges the event.
    pub fn acknowledge(&self) {
        // SAFETY: the event was taken, and its object is alive: its destruction waits for this.
        unsafe { (self.provider.ack_async_event)(self.object) };
    }
}

impl Loan<ibv_context> {
    /// Waits for an event and does not acknowledge it. Returns the error number.
    pub fn wait(&self) -> i32 {
        let mut event = ibv_async_event { element: ibv_async_element { port_num: 0 }, event_type: 0 };
        // SAFETY: the context is open and the event is writable.
        match unsafe { (self.provider.get_async_event)(self.object, &raw mut event) } {
            0 => 0,
            _ => errno() as i32,
        }
    }
}

impl Loan<ibv_cq> {
    /// Acknowledges events.
    pub fn acknowledge(&self, events: u32) {
        // SAFETY: the queue is alive: its destruction waits for this.
        unsafe { (self.provider.ack_cq_events)(self.object, events) };
    }

    /// Polls once for a completion and returns its status.
    pub fn poll(&self) -> Option<ibv_wc_status> {
        // SAFETY: all-zero bytes are a valid ibv_wc: integers.
        let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
        // SAFETY: the queue and so its context is alive.
        let poll = unsafe { (*(*self.object).context).ops.poll_cq }.expect("a provider fills poll_cq");
        // SAFETY: the queue is alive and there is room for one completion.
        (unsafe { poll(self.object, 1, &raw mut wc) } == 1).then_some(wc.status)
    }
}

impl Loan<ibv_qp> {
    /// Posts a signalled Send of these elements. Returns the error number.
    pub fn post(&self, elements: &mut [ibv_sge]) -> i32 {
        // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
        let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
        (wr.opcode, wr.send_flags) = (IBV_WR_SEND, IBV_SEND_SIGNALED);
        (wr.sg_list, wr.num_sge) = (elements.as_mut_ptr(), elements.len() as i32);
        let mut bad = null_mut();
        // SAFETY: the queue pair and so its context is alive.
        let post = unsafe { (*(*self.object).context).ops.post_send }.expect("a provider fills post_send");
        // SAFETY: the queue pair is alive and the request readable.
        unsafe { post(self.object, &raw mut wr, &raw mut bad) }
    }

    /// Builds a signalled Send of an element. Returns the error number.
    pub fn build(&self, sge: ibv_sge) -> i32 {
        let convert = self.provider.qp_to_qp_ex.expect("the provider has builders");
        // SAFETY: the queue pair is alive.
        let qp = unsafe { convert(self.object) };
        // SAFETY: the queue pair is alive and was created with builders, so it has these functions.
        unsafe {
            (*qp).wr_start.expect("wr_start")(qp);
            (*qp).wr_id.store(2, Relaxed);
            (*qp).wr_flags.store(IBV_SEND_SIGNALED, Relaxed);
            (*qp).wr_send.expect("wr_send")(qp);
            (*qp).wr_set_sge.expect("wr_set_sge")(qp, sge.lkey, sge.addr, sge.length);
            (*qp).wr_complete.expect("wr_complete")(qp)
        }
    }
}
