//! Shared memory as an endpoint.

use std::time::Duration;

use measure::clock::{Clock, Ticks};

use super::bell::{Bell, MESSAGE, ROOM};
use super::lane::Lane;
use crate::Error;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::limits::{Limits, timespec};
use crate::endpoint::{Arrival, Endpoint, FILL, Mark, Posted, words};
use crate::topology::{Form, PartSpec};

/// Unsuccessful checks between two readings of the clock.
const SPINS: u32 = 256;
/// The shortest sleep.
const AT_ONCE: Duration = Duration::from_micros(10);

/// Rings between this rank and other ranks of the host.
pub(crate) struct ShmemEndpoint {
    rank: u32,
    lanes: Vec<Lane>,
    bell: Bell,
    /// The message to send, and the last one received.
    message: Box<[u8]>,
    received: Box<[u8]>,
    /// The lanes for the next send and the next check for a message.
    next_out: usize,
    next_in: usize,
    clock: Clock,
    limits: Limits,
    /// Whether this rank and its peers sleep instead of polling.
    sleeps: bool,
    yields_cpu: bool,
    spins: u32,
    /// The events that were checked without success since the last rest.
    awaits: Awaits,
    /// The sum of [`Lane::progress`] at the last reading of the clock.
    seen: u64,
    /// The messages that were known to be taken at the last check.
    taken: u64,
    /// Whether a message counts as sent only when the other rank has taken it.
    counts_taken: bool,
}

/// The events that a rank may wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Awaits {
    message: bool,
    room: bool,
    taken: bool,
}

impl ShmemEndpoint {
    pub(super) fn new(
        spec: &PartSpec,
        rank: u32,
        lanes: Vec<Lane>,
        bell: Bell,
        yields_cpu: bool,
        clock: Clock,
    ) -> Self {
        let size = spec.message.size();
        Self {
            rank,
            lanes,
            bell,
            message: vec![FILL; size].into(),
            received: vec![0; size].into(),
            next_out: 0,
            next_in: 0,
            clock,
            limits: Limits::new(spec, clock),
            sleeps: spec.message.poll.sleeps(),
            yields_cpu,
            spins: 0,
            awaits: Awaits::default(),
            seen: 0,
            taken: 0,
            counts_taken: spec.usage.form == Form::Alike,
        }
    }

    /// Posts a message or a greeting on a lane.
    #[inline]
    fn post(&mut self, index: usize, how: impl FnOnce(&mut Lane, &[u8]) -> bool) -> Posted {
        let lane = &mut self.lanes[index];
        let is_posted = how(lane, &self.message);
        self.awaits.room = !is_posted;
        if is_posted { Posted::Queued } else { Posted::Busy }
    }

    /// Puts the rest of partly sent messages into their rings; returns whether nothing is left.
    #[inline]
    fn finish(&mut self) -> bool {
        let mut is_finished = true;
        for lane in &mut self.lanes {
            is_finished &= lane.finish(&self.message);
        }
        is_finished
    }

    fn progress(&self) -> u64 {
        self.lanes.iter().map(Lane::progress).sum()
    }

    /// Ends the point if its time is over or the other rank has died. Returns the time.
    #[cold]
    fn look_at_clock(&mut self) -> Result<Ticks, Error> {
        let progress = self.progress();
        if progress != self.seen {
            self.seen = progress;
            self.limits.moved();
        }
        let awaits_room = self.awaits.room || self.lanes.iter().any(Lane::has_rest);
        let own = self.rank;
        let lanes = &self.lanes;
        self.limits.check(awaits_room, || {
            let rank = lanes.first().map_or(0, |lane| lane.rank);
            format!("shared memory from rank {own} to rank {rank}")
        })
    }

    /// The slow path of being idle.
    #[cold]
    fn rest(&mut self, instant: u64) -> Result<(), Error> {
        let now = self.look_at_clock()?;
        if self.sleeps && now.0 < instant {
            self.sleep(now, instant);
        } else if self.yields_cpu {
            std::thread::yield_now();
        }
        self.awaits = Awaits::default();
        Ok(())
    }

