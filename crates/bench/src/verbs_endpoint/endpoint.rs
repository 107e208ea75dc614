//! Connected queue pairs (or some that know their peers) as an endpoint.

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use verbs::Completion;
use verbs::abi::IBV_WC_WR_FLUSH_ERR;
use verbs::manager::Link;

use super::LAST;
use super::alarm::Alarm;
use super::buffers::{Buffers, receive_fill};
use super::failure::Path;
use super::lane::Lane;
use super::numbering::{Numbering, greeting};
use super::setup::Queues;
use super::waiting::{RECEIVES, SENDS, Waiting};
use crate::Error;
use crate::endpoint::{Arrival, Endpoint, Mark, Posted};
use crate::point::{Pattern, PointSpec};

/// Completions taken at once.
const BATCH: usize = 16;
/// Fruitless looks between glances at the clock, the deadline and the scheduler.
pub(super) const SPINS: u32 = 1024;
/// Last byte of the last message where memory is polled; other messages end with a byte that counts from 1 to below it.
const LAST_BYTE: u8 = u8::MAX;

/// How it is learnt that a message has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Notification {
    /// By the completion of a receive.
    Completion,
    /// By a change of the last byte of the target, as `ib_write_lat` does.
    Memory,
}

/// What an endpoint is made of.
pub(super) struct Parts {
    pub(super) lanes: Vec<Lane>,
    pub(super) queues: Queues,
    pub(super) buffers: Buffers,
    /// Connections that RDMA CM keeps up, where it made them.
    pub(super) links: Vec<Link>,
    /// Where messages are timed one way.
    pub(super) numbering: Option<Numbering>,
    /// [`verbs::Provider::pauses`].
    pub(super) pauses: bool,
}

/// What an endpoint knows of the other end.
pub(super) struct Peer {
    pub(super) notification: Notification,
    /// Whether it runs on the same CPU: then one has to stop for the other to go on.
    pub(super) shares_cpu: bool,
    /// Whether it reads the same clock.
    pub(super) has_one_clock: bool,
    /// The way there.
    pub(super) path: Path,
}

/// Queue pairs as an endpoint. Messages take them in turn.
pub(crate) struct VerbsEndpoint {
    // Dropped first: what follows is used by them.
    lanes: Vec<Lane>,
    queues: Queues,
    buffers: Buffers,
    /// Held as long as the queue pairs are used.
    _links: Vec<Link>,
    peer: Peer,
    clock: Clock,
    began: Ticks,
    deadline: u64,
    tx_depth: u64,
    signal_interval: u64,
    /// The lane that the next message takes.
    next_lane: usize,
    /// Of all lanes.
    outstanding: u64,
    /// Last byte of the message that was sent last, and of the one that arrived last.
    stamped: u8,
    seen: u8,
    /// Where in the target a message ends.
    end: usize,
    /// Completions of receives that are asked for at once.
    batch: usize,
    sent: [Completion; BATCH],
    arrived: [Completion; BATCH],
    arrived_next: usize,
    arrived_len: usize,
    /// Lanes of which a receive was taken and not posted again.
    owed: Vec<u16>,
    rx_fill: usize,
    next_receive: usize,
    spins: u32,
    /// [`verbs::Provider::pauses`].
    pauses: bool,
    /// Whether something happened since `quiet_since` was last looked at.
    moved: bool,
    quiet_since: Ticks,
    waiting: Waiting,
    /// Where messages are timed one way.
    numbering: Option<Numbering>,
    /// Whether its sleeps are left alone until there is something else to do: each message is timed.
    is_patient: bool,
}

