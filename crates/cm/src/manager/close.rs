//! The end of an identifier (`cm_destroy_id()` of cm.c), and of its conversation.

use crate::host::Host;
use crate::identifier::{Exchange, Stage};
use crate::manager::state::{Manager, Queued};
use crate::wire::{Bytes, RejectReason};

impl<H: Host> Manager<H> {
    /// Destroys an identifier: tells its peer, and drops its events and the requests that it has
    /// not given to the program. Returns how many of its events were reported.
    pub(super) fn destroy(&mut self, id: u32) -> u32 {
        let Some(found) = self.identifiers.get(&id) else { return 0 };
        let channel = found.channel;
        let reported = found.reported;
        match found.exchange {
            Exchange::ReqSent => self.reject_silently(id, RejectReason::TIMEOUT),
            Exchange::ReqReceived | Exchange::RepSent | Exchange::RepReceived => {
                self.reject_silently(id, RejectReason::CONSUMER_REJECT);
            }
            Exchange::Established => self.request_end(id),
            Exchange::DreqReceived => self.reply_end(id),
            Exchange::SidrReqReceived => drop(self.reject_datagrams(id, &[])),
            Exchange::Idle | Exchange::DreqSent | Exchange::TimeWait | Exchange::SidrReqSent => {}
        }
        self.end(id);
        let of_it: Vec<u32> =
            self.groups.iter().filter(|(_, group)| group.id == id).map(|(key, _)| *key).collect();
        of_it.into_iter().for_each(|group| self.forget_group(group));
        let mut requests = Vec::new();
        if let Some(channel) = self.channels.get_mut(&channel) {
            let is_other = |queued: &Queued| queued.id != id;
            requests.extend(channel.events.iter().filter(|q| !is_other(q)).filter_map(|q| q.request));
            channel.events.retain(is_other);
        }
        self.identifiers.remove(&id);
        for request in requests {
            self.destroy(request);
        }
        self.show(channel);
        reported
    }

    fn reject_silently(&mut self, id: u32, reason: RejectReason) {
        // In the states that call this, there is a peer to reject.
        let _ = self.refuse(id, reason, Bytes::default());
    }

    /// Ends a conversation: later messages of it belong to no identifier.
    pub(super) fn end(&mut self, id: u32) {
        let found = self.id(id);
        found.exchange = Exchange::Idle;
        found.conversation.waiting = None;
        found.conversation.deadline = None;
        found.conversation.link = None;
        let local = found.conversation.local;
        // If the conversation has ended before, another one may have its number.
        if self.conversations.get(&local) == Some(&id) {
            self.conversations.remove(&local);
        }
    }

    /// Sets the stage of a connection that has ended. Returns whether it had been established.
    pub(super) fn leave_connection(&mut self, id: u32) -> bool {
        let found = self.id(id);
        let was_connected = found.stage == Stage::Connect;
        if was_connected {
            found.stage = Stage::Disconnect;
        }
        was_connected
    }
}
