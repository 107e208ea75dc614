//! Multicast: a datagram to a group reaches every queue pair that has joined it, in every process
//! of this user.
//!
//! The members of groups are listed in each process's arena. The requester delivers a copy to each
//! member as it delivers any datagram. That includes members of its own process, and itself if it
//! has joined, as on adapters by default (`IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`).
//!
//! How a process finds the members is described in [`crate::transport::local::group`].

use verbs::abi::*;

use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::sys::limits::QP_INDEX_BITS;
use crate::transport::delivery::Delivery;
use crate::transport::local::address::is_same_network;
use crate::transport::local::group::{Entry, directory, halves};
use crate::transport::message::Message;

impl Qp {
    /// Delivers a datagram to all members of a group. The sender does not learn whether any of them
    /// gets it.
    pub(crate) fn deliver_to_group(
        &self,
        queue: &mut SendQueue,
        group: &ibv_gid,
        message: &Message<'_>,
    ) -> Delivery {
        let group = halves(group);
        let mut directory = directory();
        directory.refresh(self.host);
        for Entry { peer, block, index } in &directory.entries {
            let found = peer.view(&self.host.arena.view).member(*index).of(group);
            // A process may list its own queue pairs only.
            if let Some(qp_num) = found.filter(|qp_num| qp_num >> QP_INDEX_BITS == *block) {
                self.deliver_datagram(queue, qp_num, is_same_network, message);
            }
        }
        Delivery::Done
    }
}