impl VerbsEndpoint {
    pub(super) fn new(spec: &PointSpec, parts: Parts, clock: Clock, peer: Peer) -> Self {
        let now = clock.now();
        let Parts { lanes, queues, buffers, links, numbering, pauses } = parts;
        let rx_fill = receive_fill(spec) as usize;
        Self {
            owed: Vec::with_capacity(rx_fill * lanes.len()),
            // All are posted already, in turn.
            next_receive: rx_fill % buffers.receives.len(),
            end: buffers.send.len() - 1,
            lanes,
            queues,
            buffers,
            _links: links,
            peer,
            clock,
            began: now,
            deadline: u64::MAX,
            tx_depth: u64::from(spec.tx_depth),
            signal_interval: u64::from(spec.signal_interval),
            next_lane: 0,
            outstanding: 0,
            stamped: 0,
            seen: 0,
            // Of a ping-pong only one message can have arrived: a look for a second would only delay the answer. One way,
            // every completion has a stamp of its own.
            batch: if spec.pattern == Pattern::Stream { BATCH } else { 1 },
            sent: [Completion::default(); BATCH],
            arrived: [Completion::default(); BATCH],
            arrived_next: 0,
            arrived_len: 0,
            rx_fill,
            spins: 0,
            pauses,
            moved: false,
            quiet_since: now,
            waiting: Waiting::new(spec),
            numbering,
            is_patient: spec.pattern != Pattern::Stream,
        }
    }

    /// Whether both ends read the same clock.
    pub(crate) fn has_one_clock(&self) -> bool {
        self.peer.has_one_clock
    }

