//! The send queue of a queue pair.

use std::collections::VecDeque;

use crate::objects::flights::Flights;
use crate::objects::waiting::{Stage, Waiting};
use crate::transport::local::link::{Link, Ticks};
use crate::transport::target::Target;

/// What a queue pair's lock protects on the sending side.
#[derive(Default)]
pub(crate) struct SendQueue {
    /// The position of the next work request.
    pub(crate) tail: u32,
    /// Work requests that could not be delivered when they were posted, and those behind them.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Messages under way on a modelled link.
    pub(crate) flights: Flights,
    /// Whether it is counted in [`crate::objects::context::Ctx::waiting`].
    pub(crate) is_counted: bool,
    /// The connected peer, once it is found.
    pub(crate) target: Option<Target>,
    /// The connected peer while the port is down.
    pub(crate) put_away: Option<Target>,
    /// Whether a message has been delivered on this connection: a later life of the peer would not
    /// know its packets.
    pub(crate) begun: bool,
    /// Peers of datagrams, the latest last.
    pub(crate) datagram_targets: Vec<Target>,
}

impl SendQueue {
    /// Makes a queue without requests, on this link.
    pub(crate) fn on(link: Option<Link>) -> Self {
        Self { flights: Flights::on(link), ..Self::default() }
    }

    /// Puts the connected peer aside, or brings it back.
    pub(crate) fn put_away(&mut self, away: bool) {
        let (from, to) = match away {
            true => (&mut self.target, &mut self.put_away),
            false => (&mut self.put_away, &mut self.target),
        };
        if from.is_some() {
            *to = from.take();
        }
    }

    /// Whether nothing needs attention.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.flights.is_empty()
    }

    /// Whether requests are carried out as soon as they are posted.
    #[inline]
    pub(crate) fn is_prompt(&self) -> bool {
        self.waiting.is_empty() && self.flights.link.is_none()
    }

    /// Returns the index of the first waiting request whose stage `is_it` accepts, if all requests
    /// before it are in other stages; otherwise their number.
    pub(crate) fn next(&self, is_it: impl Fn(Stage) -> bool) -> usize {
        self.waiting.partition_point(|waiting| !is_it(waiting.stage))
    }

    /// Returns when the Reads and atomics that are under way will all be over.
    pub(crate) fn answered(&self) -> Ticks {
        let answered = self.waiting.iter().filter(|waiting| waiting.is_answered());
        answered.filter_map(|waiting| waiting.schedule).map(|it| it.is_there).max().unwrap_or_default()
    }

    /// Returns the index of the first request that has no time on the link yet. Such requests are
    /// at the end, behind as many Reads and atomics as may be under way; without one, it is the
    /// number of all.
    pub(crate) fn stalled(&self) -> usize {
        self.waiting.iter().rposition(|waiting| waiting.schedule.is_some()).map_or(0, |last| last + 1)
    }

    /// Returns the number of Reads and atomics that are under way.
    pub(crate) fn asking(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.is_answered() && waiting.schedule.is_some()).count()
    }

    /// Returns a peer of datagrams.
    pub(crate) fn datagram_target(&self, index: usize) -> &Target {
        &self.datagram_targets[index]
    }

    /// Returns the position of the next work request.
    #[inline]
    pub(crate) fn position(&self) -> u32 {
        self.tail
    }

    /// Takes the position of a request that was carried out on the connected peer.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.tail = self.tail.wrapping_add(1);
        self.begun = true;
    }
}
