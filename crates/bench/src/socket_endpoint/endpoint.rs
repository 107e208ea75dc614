//! Connected sockets as an endpoint.

mod driven;
pub(super) mod gathered;
mod gathering;
mod losses;
mod ready;
mod sending;
#[cfg(test)]
mod tests;
mod time;
mod watch;

use std::os::fd::OwnedFd;
use std::time::Duration;

use measure::clock::{Clock, Ticks};

use self::gathered::{BUFFER_BYTES_MIN, Gathering};
use self::ready::Ready;
use self::watch::Watch;
use super::drain::Drain;
use super::failure::Path;
use super::lane::Lane;
use super::stop_and_wait::StopAndWait;
use crate::Error;
use crate::alarm::Alarm;
use crate::endpoint::header::Header;
use crate::endpoint::limits::Limits;
use crate::endpoint::{Arrival, Batch, Endpoint, Mark, Posted, words};
use crate::point::Carrier;
use crate::topology::{Flow, Form, PartSpec};

/// Unsuccessful checks, each a system call, between two readings of the clock.
const SPINS: u32 = 64;

/// How long nothing may arrive before a message counts as lost on a lossy lane: TCP's minimum
/// (`TCP_RTO_MIN`).
const LOST_AFTER: Duration = Duration::from_millis(200);

/// The parts of an endpoint.
pub(super) struct Parts {
    /// The sockets that messages take in turn, and the paths that they lead.
    pub(super) lanes: Vec<Lane>,
    pub(super) paths: Vec<Path>,
    /// Sockets to ranks that this rank does not exchange messages with.
    pub(super) held: Vec<OwnedFd>,
    /// Whether more ranks than CPUs run on this host.
    pub(super) yields_cpu: bool,
    /// Whether this rank only receives a load, while it does something else.
    pub(super) drains: bool,
}

/// Sockets as an endpoint.
pub(crate) struct SocketEndpoint {
    lanes: Vec<Lane>,
    paths: Vec<Path>,
    _held: Vec<OwnedFd>,
    /// Which of several sockets have data.
    ready: Option<Ready>,
    /// The sockets that it sleeps for.
    watch: Watch,
    /// The lane that the next message takes.
    next_lane: usize,
    /// Whether a message may take any lane: in a stream, all but the last messages may.
    any_lane: bool,
    /// Which lanes have no room, as far as is known.
    full: Vec<bool>,
    /// The number of messages posted on any lane, which wraps.
    posts: u32,
    clock: Clock,
    limits: Limits,
    /// How long an answer may take before its message seems to be lost, in ticks, and when a
    /// message was last repeated.
    lost_after: u64,
    asked_at: Ticks,
    /// Whether it sleeps in the kernel instead of polling.
    sleeps: bool,
    /// Whether it also sleeps until there is room, because it has nothing else to do.
    sleeps_to_send: bool,
    /// Whether it may sleep until much has arrived, and for how long it still does.
    may_gather: bool,
    gathering: Option<Gathering>,
    yields_cpu: bool,
    alarm: Option<Alarm>,
    spins: u32,
    /// The events that were checked without success since the last rest.
    awaits_message: bool,
    awaits_room: bool,
    /// Whether a message is only partly sent: its rest follows while the endpoint waits.
    has_rest: bool,
    /// Greetings that arrived while other messages were awaited: on several lanes, or in a stream.
    greetings: u32,
    /// Whether messages flow without waiting for each other: a greeting begins the next stream.
    floods: bool,
    /// Whether messages alternate, and one that seems to be lost is repeated.
    repeats: bool,
    size: u64,
    counts_acknowledged: bool,
    /// The bytes that were known to be acknowledged at the last check.
    acknowledged: u64,
    drains: bool,
    _drain: Option<Drain>,
}

impl SocketEndpoint {
    pub(super) fn new(spec: &PartSpec, parts: Parts, clock: Clock) -> Result<Self, Error> {
        let Parts { lanes, paths, held, yields_cpu, drains } = parts;
        let ready = (lanes.len() > 1 && !drains).then(|| Ready::new(&lanes)).transpose()?;
        let sleeps = spec.message.poll.sleeps();
        let floods = spec.usage.flow == Flow::Flood && !spec.usage.is_timed && !spec.usage.is_drained;
        let floods_alone = spec.usage.is_one_sided_flood;
        let gathers = match spec.message.endpoint {
            Carrier::Tcp => spec.message.socket.buffer_bytes.is_none_or(|bytes| bytes >= BUFFER_BYTES_MIN),
            Carrier::Udp => !spec.message.socket.offload,
            _ => false,
        };
        Ok(Self {
            repeats: lanes.iter().any(|lane| lane.stop_and_wait().is_some()),
            ready,
            watch: Watch::new(lanes.len()),
            next_lane: 0,
            clock,
            limits: Limits::new(spec, clock),
            lost_after: clock.ticks(LOST_AFTER),
            asked_at: clock.now(),
            any_lane: floods && lanes.len() > 1,
            full: vec![false; lanes.len()],
            posts: 0,
            sleeps,
            sleeps_to_send: sleeps && floods_alone && lanes.len() == 1,
            may_gather: sleeps && floods_alone && gathers && lanes.len() <= ready::AT_ONCE,
            gathering: None,
            yields_cpu,
            alarm: None,
            spins: 0,
            awaits_message: false,
            awaits_room: false,
            has_rest: false,
            greetings: 0,
            floods,
            acknowledged: 0,
            size: spec.message.size_bytes,
            counts_acknowledged: spec.usage.form == Form::Alike,
            drains,
            _drain: None,
            lanes,
            paths,
            _held: held,
        })
    }

