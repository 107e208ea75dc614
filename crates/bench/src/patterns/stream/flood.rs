//! A stream (Gamess and Ortiz-Zuazaga 2016, section V): one rank sends, or both do, within a window
//! of outstanding messages, and both ranks compute throughput.

use std::time::Duration;

use measure::clock::Ticks;

use crate::Error;
use crate::cut;
use crate::endpoint::{Arrival, Endpoint, Mark, Posted};
use crate::pattern::flood::{AT_ONCE, Flood};
use crate::point::Length;

/// The direction of the messages at this rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    /// The rank sends and receives.
    Both,
    /// The rank only receives.
    In,
    /// The rank only sends.
    Out,
}

/// After this time without a message, an unreliable stream has ended and its last message is lost.
/// Far above any pause of a healthy sender, far below a point's time limit.
const QUIET: Duration = Duration::from_millis(300);

/// How long it may take until the silence is first noticed.
const GLANCE: Duration = Duration::from_millis(1);

/// A message that arrives later than this after the last message, but was sent before it, is lost.
const LATE: Duration = Duration::from_millis(100);

/// Streams to the peer, receives its stream, or both: once to warm up, once to measure. Returns
/// what was sent, until the last message is known to be sent (over a reliable queue pair,
/// acknowledged; over sockets, given to the kernel), and what was received, from the first message
/// to the last.
///
/// # Errors
/// The errors of the endpoint.
pub(crate) fn stream<E: Endpoint>(
    endpoint: &mut E,
    flow: Flow,
    warmup: u64,
    length: Length,
    reliable: bool,
) -> Result<(Option<Flood>, Option<Flood>), Error> {
    if warmup > 0 {
        greet(endpoint, flow)?;
        flood(endpoint, flow, Length::Iterations(warmup), reliable)?;
    }
    greet(endpoint, flow)?;
    flood(endpoint, flow, length, reliable)
}

/// Makes the sender wait until the receiver is ready: messages that arrive before the receiver
/// polls would seem to have arrived at once.
fn greet<E: Endpoint>(endpoint: &mut E, flow: Flow) -> Result<(), Error> {
    if flow != Flow::Out {
        endpoint.send_sync()?;
    }
    if flow != Flow::In {
        endpoint.await_sync()?;
    }
    Ok(())
}

fn flood<E: Endpoint>(
    endpoint: &mut E,
    flow: Flow,
    length: Length,
    reliable: bool,
) -> Result<(Option<Flood>, Option<Flood>), Error> {
    let clock = endpoint.clock();
    let lanes = endpoint.lanes();
    let mut out = Side::new(flow != Flow::In, lanes);
    let mut into = Side::new(flow != Flow::Out, lanes);
    let begin = clock.now();
    out.begin = begin.0;
    let (target, end) = length.end(clock, begin);
    if out.used {
        endpoint.announce(target);
    }
    if flow == Flow::In && reliable {
        into.take_all(endpoint, target, end)?;
    }
    // Posted messages that are not known to be sent, once all are posted: time that only received
    // messages take does not count for the sent ones.
    let mut unsent = u32::MAX;
    while out.open || into.open {
        let mut moved = false;
        if out.open {
            let is_over = cut::is_over_at(clock, end);
            moved = out.send(endpoint, target, is_over, flow == Flow::Out)?;
        } else if out.used && unsent > 0 {
            let left = endpoint.outstanding()?;
            // One call takes several completions: there may be more.
            moved = left != unsent;
            unsent = left;
            out.end = clock.now().0;
        }
        let arrival = if into.open { endpoint.try_receive()? } else { None };
        if let Some(arrival) = arrival {
            moved = true;
            into.hear(&arrival, reliable);
            into.fresh = into.open;
            into.begin_or_end(endpoint, target, end)?;
            endpoint.replenish()?;
        } else if into.fresh && !reliable {
            // Any message may turn out to have been the last: the stream ends here unless another
            // arrives.
            (into.end, into.fresh) = (clock.now().0, false);
        }
        if !moved {
            into.rest(endpoint, reliable)?;
        }
    }
    if into.used {
        endpoint.expect(0, 0)?;
    }
    if out.used {
        endpoint.flush()?;
        if unsent > 0 {
            out.end = clock.now().0;
        }
    }
    // The first message that is received starts the clock and does not count.
    Ok((out.flood(0), into.flood(1)))
}

