//! Connected queue pairs, or datagram queue pairs that know their peers, as an endpoint.

mod calls;
mod driven;
mod joint;
mod trouble;

use std::time::Duration;

use measure::clock::{Clock, Ticks};
use verbs::Completion;

use super::buffers::{Buffers, receive_fill, receives_before};
use super::constants::LAST;
use super::joint::Joined;
use super::lane::Lane;
use super::memory_flags::PolledFlags;
use super::numbering::greeting;
use super::parts::{Held, Messages, Notification, Origin, Others, Parts, silence};
use super::setup::Queues;
use super::waiting::{RECEIVES, SENDS, Waiting};
use crate::Error;
use crate::endpoint::limits::Limits;
use crate::endpoint::{Arrival, Endpoint, Mark, Posted};
use crate::topology::PartSpec;

/// How many completions are taken at once.
const BATCH: usize = 16;
/// Unsuccessful polls between checks of the clock, the deadline and the scheduler.
pub(super) const SPINS: u32 = 1024;
/// The last byte of memory that nothing has been written to: no message ends with it.
const CLEARED: u8 = 0;

/// Queue pairs as an endpoint. Messages take the queue pairs in turn.
pub(crate) struct VerbsEndpoint {
    // Dropped first: lanes use the fields below.
    lanes: Vec<Lane>,
    queues: Queues,
    buffers: Buffers,
    _held: Held,
    others: Others,
    clock: Clock,
    limits: Limits,
    tx_depth: u64,
    signal_interval: u64,
    /// The lane that the next message takes.
    next_lane: usize,
    /// The outstanding requests of all lanes.
    outstanding: u64,
    /// The state of polled bytes of memory.
    flags: PolledFlags,
    /// Where in `send` a message ends.
    end: usize,
    /// How many completions of receives are polled at once.
    batch: usize,
    sent: [Completion; BATCH],
    arrived: [Completion; BATCH],
    arrived_next: usize,
    arrived_len: usize,
    /// Lanes whose receives were taken and not posted again.
    owed: Vec<u16>,
    rx_fill: usize,
    /// How many of them have not been posted yet.
    unfilled: usize,
    next_receive: usize,
    spins: u32,
    /// [`verbs::Provider::pauses`].
    pauses: bool,
    /// Unsuccessful polls before it yields the CPU or reads the clock.
    spins_max: u32,
    waiting: Waiting,
    messages: Messages,
    /// Whether sleeps last until the next event, because each message is timed.
    is_patient: bool,
    /// The objects that it was made from.
    origin: Box<Origin>,
    /// The joint operation, except while it runs.
    joined: Option<Box<Joined>>,
}