    /// Returns the error of a failed operation on a lane.
    #[cold]
    fn failed(&self, lane: usize, what: &'static str, error: &std::io::Error) -> Error {
        self.paths[lane].failed(what, error)
    }

    /// Receives from a lane; returns whether something was received.
    #[inline(always)]
    fn fill(&mut self, lane: usize, waits: bool) -> Result<bool, Error> {
        let filled = self.lanes[lane].fill(waits).map_err(|error| self.failed(lane, "receive on", &error))?;
        has_come(&mut self.limits, &self.lanes[lane], filled);
        Ok(filled)
    }

    /// Takes a message of the data that a lane has received.
    #[inline(always)]
    fn take(&mut self, lane: usize) -> Result<Option<Header>, Error> {
        self.lanes[lane].take().map_err(|error| self.failed(lane, "repeat an answer on", &error))
    }

    /// Returns the next message, if one has arrived, and its lane.
    #[inline]
    fn next(&mut self) -> Result<Option<(u32, Header)>, Error> {
        if self.has_rest {
            self.send_rest()?;
        }
        let Some(ready) = &mut self.ready else {
            loop {
                let mut header = self.take(0)?;
                if header.is_none() && self.fill(0, false)? {
                    header = self.take(0)?;
                }
                // If the last message of a stream is lost, the greeting of the next stream may come
                // first.
                if !(self.floods && header.is_some_and(|header| header.is_greeting)) {
                    return Ok(header.map(|header| (0, header)));
                }
                self.greetings += 1;
            }
        };
        let mut has_looked = false;
        loop {
            let Some(lane) = ready.first() else {
                if has_looked || !ready.look(false)? {
                    return Ok(None);
                }
                has_looked = true;
                continue;
            };
            let failed = |what, error| self.paths[lane].failed(what, &error);
            match self.lanes[lane].take().map_err(|error| failed("repeat an answer on", error))? {
                // The greeting may arrive before the last messages on other lanes.
                Some(header) if header.is_greeting => {
                    self.greetings += 1;
                    continue;
                }
                Some(header) => return Ok(Some((lane as u32, header))),
                None => {}
            }
            let filled = self.lanes[lane].fill(false).map_err(|error| failed("receive on", error))?;
            has_come(&mut self.limits, &self.lanes[lane], filled);
            if !filled {
                ready.done();
            }
        }
    }

    #[inline(always)]
    fn arrived(&mut self, lane: u32, header: Header) -> Arrival {
        self.limits.moved();
        self.spins = 0;
        header.arrival(lane)
    }

    /// The slow path of being idle.
    #[cold]
    fn rest(&mut self, until: u64) -> Result<(), Error> {
        let now = self.look_at_clock()?;
        if self.sleeps && now.0 < until {
            self.sleep(now, until)?;
        } else if self.yields_cpu {
            std::thread::yield_now();
        }
        (self.awaits_message, self.awaits_room) = (false, false);
        Ok(())
    }
}

/// Received bytes of a byte stream count as progress, however long their message takes.
#[inline]
fn has_come(limits: &mut Limits, lane: &Lane, filled: bool) {
    if filled && matches!(lane, Lane::Stream(_)) {
        limits.moved();
    }
}