/// One direction of a stream, at this rank.
struct Side {
    used: bool,
    open: bool,
    /// Lanes whose last message has not arrived.
    lanes: u64,
    total: u64,
    /// The number of all messages, as far as the last messages of the lanes have announced it.
    announced: u64,
    begin: u64,
    end: u64,
    /// Whether a message has arrived since `end` was stamped.
    fresh: bool,
}

impl Side {
    fn new(used: bool, lanes: u64) -> Self {
        Self { used, open: used, lanes, total: 0, announced: 0, begin: 0, end: 0, fresh: false }
    }

    /// Records the mark of a message: the last message of every lane closes the direction.
    #[inline]
    fn see(&mut self, mark: Mark) {
        if mark == Mark::Last {
            self.lanes -= 1;
            self.open = self.lanes > 0;
        }
    }

    /// Records a message that has arrived. Where messages can be lost, the last may have overtaken
    /// others that still arrive.
    #[inline]
    fn hear(&mut self, arrival: &Arrival, reliable: bool) {
        self.total += 1;
        if self.lanes > 0 {
            self.see(arrival.mark);
            self.announced += if arrival.mark == Mark::Last { arrival.number + 1 } else { 0 };
        }
        self.open = self.lanes > 0 || (!reliable && self.total < self.announced);
    }

    /// Posts the next message, or several where the rank does nothing else; the last one when the
    /// time is over or `target` messages are posted. Returns whether there was room.
    #[inline]
    fn send<E: Endpoint>(
        &mut self,
        endpoint: &mut E,
        target: u64,
        is_over: bool,
        is_alone: bool,
    ) -> Result<bool, Error> {
        let left = target.saturating_sub(self.total + self.lanes);
        if is_alone && left > 0 && !is_over {
            let posted = endpoint.try_send_some(left.min(AT_ONCE))?;
            self.total += posted;
            return Ok(posted > 0);
        }
        let mark = if left == 0 || is_over { Mark::Last } else { Mark::More };
        if endpoint.try_send(mark)? == Posted::Busy {
            return Ok(false);
        }
        self.total += 1;
        self.see(mark);
        Ok(true)
    }

    /// Receives the whole stream of this direction, where no message is lost and the rank does
    /// nothing else.
    fn take_all<E: Endpoint>(&mut self, endpoint: &mut E, target: u64, end: u64) -> Result<(), Error> {
        while self.open {
            let batch = endpoint.receive_some()?;
            self.total += batch.messages;
            self.see(batch.mark);
            self.begin_or_end(endpoint, target, end)?;
            endpoint.replenish()?;
        }
        Ok(())
    }

    /// Stamps the first message that arrives, and the last.
    #[inline]
    fn begin_or_end<E: Endpoint>(&mut self, endpoint: &mut E, target: u64, end: u64) -> Result<(), Error> {
        if self.begin == 0 {
            self.begin = endpoint.clock().now().0;
            // Only after the first message: a receiver that sleeps until much has arrived would
            // start late.
            endpoint.expect(target, end)?;
        }
        if !self.open {
            self.end = endpoint.clock().now().0;
        }
        Ok(())
    }

    /// Waits for the next event; where messages can be lost, only until the direction must be
    /// closed.
    fn rest<E: Endpoint>(&mut self, endpoint: &mut E, reliable: bool) -> Result<(), Error> {
        if reliable || !self.open || self.total == 0 {
            return endpoint.idle();
        }
        let patience = if self.lanes > 0 { QUIET } else { LATE };
        let clock = endpoint.clock();
        // Silence counts from when it is first noticed.
        endpoint.idle_until(Ticks(clock.now().0 + clock.ticks(patience + GLANCE)))?;
        self.open = endpoint.quiet() < patience;
        Ok(())
    }

    /// The measurement of this direction, without the first `uncounted` messages.
    fn flood(&self, uncounted: u64) -> Option<Flood> {
        let messages = self.total.saturating_sub(uncounted);
        let ticks = self.end.saturating_sub(self.begin);
        self.used.then_some(Flood { messages, ticks, total: self.total })
    }
}
