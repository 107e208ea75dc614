//! Time: messages that are sent again, peers that do not answer, connections that wait for the last
//! packets.

use std::time::Duration;

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::Told;
use crate::host::Host;
use crate::identifier::Exchange;
use crate::manager::Manager;

/// A time as messages have it: 4.096 us times two to a power.
const fn time(power: u8) -> Duration {
    Duration::from_nanos(4096 << power)
}

/// How long a message waits for its answer, as messages have it (`CMA_CM_RESPONSE_TIMEOUT`).
pub(super) const RESPONSE_TIMEOUT: u8 = 20;
/// The same: 4.3 s.
pub const RESPONSE_TIME: Duration = time(RESPONSE_TIMEOUT);
/// How often it is sent again (`CMA_MAX_CM_RETRIES`).
pub const TRIES: u8 = 15;
/// How long a connection that has ended waits for packets that are under way: 0.54 s.
pub const TIME_WAIT: Duration = time(crate::identifier::PACKET_LIFETIME + 1);

impl<H: Host> Manager<H> {
    /// Does what is due. Returns when something will be next.
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
        self.identifiers.values().filter_map(|id| id.conversation.deadline).min()
    }

    fn expire(&mut self, id: u32, now: Duration) {
        let Some(found) = self.identifiers.get_mut(&id) else { return };
        let talk = &mut found.conversation;
        talk.deadline = None;
        if let (Some(waiting), Some(link)) = (&talk.waiting, talk.link)
            && talk.tries > 0
        {
            talk.tries -= 1;
            talk.deadline = Some(now + RESPONSE_TIME);
            return self.host.send(link, waiting);
        }
        let timed_out = -Errno::TIMEDOUT.raw_os_error();
        match found.exchange {
            Exchange::ReqSent | Exchange::RepSent | Exchange::SidrReqSent => {
                self.end(id);
                self.raise(id, EventKind::Unreachable, timed_out, Told::default());
            }
            Exchange::DreqSent => {
                self.disconnected(id, timed_out);
                self.wait_out(id);
            }
            Exchange::TimeWait => {
                self.end(id);
                self.raise(id, EventKind::TimeWaitExit, 0, Told::default());
            }
            _ => {}
        }
    }

    /// The connection has ended, and waits.
    pub(super) fn wait_out(&mut self, id: u32) {
        let deadline = self.host.now() + TIME_WAIT;
        let found = self.id(id);
        found.exchange = Exchange::TimeWait;
        found.conversation.waiting = None;
        found.conversation.deadline = Some(deadline);
    }
}
