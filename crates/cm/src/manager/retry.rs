//! Timeouts: messages that are sent again, peers that do not answer, connections that wait for the
//! last packets.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::io::Errno;

use crate::abi::answer::Told;
use crate::abi::{EventKind, Space};
use crate::host::{Host, Link};
use crate::identifier::{Exchange, Stage};
use crate::manager::state::Manager;
use crate::times::{BUSY_TIME, CALL_TIME, RESPONSE_TIME, TIME_WAIT, TRIES};
use crate::wire::{Reject, RejectReason};

/// The status in events of a message without an answer.
const TIMED_OUT: i32 = -Errno::TIMEDOUT.raw_os_error();

impl<H: Host> Manager<H> {
    /// Handles what is due. Returns the time of the next timeout.
    pub fn tick(&mut self) -> Option<Duration> {
        let now = self.host.now();
        let is_due = |deadline: Option<Duration>| deadline.is_some_and(|deadline| deadline <= now);
        let due: Vec<u32> = self
            .identifiers
            .iter()
            .filter(|(_, id)| is_due(id.conversation.deadline))
            .map(|(key, _)| *key)
            .collect();
        due.into_iter().for_each(|id| self.expire(id, now));
        self.due = self.identifiers.values().filter_map(|id| id.conversation.deadline).min();
        self.due
    }

    /// Whether a timeout is due before an instant; `None` means never.
    pub fn is_due_before(&self, instant: Option<Duration>) -> bool {
        self.due.is_some_and(|due| instant.is_none_or(|instant| due < instant))
    }

    /// Notes a timeout.
    pub(super) fn plan(&mut self, deadline: Duration) {
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
    }

    fn expire(&mut self, id: u32, now: Duration) {
        let Some(found) = self.identifiers.get_mut(&id) else { return };
        let talk = &mut found.conversation;
        talk.deadline = None;
        if talk.link.is_none() && talk.waiting.is_some() {
            return self.call_again(id, now);
        }
        if let (Some(waiting), Some(link)) = (&talk.waiting, talk.link)
            && talk.tries > 0
        {
            talk.tries -= 1;
            talk.deadline = Some(now + RESPONSE_TIME);
            return self.host.send(link, waiting);
        }
        match found.exchange {
            Exchange::ReqSent | Exchange::RepSent | Exchange::SidrReqSent => self.give_up(id),
            Exchange::DreqSent => {
                self.disconnected(id, TIMED_OUT);
                self.wait_out(id);
            }
            Exchange::TimeWait => {
                self.end(id);
                // Not after a rejection (`cma_ib_handler()` of cma.c).
                if self.id(id).stage == Stage::Disconnect {
                    self.raise(id, EventKind::TimeWaitExit, 0, Told::default());
                }
            }
            _ => {}
        }
    }

    /// Finds the process that listens at an address. If no process listens, or its queue of
    /// connections is full, [`call_again`](Self::call_again) searches again for a waiting message.
    pub(super) fn call(&mut self, space: Space, destination: SocketAddr) -> Result<Option<Link>, Errno> {
        match self.host.reach(space, destination) {
            Err(Errno::AGAIN) => Ok(None),
            reached => reached,
        }
    }

    /// Searches again for a process that listens.
    fn call_again(&mut self, id: u32, now: Duration) {
        let found = self.id(id);
        let Some(destination) = found.destination else { return };
        let space = found.space;
        let reached = self.host.reach(space, destination);
        let is_busy = reached == Err(Errno::AGAIN);
        let link = reached.unwrap_or_default();
        let found = self.id(id);
        let talk = &mut found.conversation;
        if let (Some(link), Some(request)) = (link, talk.waiting.clone()) {
            talk.link = Some(link);
            talk.tries = TRIES;
            talk.deadline = Some(now + RESPONSE_TIME);
            self.host.send(link, &request);
        } else if talk.tries > 0 {
            talk.tries -= 1;
            talk.deadline = Some(now + if is_busy { BUSY_TIME } else { CALL_TIME });
        } else if is_busy {
            self.give_up(id);
        } else if found.exchange == Exchange::ReqSent {
            let reason = RejectReason::INVALID_SERVICE_ID;
            self.rejected(id, &Reject { reason, ..Reject::default() });
        } else {
            self.unsupported(id);
        }
    }

    /// Gives up waiting for an answer.
    fn give_up(&mut self, id: u32) {
        self.end(id);
        self.raise(id, EventKind::Unreachable, TIMED_OUT, Told::default());
    }

    /// Lets a connection that has ended wait for the last packets.
    pub(super) fn wait_out(&mut self, id: u32) {
        let deadline = self.host.now() + TIME_WAIT;
        self.plan(deadline);
        let found = self.id(id);
        found.exchange = Exchange::TimeWait;
        found.conversation.waiting = None;
        found.conversation.deadline = Some(deadline);
    }
}