impl Endpoint for SocketEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    fn lanes(&self) -> u64 {
        self.lanes.len() as u64
    }

    #[inline(always)]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        match (self.any_lane, mark) {
            (false, _) => return self.try_send_next(mark),
            (true, Mark::More) => return self.try_send_any(),
            (true, Mark::Last) => {}
        }
        self.try_send_to(self.next_lane as u32, mark)
    }

    fn try_send_to(&mut self, lane: u32, mark: Mark) -> Result<Posted, Error> {
        let lane = lane as usize;
        self.next_lane = lane;
        let posted = self.try_send_next(mark)?;
        self.full[lane] = posted == Posted::Busy;
        Ok(posted)
    }

    fn numbers(&self) -> u64 {
        match &self.lanes[..] {
            [Lane::Datagram(datagram)] if datagram.mode.is_lossy && datagram.stop_and_wait.is_none() => {
                u64::from(datagram.numbers) + 1
            }
            _ => 0,
        }
    }

    fn try_answer(&mut self, arrival: &Arrival) -> Result<Posted, Error> {
        if self.numbers() > 0
            && let [Lane::Datagram(datagram)] = &mut self.lanes[..]
        {
            datagram.next = arrival.number as u32;
        }
        self.try_send(arrival.mark)
    }

    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        self.greet_first(None)
    }

    fn try_send_sync_as(&mut self, number: u32) -> Result<Posted, Error> {
        self.greet_first(Some(number))
    }

    /// Greetings arrive on the first lane; messages on other lanes may arrive before them.
    fn await_sync(&mut self) -> Result<(), Error> {
        loop {
            if let Some(others) = self.greetings.checked_sub(1) {
                self.greetings = others;
                return Ok(());
            }
            if self.has_rest {
                self.send_rest()?;
            }
            match self.take(0)? {
                Some(header) if header.is_greeting => {
                    self.arrived(0, header);
                    // The messages after it may have been received together with it.
                    self.ready.iter_mut().for_each(|ready| ready.suspect(0));
                    return Ok(());
                }
                Some(_) => {}
                None if self.fill(0, false)? => {}
                None => {
                    self.awaits_message = true;
                    self.idle()?;
                }
            }
        }
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        let next = self.next()?;
        self.awaits_message = next.is_none();
        Ok(next.map(|(lane, header)| self.arrived(lane, header)))
    }

    /// With sleep, one system call receives each message: the kernel waits.
    #[inline(always)]
    fn receive(&mut self) -> Result<Mark, Error> {
        if !self.sleeps || self.ready.is_some() || self.gathering.is_some() {
            loop {
                if let Some(arrival) = self.try_receive()? {
                    return Ok(arrival.mark);
                }
                self.idle()?;
            }
        }
        loop {
            if let Some(header) = self.take(0)? {
                return Ok(self.arrived(0, header).mark);
            }
            if self.has_rest {
                self.awaits_message = true;
                self.send_rest()?;
                self.idle()?;
            } else if !self.fill(0, true)? {
                self.is_interrupted()?;
            }
        }
    }

    #[inline(always)]
    fn receive_some(&mut self) -> Result<Batch, Error> {
        Ok(Batch { messages: 1, mark: self.receive()? })
    }

    fn expect(&mut self, messages: u64, end: u64) -> Result<(), Error> {
        if !self.may_gather {
            return Ok(());
        }
        self.gather(messages, end)
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        let mut left = 0;
        for lane in 0..self.lanes.len() {
            let flushed = self.lanes[lane].flush(false);
            let is_flushed = flushed.map_err(|error| self.failed(lane, "send on", &error))?;
            left += u32::from(!is_flushed);
        }
        self.awaits_room = left > 0;
        Ok(left)
    }

    /// In a one-way point, messages that the kernel has taken count as sent; otherwise those that
    /// the peer's kernel has acknowledged, or datagrams that have left.
    fn try_sent(&mut self) -> Result<u64, Error> {
        if self.has_rest {
            self.send_rest()?;
        }
        if !self.counts_acknowledged {
            return Ok(self.lanes.iter().map(Lane::posted).sum());
        }
        let mut bytes = 0;
        for lane in 0..self.lanes.len() {
            let acknowledged = self.lanes[lane].acknowledged();
            bytes += acknowledged.map_err(|error| self.failed(lane, "query the send queue on", &error))?;
        }
        // On Unix sockets, the kernel's own overhead counts as under way: more messages in flight
        // may look like fewer acknowledged bytes.
        self.acknowledged = self.acknowledged.max(bytes);
        Ok(self.acknowledged / self.size)
    }

    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        if self.has_rest {
            self.send_rest()?;
        }
        Ok(!self.has_rest)
    }

    #[inline]
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error> {
        words::put(self.lanes[self.next_lane].next_message(), word, value);
        Ok(())
    }

    #[inline]
    fn get(&self, word: usize) -> Result<u64, Error> {
        Ok(words::get(self.lanes[0].taken_message(), word))
    }

    #[inline]
    fn was_repeated(&mut self) -> bool {
        if !self.repeats {
            return false;
        }
        let is_marred = |lane: &mut Lane| match lane {
            Lane::Datagram(datagram) => datagram.stop_and_wait.as_mut().is_some_and(StopAndWait::take_marred),
            Lane::Stream(_) => false,
        };
        // All lanes are read, so that no repetition is reported twice.
        self.lanes.iter_mut().fold(false, |others, lane| is_marred(lane) | others)
    }

    #[inline]
    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < SPINS && !self.sleeps && !self.yields_cpu {
            return Ok(());
        }
        self.spins = 0;
        self.rest(instant.0)
    }

    fn yield_cpu(&mut self) -> Result<(), Error> {
        self.look_at_clock()?;
        if self.yields_cpu {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn quiet(&self) -> Duration {
        self.limits.quiet()
    }

    fn flush(&mut self) -> Result<(), Error> {
        while self.outstanding()? > 0 {
            self.idle()?;
        }
        self.part()
    }
}
