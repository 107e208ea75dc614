//! Floods: what they come to, and how far they were at which time.

use measure::clock::{Clock, Domain, Ticks};
use measure::record::{Direction, Throughput};
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::Error;
use crate::rank_clock::RankClock;

/// What a direction of a stream came to, at one end. Warm-up is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flood {
    /// Messages between the two stamps.
    pub messages: u64,
    /// Ticks from the stamp before the first of them to the stamp after the last.
    pub ticks: u64,
    /// Messages that arrived or were posted in all.
    pub total: u64,
}

/// What a flood beside others was.
#[derive(Debug)]
pub(crate) struct Burst {
    /// When it began, with all others.
    pub(crate) begin: Ticks,
    /// When its own messages were done.
    pub(crate) end: Ticks,
    /// Messages that were done by then.
    pub(crate) messages: u64,
    /// Messages in all: it went on until all others were done.
    pub(crate) total: u64,
}

impl Burst {
    /// The rate of its own messages of so many bytes, and how it went.
    ///
    /// # Errors
    /// [`Error::TooFewMessages`] where nothing was done.
    pub(crate) fn told(
        self,
        progress: Progress,
        bytes: u64,
        rank_clock: &RankClock,
    ) -> Result<(Throughput, FloodProgress), Error> {
        let clock = rank_clock.clock;
        let Self { messages, total, .. } = self;
        let flood = Flood { messages, ticks: self.end.since(self.begin), total };
        let messages_per_s = messages_per_s(&flood, clock)?;
        let passed = FloodProgress {
            clock: rank_clock.domain.clone(),
            tick_hz: clock.tick_hz(),
            span: [self.begin.0, self.end.0],
            seen: progress.into_seen(),
        };
        Ok((Throughput::of(messages_per_s, bytes, Direction::Uni), passed))
    }
}

/// Messages that are posted between two looks at the time and at how many are done: no more than a
/// few, as a device may be done with each before the next is posted.
pub(crate) const AT_ONCE: u64 = 64;

/// The rate of a flood of which something was done.
pub(crate) fn messages_per_s(flood: &Flood, clock: Clock) -> Result<f64, Error> {
    if flood.messages == 0 || flood.ticks == 0 {
        return Err(Error::TooFewMessages { messages: flood.total });
    }
    Ok(flood.messages as f64 * 1e9 / clock.ns_f64(flood.ticks))
}

/// From when to when.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    /// The clock of the ticks.
    pub(crate) clock: Domain,
    /// In ticks.
    pub(crate) span: [u64; 2],
}

/// How far a flood was at which time, to be counted in the time that others were at it too.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FloodProgress {
    /// The clock of the ticks, and how many it has in a second.
    pub(crate) clock: Domain,
    /// In Hz.
    pub(crate) tick_hz: f64,
    /// When it began, and when its own messages were done, in ticks.
    pub(crate) span: [u64; 2],
    /// Times in ticks, and messages that were done by then.
    pub(crate) seen: Vec<(u64, u64)>,
}