    /// Starts the point's time limit. Where it sleeps, this thread's sleeps end at the limit, until it is stopped.
    pub(crate) fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        /// Long enough to cost nothing, short enough for the end of a stream to be noticed, and to keep a limit although the
        /// alarm went off right before the sleep that it was to end.
        const PATIENCE: Duration = Duration::from_millis(50);
        self.began = self.clock.now();
        self.quiet_since = self.began;
        let timeout = Duration::from_secs_f64(timeout_s);
        self.deadline = self.began.0.saturating_add(self.clock.ticks(timeout));
        self.waiting.end_with(match (&self.queues.channel, self.is_patient) {
            (None, _) => None,
            (Some(_), true) => Some(Alarm::set(timeout, PATIENCE)?.following(self.deadline)),
            // Who sleeps must notice that the end of a stream was lost.
            (Some(_), false) => Some(Alarm::set(PATIENCE, PATIENCE)?),
        });
        Ok(())
    }

    /// Stops what ends this thread's sleeps.
    pub(crate) fn stop(&mut self) {
        self.waiting.end_with(None);
    }

    /// Takes completions of sends.
    #[inline]
    fn reap(&mut self) -> Result<(), Error> {
        if self.outstanding == 0 {
            return Ok(());
        }
        for completion in self.queues.send.poll(&mut self.sent[..self.batch])? {
            if !completion.status().is_success() {
                let completion = *completion;
                return Err(self.failure(completion, "sent"));
            }
            let (lane, completed) = Lane::of(completion.id());
            self.outstanding -= self.lanes[lane].complete(completed);
            self.moved = true;
        }
        Ok(())
    }

    /// The same, but one way, where completions are taken by who stamps them.
    #[inline]
    fn reap_unstamped(&mut self) -> Result<(), Error> {
        if self.numbering.is_none() { self.reap() } else { Ok(()) }
    }

    /// Whether the next lane has room for a message.
    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        if self.lanes[self.next_lane].outstanding() < self.tx_depth {
            return Ok(true);
        }
        self.reap_unstamped()?;
        let is_full = self.lanes[self.next_lane].outstanding() >= self.tx_depth;
        self.waiting.awaits(SENDS, is_full);
        Ok(!is_full)
    }

    /// Takes note of a message that was posted; the next may be another lane's.
    #[inline]
    fn posted(&mut self, is_next: bool) {
        if is_next {
            self.next_lane += 1;
            if self.next_lane == self.lanes.len() {
                self.next_lane = 0;
            }
        }
        self.outstanding += 1;
        self.moved = true;
    }

    /// The next message by the completion of its receive.
    #[inline]
    fn completed_receive(&mut self) -> Result<Option<Arrival>, Error> {
        if self.arrived_next == self.arrived_len {
            self.arrived_len = self.queues.receive.poll(&mut self.arrived[..self.batch])?.len();
            self.arrived_next = 0;
            if self.arrived_len == 0 {
                return Ok(None);
            }
        }
        let completion = &self.arrived[self.arrived_next];
        self.arrived_next += 1;
        if !completion.status().is_success() {
            let completion = *completion;
            return Err(self.failure(completion, "received"));
        }
        let immediate = completion.immediate();
        let arrival = match &mut self.numbering {
            Some(numbering) => numbering.arrived(immediate),
            None if immediate == Some(LAST) => Arrival { mark: Mark::Last, number: 0, is_greeting: false },
            None => Arrival { mark: Mark::More, number: 0, is_greeting: false },
        };
        self.owed.push(completion.id() as u16);
        if self.owed.len() == self.rx_fill {
            // None may be left: an answer that provokes the next message must not find the queue empty.
            self.replenish()?;
        }
        Ok(Some(arrival))
    }

    /// The failure of a request, or the one that it follows from: a queue pair that fails flushes all its other requests,
    /// and those may be seen first.
    #[cold]
    fn failure(&mut self, seen: Completion, what: &'static str) -> Error {
        /// The device has done both by then: it flushes right after it has failed.
        const PATIENCE: Duration = Duration::from_millis(100);
        let is_flush = |completion: &Completion| completion.status().0 == IBV_WC_WR_FLUSH_ERR;
        let mut failed = (seen, what);
        let until = self.clock.now().0.saturating_add(self.clock.ticks(PATIENCE));
        while is_flush(&failed.0) && self.clock.now().0 < until {
            for (queue, what) in [(&self.queues.send, "sent"), (&self.queues.receive, "received")] {
                let polled = queue.poll(&mut self.sent).unwrap_or_default();
                let cause =
                    |completion: &&Completion| !completion.status().is_success() && !is_flush(completion);
                if let Some(cause) = polled.iter().find(cause) {
                    failed = (*cause, what);
                }
            }
        }
        let (completion, what) = failed;
        // The requests of a lane count from 0; receives have no number of their own.
        let message = (what == "sent").then(|| Lane::of(completion.id()).1 - 1);
        let status = completion.status();
        Error::Completion { message, what, status, advice: self.peer.path.advice(status) }
    }

    /// The next message by the byte that it ends with.
    #[inline]
    fn changed_memory(&mut self) -> Result<Option<Arrival>, Error> {
        let Some(target) = &self.buffers.target else { return Ok(None) };
        let byte = target.peek(self.end)?;
        if byte == self.seen {
            return Ok(None);
        }
        self.seen = byte;
        let mark = if byte == LAST_BYTE { Mark::Last } else { Mark::More };
        Ok(Some(Arrival { mark, number: 0, is_greeting: false }))
    }

    /// Is idle, and sleeps no longer than until an instant.
    #[inline]
    fn idle_to(&mut self, instant: u64) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < SPINS && !self.waiting.sleeps() {
            if self.pauses {
                std::hint::spin_loop();
            }
            return Ok(());
        }
        self.spins = 0;
        self.rest(instant)
    }

    /// The long way to be idle: looks at the deadline, then sleeps in event mode, else lets a peer on the same CPU go on. (To
    /// give the CPU to anybody else would be to measure them.)
    #[cold]
    fn rest(&mut self, until: u64) -> Result<(), Error> {
        let now = self.check_deadline()?;
        let sleeps = self.waiting.sleeps();
        if sleeps && now.0 < until {
            self.waiting.sleep(&self.queues, self.clock, until.min(self.deadline))?;
        }
        self.waiting.forget();
        // Where memory is polled nobody else looks for sends that fail.
        self.reap_unstamped()?;
        if self.peer.shares_cpu && !sleeps {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Ends the point where its time is over; gives the time.
    fn check_deadline(&mut self) -> Result<Ticks, Error> {
        let now = self.clock.now();
        if self.moved {
            self.moved = false;
            self.quiet_since = now;
        }
        if now.0 >= self.deadline {
            let waited_s = self.clock.ns_f64(now.since(self.began)) / 1e9;
            // A receiver, too, has sent what the peer's device should have acknowledged, whatever became of its program.
            self.reap()?;
            let is_unacknowledged = self.waiting.is_for(SENDS) || self.outstanding >= self.signal_interval;
            let what = if is_unacknowledged { "was acknowledged" } else { "arrived" };
            let advice = self.peer.path.advice_on_silence(is_unacknowledged);
            return Err(Error::Deadline { what, waited_s, advice });
        }
        Ok(now)
    }
}

impl Endpoint for VerbsEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    fn lanes(&self) -> u64 {
        self.lanes.len() as u64
    }

    #[inline]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        if !self.has_room()? {
            return Ok(Posted::Busy);
        }
        let lane = &mut self.lanes[self.next_lane];
        if let Some(numbering) = &mut self.numbering {
            let message = numbering.next(&self.buffers, mark);
            lane.post_numbered(message, mark, self.signal_interval)?;
            self.posted(false);
            return Ok(Posted::Queued);
        }
        if self.peer.notification == Notification::Memory {
            self.stamped = match mark {
                Mark::Last => LAST_BYTE,
                Mark::More => self.stamped % (LAST_BYTE - 1) + 1,
            };
            lane.stamp(self.stamped, mark == Mark::Last, &mut self.buffers.send)?;
        }
        let is_next = match mark {
            Mark::Last => lane.post_last().map(|()| true)?,
            Mark::More => lane.post(self.signal_interval)?,
        };
        self.posted(is_next);
        Ok(Posted::Queued)
    }

    fn try_greet(&mut self) -> Result<Posted, Error> {
        if !self.has_room()? {
            return Ok(Posted::Busy);
        }
        self.lanes[self.next_lane].post_greeting()?;
        self.posted(true);
        Ok(Posted::Queued)
    }

    fn try_greet_as(&mut self, number: u32) -> Result<Posted, Error> {
        // Of greetings nobody takes the completions but who sends the next.
        self.reap()?;
        self.lanes[self.next_lane].greet_with(greeting(number));
        self.try_greet()
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        let arrival = match self.peer.notification {
            Notification::Completion => self.completed_receive()?,
            Notification::Memory => self.changed_memory()?,
        };
        self.waiting.awaits(RECEIVES, arrival.is_none());
        if arrival.is_some() {
            self.moved = true;
            self.spins = 0;
        }
        Ok(arrival)
    }

    #[inline]
    fn replenish(&mut self) -> Result<(), Error> {
        while let Some(lane) = self.owed.pop() {
            let request = &mut self.buffers.receives[self.next_receive];
            request.set_id(u64::from(lane));
            self.lanes[usize::from(lane)].post_receive(request)?;
            self.next_receive += 1;
            if self.next_receive == self.buffers.receives.len() {
                self.next_receive = 0;
            }
        }
        if self.outstanding * 2 >= self.tx_depth {
            self.reap()?;
        }
        Ok(())
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        self.reap()?;
        self.waiting.awaits(SENDS, self.outstanding > 0);
        Ok(u32::try_from(self.outstanding).unwrap_or(u32::MAX))
    }

    #[inline]
    fn try_sent(&mut self) -> Result<u64, Error> {
        self.reap()?;
        self.waiting.awaits(SENDS, self.outstanding > 0);
        Ok(self.lanes[0].completed())
    }

    #[inline]
    fn carry(&mut self, message: u64, stamp: Ticks) -> Result<(), Error> {
        Ok(self.buffers.send.store(self.buffers.slots.offset(message), stamp.0)?)
    }

    #[inline]
    fn carried(&self, arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        self.numbering.as_ref().map_or(Ok(None), |numbering| numbering.carried(&self.buffers, arrival))
    }

    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        if self.waiting.is_for(RECEIVES) {
            return self.idle_to(instant.0);
        }
        // Those that do not ask for a completion are no reason to sleep for one; one that was asked for is at hand.
        if !self.waiting.sleeps_for(SENDS) || self.lanes.iter().any(Lane::is_announced) {
            return self.idle();
        }
        let now = self.check_deadline()?;
        let left = instant.0.min(self.deadline).saturating_sub(now.0);
        self.waiting.nap(Duration::from_nanos(self.clock.ns(left)), self.clock, self.deadline)
    }

    #[inline]
    fn idle(&mut self) -> Result<(), Error> {
        self.idle_to(u64::MAX)
    }

    fn quiet(&self) -> Duration {
        if self.moved {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.clock.ns(self.clock.now().since(self.quiet_since)))
    }
}
