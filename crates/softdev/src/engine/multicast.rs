//! Multicast: a datagram to a group reaches every queue pair that has joined it, in every process
//! of this user.
//!
//! Who has joined stands in each process's arena. The requester delivers a copy to each, as it
//! delivers any datagram: to those of its own process too, and to itself where it has joined, as on
//! adapters unless they are told otherwise (`IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`).
//!
//! Which processes there are, the kernel's list of sockets says. Reading it takes long, so a
//! process remembers what it has found until a word in its arena has changed, which whoever joins
//! counts up in all arenas that there are. A process that is not on the list yet has not looked for
//! members either. Who leaves takes the entry back, which is looked at again with every datagram.

use verbs::abi::*;

use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::sys::limits::QP_INDEX_BITS;
use crate::transport::delivery::Delivery;
use crate::transport::local::address::is_same_network;
use crate::transport::local::group::{Entry, directory, halves};
use crate::transport::message::Message;

impl Qp {
    /// Delivers a datagram to all members of a group. Whether any of them gets it, nobody learns.
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
            // A process speaks for its own queue pairs only.
            if let Some(qp_num) = found.filter(|qp_num| qp_num >> QP_INDEX_BITS == *block) {
                self.deliver_datagram(queue, qp_num, is_same_network, message);
            }
        }
        Delivery::Done
    }
}
