//! Queries of a device and its objects.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use verbs::abi::*;

use super::Rig;

impl Rig {
    /// The port's active MTU as a code (`ibv_mtu`), its LID, the subnet manager's LID, the link
    /// layer and the state.
    pub(super) fn port(&self) -> Vec<u64> {
        let mut attr = ibv_port_attr::default();
        // SAFETY: the context is open and the attributes are writable.
        let returned = unsafe { (self.provider.query_port)(self.context, self.port, &raw mut attr) };
        let lids = [attr.lid, attr.sm_lid].map(u64::from);
        let codes = [u64::from(attr.link_layer), u64::from(attr.state)];
        [&[u64::from(returned != 0), u64::from(attr.active_mtu)][..], &lids, &codes].concat()
    }

    /// A queue pair's limits, as a query returns them: sends, receives, inline bytes; then whether
    /// its send queue is draining.
    pub(super) fn depths(&self, w: &[u64]) -> Vec<u64> {
        let mut attr = ibv_qp_attr::default();
        // SAFETY: all-zero bytes are a valid ibv_qp_init_attr: integers and null pointers.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let qp = self.pairs[w[0] as usize];
        // SAFETY: the queue pair is alive and both results are writable.
        let returned =
            unsafe { (self.provider.query_qp)(qp, &raw mut attr, IBV_QP_CAP as i32, &raw mut init) };
        let cap = init.cap;
        let words = [cap.max_send_wr, cap.max_recv_wr, cap.max_inline_data, u32::from(attr.sq_draining)];
        std::iter::once(returned as u64).chain(words.map(u64::from)).collect()
    }

    /// Whether an asynchronous event arrives within a number of milliseconds. The event is not
    /// taken.
    pub(super) fn alarm(&self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let fd = unsafe { (*self.context).async_fd };
        if fd < 0 {
            return vec![0, 0]; // A device without asynchronous events.
        }
        // SAFETY: the descriptor is open as long as the context.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let limit = Timespec { tv_sec: 0, tv_nsec: w[0] as i64 * 1_000_000 };
        let mut polled = [PollFd::new(&fd, PollFlags::IN)];
        vec![0, poll(&mut polled, Some(&limit)).expect("the descriptor can be polled") as u64]
    }
}
