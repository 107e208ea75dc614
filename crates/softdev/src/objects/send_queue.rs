//! The send queue of a queue pair.

use std::collections::VecDeque;

use crate::objects::flights::Flights;
use crate::objects::waiting::{Stage, Waiting};
use crate::transport::local::link::{Link, Ticks};
use crate::transport::target::Target;

/// What a queue pair's lock protects on the sending side.
#[derive(Default)]
pub(crate) struct SendQueue {
    /// Position of the next work request.
    pub(crate) tail: u32,
    /// Work requests that could not be delivered when they were posted, and those behind them.
    pub(crate) waiting: VecDeque<Waiting>,
    /// What is under way where a link is modelled.
    pub(crate) flights: Flights,
    /// Whether it is counted in [`crate::objects::context::Ctx::waiting`].
    pub(crate) is_counted: bool,
    /// The peer of a connection, once found.
    pub(crate) target: Option<Target>,
    /// The same while the port is down.
    pub(crate) put_away: Option<Target>,
    /// A message has been delivered on this connection: another life of the peer would not know its
    /// packets.
    pub(crate) begun: bool,
    /// Peers that datagrams went to, the latest last.
    pub(crate) datagram_targets: Vec<Target>,
}

impl SendQueue {
    /// A queue without requests, on a link that is like this.
    pub(crate) fn on(link: Option<Link>) -> Self {
        Self { flights: Flights::on(link), ..Self::default() }
    }

    /// Puts the peer of the connection away, or brings it back.
    pub(crate) fn put_away(&mut self, away: bool) {
        let (from, to) = match away {
            true => (&mut self.target, &mut self.put_away),
            false => (&mut self.put_away, &mut self.target),
        };
        if from.is_some() {
            *to = from.take();
        }
    }

    /// Whether nothing has to be looked after.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.flights.is_empty()
    }

    /// Whether requests are carried out as soon as they are posted.
    #[inline]
    pub(crate) fn is_prompt(&self) -> bool {
        self.waiting.is_empty() && self.flights.link.is_none()
    }

    /// Index of the first request that waits in such a stage, if those in others are all before it;
    /// else their number.
    pub(crate) fn next(&self, is_it: impl Fn(Stage) -> bool) -> usize {
        self.waiting.partition_point(|waiting| !is_it(waiting.stage))
    }

    /// When the reads and atomics that are under way will all be over.
    pub(crate) fn answered(&self) -> Ticks {
        let answered = self.waiting.iter().filter(|waiting| waiting.is_answered());
        answered.filter_map(|waiting| waiting.schedule).map(|it| it.is_there).max().unwrap_or_default()
    }

    /// Index of the first of those at the end that have no time on the link yet, as they are behind
    /// as many reads and atomics as may be under way; the number of all where there are none.
    pub(crate) fn stalled(&self) -> usize {
        self.waiting.iter().rposition(|waiting| waiting.schedule.is_some()).map_or(0, |last| last + 1)
    }

    /// Reads and atomics that are under way.
    pub(crate) fn asking(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.is_answered() && waiting.schedule.is_some()).count()
    }

    /// A peer that datagrams went to.
    pub(crate) fn datagram_target(&self, index: usize) -> &Target {
        &self.datagram_targets[index]
    }

    /// Position of the next work request.
    #[inline]
    pub(crate) fn position(&self) -> u32 {
        self.tail
    }

    /// Takes the position of a request that has been carried out on the peer of the connection.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.tail = self.tail.wrapping_add(1);
        self.begun = true;
    }
}