impl VerbsEndpoint {
    pub(super) fn new(spec: &PartSpec, origin: Origin, parts: Parts, clock: Clock, others: Others) -> Self {
        let Parts { lanes, queues, buffers, held, messages, joined } = parts;
        let rx_fill = receive_fill(spec) as usize;
        let before = receives_before(spec) as usize;
        let round = if spec.usage.has_rounds { lanes.iter().map(Lane::reaches).sum() } else { 1 };
        // With a link model, a message progresses only when its sender calls a verb, as a sender
        // does when it is idle for long.
        let spins_max = if others.yields_cpu || origin.context.imitates_link() { 1 } else { SPINS };
        let silence = silence(spec, others.notification);
        Self {
            owed: Vec::with_capacity(rx_fill * lanes.len()),
            // This many receives are already posted, in turn.
            next_receive: before % buffers.receives.len(),
            end: spec.message.size().saturating_sub(1),
            flags: PolledFlags::new(others.watched, round),
            lanes,
            queues,
            buffers,
            _held: held,
            others,
            clock,
            limits: Limits::new(spec, clock).bearing(silence),
            tx_depth: u64::from(spec.message.tx_depth),
            signal_interval: u64::from(spec.message.signal_interval),
            next_lane: 0,
            outstanding: 0,
            // Several completions are polled at once only in a stream: a ping-pong has one
            // outstanding message, and each completion of a one-way message has a stamp.
            batch: if spec.usage.is_timed { 1 } else { BATCH },
            sent: [Completion::default(); BATCH],
            arrived: [Completion::default(); BATCH],
            arrived_next: 0,
            arrived_len: 0,
            rx_fill,
            unfilled: rx_fill - before,
            spins: 0,
            pauses: origin.context.device().provider().pauses,
            spins_max,
            waiting: Waiting::new(spec),
            messages,
            is_patient: spec.usage.is_timed,
            origin: Box::new(origin),
            joined: joined.map(Box::new),
        }
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
            self.limits.moved();
        }
        Ok(())
    }

    /// Takes completions of sends, except for one-way messages, whose pattern takes and stamps
    /// them.
    #[inline]
    fn reap_unstamped(&mut self) -> Result<(), Error> {
        if matches!(self.messages, Messages::Numbered(_)) { Ok(()) } else { self.reap() }
    }

    /// Returns whether the next lane has room for a message.
    #[inline]
    fn lane_has_room(&mut self) -> Result<bool, Error> {
        if self.lanes[self.next_lane].outstanding() < self.tx_depth {
            return Ok(true);
        }
        self.reap_unstamped()?;
        let is_full = self.lanes[self.next_lane].outstanding() >= self.tx_depth;
        self.waiting.awaits(SENDS, is_full);
        Ok(!is_full)
    }

    /// Notes a message that was posted; the next one may take another lane.
    #[inline]
    fn posted(&mut self, is_next: bool) {
        if is_next {
            self.next_lane += 1;
            if self.next_lane == self.lanes.len() {
                self.next_lane = 0;
            }
        }
        self.outstanding += 1;
        self.limits.moved();
    }

    /// Returns the next message, found by the completion of its receive.
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
        let arrival = match &mut self.messages {
            Messages::Numbered(numbering) => numbering.arrived(immediate),
            Messages::Written(samples) => samples.arrived(immediate),
            Messages::Alike => {
                let mark = if immediate == Some(LAST) { Mark::Last } else { Mark::More };
                Arrival { mark, number: 0, lane: completion.id() as u32, is_greeting: false }
            }
        };
        self.owed.push(completion.id() as u16);
        if self.owed.len() == self.rx_fill - self.unfilled {
            // An answer that triggers the next message must find a posted receive.
            self.replenish()?;
        }
        Ok(Some(arrival))
    }

    /// Returns the next message, found by a changed byte of the target.
    #[inline]
    fn changed_memory(&mut self) -> Result<Option<Arrival>, Error> {
        let Some(target) = &self.buffers.target else { return Ok(None) };
        let changed = self.flags.changed(|at| target.peek(at))?;
        Ok(changed.map(|(lane, mark)| Arrival { mark, number: 0, lane, is_greeting: false }))
    }

    /// Posts the next receive to a lane.
    #[inline]
    fn post_receive(&mut self, lane: u16) -> Result<(), Error> {
        let request = &mut self.buffers.receives[self.next_receive];
        request.set_id(u64::from(lane));
        self.lanes[usize::from(lane)].post_receive(request)?;
        self.next_receive += 1;
        if self.next_receive == self.buffers.receives.len() {
            self.next_receive = 0;
        }
        Ok(())
    }

    /// Is idle, and sleeps until `instant` at the latest.
    #[inline]
    fn idle_to(&mut self, instant: u64) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < self.spins_max && !self.waiting.sleeps() {
            if self.pauses {
                std::hint::spin_loop();
            }
            return Ok(());
        }
        self.spins = 0;
        self.rest(instant)
    }

    /// The slow path of being idle: checks the deadline, then sleeps in event mode, or yields the
    /// CPU to a rank that shares it. (Yielding to any other process would measure that process.)
    #[cold]
    fn rest(&mut self, until: u64) -> Result<(), Error> {
        let now = self.check_deadline()?;
        let sleeps = self.waiting.sleeps();
        if sleeps && now.0 < until {
            self.waiting.sleep(&self.queues, self.clock, until.min(self.limits.end()))?;
        }
        self.waiting.forget();
        // Where memory is polled, only this finds sends that have failed.
        self.reap_unstamped()?;
        if self.others.yields_cpu && !sleeps {
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Endpoint for VerbsEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    fn lanes(&self) -> u64 {
        self.lanes.iter().map(Lane::reaches).sum::<usize>() as u64
    }

    #[inline]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        if !self.lane_has_room()? {
            return Ok(Posted::Busy);
        }
        let lane = &mut self.lanes[self.next_lane];
        match &mut self.messages {
            Messages::Alike => {}
            Messages::Numbered(numbering) => {
                let message = numbering.next(&self.buffers, mark);
                lane.post_numbered(message, mark, self.signal_interval)?;
                self.posted(false);
                return Ok(Posted::Queued);
            }
            Messages::Written(samples) => {
                samples.post(lane, &self.buffers)?;
                self.posted(false);
                return Ok(Posted::Queued);
            }
        }
        if self.others.notification == Notification::Memory {
            let byte = self.flags.next(mark);
            if !self.lanes[self.next_lane].stamp(byte, mark == Mark::Last) {
                self.buffers.send.write(self.end, &[byte])?;
            }
        }
        let lane = &mut self.lanes[self.next_lane];
        let is_next = match mark {
            Mark::Last => lane.post_last().map(|()| true)?,
            Mark::More => lane.post(self.signal_interval)?,
        };
        self.posted(is_next);
        Ok(Posted::Queued)
    }

    fn try_send_to(&mut self, lane: u32, mark: Mark) -> Result<Posted, Error> {
        let lane = lane as usize;
        if self.others.notification != Notification::Completion || self.lanes[lane].reaches() > 1 {
            let reason =
                "messages that are polled in memory or share a queue pair cannot be sent to a chosen rank";
            return Err(Error::Impossible { reason: reason.to_owned() });
        }
        self.next_lane = lane;
        self.try_send(mark)
    }

    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        if !self.lane_has_room()? {
            return Ok(Posted::Busy);
        }
        self.lanes[self.next_lane].post_greeting()?;
        self.posted(true);
        Ok(Posted::Queued)
    }

    fn try_signal(&mut self, mark: Mark) -> Result<Posted, Error> {
        let Some(signals) = self.buffers.signals else { return self.try_send(mark) };
        if !self.lane_has_room()? {
            return Ok(Posted::Busy);
        }
        let byte = self.flags.next(mark);
        self.buffers.send.write(signals.from, &[byte])?;
        self.lanes[self.next_lane].post_greeting()?;
        self.posted(true);
        Ok(Posted::Queued)
    }

    fn try_send_sync_as(&mut self, number: u32) -> Result<Posted, Error> {
        // Only the next greeting takes the completions of greetings.
        self.reap()?;
        self.lanes[self.next_lane].greet_with(greeting(number));
        self.try_send_sync()
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        let arrival = match self.others.notification {
            Notification::Completion => self.completed_receive()?,
            Notification::Memory | Notification::Signal => self.changed_memory()?,
        };
        self.waiting.awaits(RECEIVES, arrival.is_none());
        if arrival.is_some() {
            self.limits.moved();
            self.spins = 0;
        }
        Ok(arrival)
    }

    #[inline]
    fn replenish(&mut self) -> Result<(), Error> {
        while let Some(lane) = self.owed.pop() {
            self.post_receive(lane)?;
        }
        if self.outstanding * 2 >= self.tx_depth {
            self.reap()?;
        }
        Ok(())
    }

    #[inline]
    fn fill(&mut self) -> Result<bool, Error> {
        if self.unfilled == 0 {
            return Ok(false);
        }
        self.unfilled -= 1;
        self.post_receive(0).map(|()| true)
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
        Ok(self.lanes[0].completed)
    }

    #[inline]
    fn clear_places(&mut self) -> Result<(), Error> {
        let slots = self.buffers.slots;
        for slot in 0..slots.count {
            self.buffers.send.write(slot * slots.stride + self.end, &[CLEARED])?;
        }
        Ok(())
    }

    #[inline]
    fn is_placed(&mut self, lane: u64) -> Result<bool, Error> {
        Ok(self.buffers.send.peek(lane as usize * self.buffers.slots.stride + self.end)? != CLEARED)
    }

    #[inline]
    fn carry(&mut self, message: u64, stamp: Ticks) -> Result<(), Error> {
        Ok(self.buffers.send.store(self.buffers.slots.offset(message), stamp.0)?)
    }

    #[inline]
    fn carried(&self, arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        let Messages::Numbered(numbering) = &self.messages else { return Ok(None) };
        numbering.carried(&self.buffers, arrival)
    }

    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        let is_free =
            |end: &Self| end.messages.written().map_or(true, |samples| samples.is_free(&end.lanes[0]));
        if !is_free(self) {
            self.reap()?;
            self.waiting.awaits(SENDS, true);
        }
        Ok(is_free(self) && self.lane_has_room()?)
    }

    #[inline]
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error> {
        self.messages.written()?.put((&mut self.lanes[0], &self.buffers), word, value)
    }

    #[inline]
    fn get(&self, word: usize) -> Result<u64, Error> {
        self.messages.written()?.get(&self.buffers, word)
    }

    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        if self.waiting.is_for(RECEIVES) {
            return self.idle_to(instant.0);
        }
        // Requests without a completion are no reason to sleep; a requested completion arrives
        // soon.
        if !self.waiting.sleeps_for(SENDS) || self.lanes.iter().any(Lane::is_announced) {
            return self.idle();
        }
        let now = self.check_deadline()?;
        let end = self.limits.end();
        let left = instant.0.min(end).saturating_sub(now.0);
        self.waiting.nap(Duration::from_nanos(self.clock.ns(left)), self.clock, end)
    }

    #[inline]
    fn idle(&mut self) -> Result<(), Error> {
        self.idle_to(u64::MAX)
    }

    fn yield_cpu(&mut self) -> Result<(), Error> {
        self.check_deadline()?;
        if self.others.yields_cpu {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn quiet(&self) -> Duration {
        self.limits.quiet()
    }
}