    /// Sleeps for the events that were checked without success, until `instant` at the latest.
    fn sleep(&mut self, now: Ticks, instant: u64) {
        let until = instant.min(self.limits.next_look().0);
        let left = until.saturating_sub(now.0);
        let Awaits { message, room, taken } = self.awaits;
        let room_too = room || taken || self.lanes.iter().any(Lane::has_rest);
        let what = if message { MESSAGE } else { 0 } | if room_too { ROOM } else { 0 };
        // Without an event to wait for, a rank sleeps only for an instant.
        if left < self.clock.ticks(AT_ONCE) || (what == 0 && instant == u64::MAX) {
            return;
        }
        let limit = timespec(Duration::from_nanos(self.clock.ns(left)));
        let lanes = &mut self.lanes;
        let before = self.taken;
        self.bell.sleep(what, &limit, || {
            let is_taken = taken && lanes.iter().map(Lane::taken).sum::<u64>() != before;
            let has_what = |lane: &mut Lane| {
                (message && lane.has_some()) || ((room || lane.has_rest()) && lane.has_room())
            };
            is_taken || lanes.iter_mut().any(has_what)
        });
    }
}

impl DrivenEndpoint for ShmemEndpoint {
    const CAPABILITIES: Capabilities = Capabilities::COUNTED.and(Capabilities::ADDRESSED);

    fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        self.limits.start(Duration::from_secs_f64(timeout_s));
        Ok(())
    }

    fn stop(&mut self) {}
}

impl Endpoint for ShmemEndpoint {
    #[inline]
    fn clock(&self) -> Clock {
        self.clock
    }

    fn lanes(&self) -> u64 {
        self.lanes.len() as u64
    }

    #[inline]
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        let posted = self.post(self.next_out, |lane, message| lane.post(mark, message));
        if posted == Posted::Queued {
            self.next_out += 1;
            if self.next_out == self.lanes.len() {
                self.next_out = 0;
            }
        }
        Ok(posted)
    }

    fn try_send_to(&mut self, lane: u32, mark: Mark) -> Result<Posted, Error> {
        self.next_out = lane as usize;
        self.try_send(mark)
    }

    fn try_send_sync(&mut self) -> Result<Posted, Error> {
        self.try_send_sync_as(0)
    }

    fn try_send_sync_as(&mut self, number: u32) -> Result<Posted, Error> {
        Ok(self.post(0, |lane, message| lane.greet(number, message)))
    }

    #[inline]
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        self.finish();
        for _ in 0..self.lanes.len() {
            let lane = self.next_in;
            let header = self.lanes[lane].take(&mut self.received);
            self.next_in += 1;
            if self.next_in == self.lanes.len() {
                self.next_in = 0;
            }
            if let Some(header) = header {
                (self.awaits.message, self.spins) = (false, 0);
                return Ok(Some(header.arrival(lane as u32)));
            }
        }
        self.awaits.message = true;
        Ok(None)
    }

    #[inline]
    fn has_room(&mut self) -> Result<bool, Error> {
        Ok(self.finish() && self.lanes[self.next_out].has_room())
    }

    #[inline]
    fn put(&mut self, word: usize, value: u64) -> Result<(), Error> {
        words::put(&mut self.message, word, value);
        Ok(())
    }

    #[inline]
    fn get(&self, word: usize) -> Result<u64, Error> {
        Ok(words::get(&self.received, word))
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        let is_finished = self.finish();
        self.awaits.room = !is_finished;
        Ok(u32::from(!is_finished))
    }

    /// In a one-way point, messages in the ring count as sent; if only taken messages count, those
    /// that the other rank has taken.
    fn try_sent(&mut self) -> Result<u64, Error> {
        self.finish();
        if !self.counts_taken {
            return Ok(self.lanes.iter().map(Lane::sent).sum());
        }
        let before = self.taken;
        self.taken = self.lanes.iter().map(Lane::taken).sum();
        self.awaits.taken = self.taken == before;
        Ok(self.taken)
    }

    #[inline]
    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        self.spins += 1;
        if self.spins < SPINS && !self.sleeps && !self.yields_cpu {
            std::hint::spin_loop();
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
        if self.progress() == self.seen { self.limits.quiet() } else { Duration::ZERO }
    }
}
