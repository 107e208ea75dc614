//! Stream (G17): one end floods, or both, with a bounded outstanding window; both ends compute
//! throughput.

use std::time::Duration;

use measure::clock::Ticks;

use crate::Error;
use crate::endpoint::{Arrival, Endpoint, Mark, Posted};
use crate::pattern::flood::{AT_ONCE, Flood};
use crate::point::Length;

/// Which way this end's messages flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    /// Both ways.
    Both,
    /// It only receives.
    In,
    /// It only sends.
    Out,
}

/// An unreliable stream has ended when nothing came for so long and its last message must have been
/// lost. Far above any pause of a healthy sender, far below a point's time limit.
const QUIET: Duration = Duration::from_millis(300);

/// How long it may take until that is first looked for.
const GLANCE: Duration = Duration::from_millis(1);

/// What comes so long after the last message, and was sent before it, counts as lost.
const LATE: Duration = Duration::from_millis(100);

/// Floods the peer, takes its flood, or both: once to warm up, once to measure. Gives what was
/// sent, until the last message is known to be (on a reliable queue pair, acknowledged; of sockets,
/// in the kernel's hands), and what was received, from the first message to the last.
///
/// # Errors
/// What the endpoint says.
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

/// Lets whoever floods wait until the other end is there to receive: what has piled up before it
/// looks would seem to have arrived at once.
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
    // Posted messages that are not known to be sent, once all are posted: what still comes does not
    // count for what went.
    let mut unsent = u32::MAX;
    while out.open || into.open {
        let mut moved = false;
        if out.open {
            let is_over = end != u64::MAX && clock.now().0 >= end;
            moved = out.send(endpoint, target, is_over, flow == Flow::Out)?;
        } else if out.used && unsent > 0 {
            let left = endpoint.outstanding()?;
            // Completions are taken some at a time: there may be more.
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
            // The latest message may turn out to have been the last: this is the end unless another
            // comes.
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
    // The first message that is received starts the clock and is not counted.
    Ok((out.flood(0), into.flood(1)))
}

/// One direction, at this end.
struct Side {
    used: bool,
    open: bool,
    /// Lanes whose last message has not come.
    lanes: u64,
    total: u64,
    /// Messages that there are, as the last of each lane says by its number.
    announced: u64,
    begin: u64,
    end: u64,
    /// Whether a message came since `end` was taken.
    fresh: bool,
}

impl Side {
    fn new(used: bool, lanes: u64) -> Self {
        Self { used, open: used, lanes, total: 0, announced: 0, begin: 0, end: 0, fresh: false }
    }

    /// Takes note of a message: the direction is closed with the last one of every lane.
    #[inline]
    fn see(&mut self, mark: Mark) {
        if mark == Mark::Last {
            self.lanes -= 1;
            self.open = self.lanes > 0;
        }
    }

    /// Takes note of a message that has come. Where messages can be lost, the last may have
    /// overtaken some that still come.
    #[inline]
    fn hear(&mut self, arrival: &Arrival, reliable: bool) {
        self.total += 1;
        if self.lanes > 0 {
            self.see(arrival.mark);
            self.announced += if arrival.mark == Mark::Last { arrival.number + 1 } else { 0 };
        }
        self.open = self.lanes > 0 || (!reliable && self.total < self.announced);
    }

    /// Posts the next message, or where nothing else is to be done, some; the last one when the
    /// time is over or so many have been posted. Returns whether there was room.
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

    /// Takes the flood of this direction, where messages are not lost and there is nothing else to
    /// do.
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

    /// Takes the time of the first message that came, and of the last.
    #[inline]
    fn begin_or_end<E: Endpoint>(&mut self, endpoint: &mut E, target: u64, end: u64) -> Result<(), Error> {
        if self.begin == 0 {
            self.begin = endpoint.clock().now().0;
            // From now on: a receiver that sleeps until much has come would begin late.
            endpoint.expect(target, end)?;
        }
        if !self.open {
            self.end = endpoint.clock().now().0;
        }
        Ok(())
    }

    /// Waits for something to do, and where messages can be lost, no longer than until the
    /// direction must be closed.
    fn rest<E: Endpoint>(&mut self, endpoint: &mut E, reliable: bool) -> Result<(), Error> {
        if reliable || !self.open || self.total == 0 {
            return endpoint.idle();
        }
        let patience = if self.lanes > 0 { QUIET } else { LATE };
        let clock = endpoint.clock();
        // Silence is counted from when it is first looked for.
        endpoint.idle_until(Ticks(clock.now().0 + clock.ticks(patience + GLANCE)))?;
        self.open = endpoint.quiet() < patience;
        Ok(())
    }

    /// What it came to, without the first `uncounted` messages.
    fn flood(&self, uncounted: u64) -> Option<Flood> {
        let messages = self.total.saturating_sub(uncounted);
        let ticks = self.end.saturating_sub(self.begin);
        self.used.then_some(Flood { messages, ticks, total: self.total })
    }
}
