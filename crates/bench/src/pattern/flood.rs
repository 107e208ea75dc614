//! Streams of messages: their rates, and how many messages were complete at which time.

use measure::clock::{Clock, Domain, Ticks};
use measure::record::{Direction, Throughput};
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::Error;
use crate::rank_clock::RankClock;

/// One rank's measurement of one direction of a stream, without warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flood {
    /// Messages between the two stamps.
    pub messages: u64,
    /// Ticks from the stamp before the first message to the stamp after the last.
    pub ticks: u64,
    /// Messages that arrived or were posted in total.
    pub total: u64,
}

/// A stream that ran at the same time as others.
#[derive(Debug)]
pub(crate) struct Burst {
    /// When all streams started.
    pub(crate) begin: Ticks,
    /// When this stream's own messages were complete.
    pub(crate) end: Ticks,
    /// Messages that were complete at `end`.
    pub(crate) messages: u64,
    /// Messages in total: the stream continued until all others were complete.
    pub(crate) total: u64,
}

impl Burst {
    /// The rate of its own messages of `bytes` bytes, and its progress over time.
    ///
    /// # Errors
    /// [`Error::TooFewMessages`] where no message was complete.
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

/// Messages that are posted between two readings of the clock and of the completions: only a few,
/// because a device may complete each message before the next is posted.
pub(crate) const AT_ONCE: u64 = 64;

/// The rate of a stream, in messages per second.
pub(crate) fn messages_per_s(flood: &Flood, clock: Clock) -> Result<f64, Error> {
    if flood.messages == 0 || flood.ticks == 0 {
        return Err(Error::TooFewMessages { messages: flood.total });
    }
    Ok(flood.messages as f64 * 1e9 / clock.ns_f64(flood.ticks))
}

/// A range of time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    /// The clock of the ticks.
    pub(crate) clock: Domain,
    /// Start and end, in ticks.
    pub(crate) span: [u64; 2],
}

/// How many messages of a stream were complete at which time, to count those of a common time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FloodProgress {
    /// The clock of the ticks.
    pub(crate) clock: Domain,
    /// Ticks per second.
    pub(crate) tick_hz: f64,
    /// When the stream started, and when its own messages were complete, in ticks.
    pub(crate) span: [u64; 2],
    /// Times in ticks, with the number of messages that were complete by then.
    pub(crate) seen: Vec<(u64, u64)>,
}
