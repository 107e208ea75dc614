//! A rank's share of a point of one-way messages.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::clock::Ticks;
use measure::record::Cpu;
use measure::samples::Stamps;

use super::choices::Stamp;
use super::settings::Settings;
use super::stamped::{Column, Stamped};
use crate::Error;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::Watch;
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::Rank;
use crate::pattern::timed::packets;
use crate::patterns::one_way::messages::{
    AFTER, BEFORE, EXCHANGES, Pace, READY, Stamper, exchange, submit, take,
};
use crate::point::{PointSpec, Service};
use crate::rank_clock::RankClock;

/// Runs a rank's share: rank 0 posts messages, rank 1 receives them.
///
/// # Errors
/// The errors of the endpoint.
pub(super) fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Stamped>), PointError> {
    let spec = rank.spec;
    let number = rank.rank;
    let rank_clock = rank.rank_clock;
    let has_one_clock = rank.has_one_clock();
    let (stamped, cpu) = stamp(rank.main()?, spec, number, has_one_clock, rank_clock)?;
    let messages = (stamped.column(Column::Submitted).len() as u64).saturating_sub(spec.warmup);
    let counters = if number == 0 { packets(messages, spec) } else { BTreeMap::new() };
    Ok((Outcome { counters, cpu, ..Outcome::default() }, Some(stamped)))
}

/// Returns the stamps of the rank, and the CPU time of the messages without the exchanges.
/// `has_one_clock` says whether both ranks read the same clock.
fn stamp<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    has_one_clock: bool,
    rank_clock: &RankClock,
) -> Result<(Stamped, Option<Cpu>), Error> {
    let clock = endpoint.clock();
    let pace = pace(spec);
    let mut stamps = Arrays::new(&pace, rank)?;
    let mut watch = Watch::for_gaps(clock);
    let count = if has_one_clock { 0 } else { EXCHANGES };
    let mut exchanged = Vec::with_capacity(4 * count as usize);
    exchange(endpoint, rank == 0, BEFORE..BEFORE + count, None, &mut exchanged)?;
    // The receiver does not know how many messages the sender has posted.
    let mut posted = pace.messages;
    let (heard, cpu) = if rank == 0 {
        // The receiver allocates its arrays first.
        endpoint.await_sync_of(READY)?;
        endpoint.replenish()?;
        let (done, cpu) = watched(clock, || submit(endpoint, &mut stamps, &mut watch, &pace));
        posted = done?;
        (None, cpu)
    } else {
        // The sender starts at this greeting: nothing may delay the receiver after it.
        let (heard, cpu) = watched(clock, || {
            endpoint.send_sync_as(READY)?;
            take(endpoint, &mut stamps, &mut watch, &pace)
        });
        (heard?, cpu)
    };
    exchange(endpoint, rank == 0, AFTER..AFTER + count, heard, &mut exchanged)?;
    // A rank that sleeps has no preemptions to watch for: it does not run while it sleeps.
    let sleeps = if rank == 0 { spec.message.send_poll.sleeps() } else { spec.message.poll.sleeps() };
    let watch = (!sleeps).then_some(watch);
    Ok((Stamped::by(rank_clock, watch, stamps.columns(posted, exchanged)), cpu))
}

fn pace(spec: &PointSpec) -> Pace {
    let messages = spec.warmup + spec.length.iterations().unwrap_or(0);
    let Settings { burst, pause_ns, stamp } = Settings::of(spec);
    Pace {
        messages,
        burst: burst.map_or(messages, u64::from).max(1),
        pause: Duration::from_nanos(pause_ns),
        until_sent: stamp == Stamp::Sent,
        is_reliable: spec.message.service == Service::Rc,
    }
}

/// The stamps of a rank, allocated before the first message.
struct Arrays {
    /// When messages were posted, or received.
    first: Stamps,
    /// When messages completed, or were sent.
    second: Option<Stamps>,
    answered: Stamps,
    rank: u32,
}

impl Arrays {
    fn new(pace: &Pace, rank: u32) -> Result<Self, Error> {
        let room =
            |messages: u64| Ok::<_, Error>(Stamps::new(usize::try_from(messages).unwrap_or(usize::MAX))?);
        let has_second = rank == 0 || pace.until_sent;
        Ok(Self {
            first: room(pace.messages)?,
            second: has_second.then(|| room(pace.messages)).transpose()?,
            answered: room(pace.bursts())?,
            rank,
        })
    }

    /// The columns of the rank: the stamps of the first `messages` messages, of the bursts, and of
    /// the exchanges before and after the messages.
    fn columns(self, messages: u64, exchanged: Vec<u64>) -> BTreeMap<Column, Vec<u64>> {
        let (first, second) = match self.rank {
            0 => (Column::Submitted, Column::Completed),
            _ => (Column::Received, Column::Sent),
        };
        let columns = [
            (first, self.first.first(messages)),
            (Column::Answered, self.answered.to_vec()),
            (Column::Exchanged, exchanged),
        ];
        columns.into_iter().chain(self.second.map(|stamps| (second, stamps.first(messages)))).collect()
    }
}

impl Stamper for Arrays {
    #[inline(always)]
    fn submitted(&mut self, message: u64, at: Ticks) {
        self.first.set(message, at);
    }

    #[inline(always)]
    fn completed(&mut self, message: u64, at: Ticks) {
        if let Some(completed) = &mut self.second {
            completed.set(message, at);
        }
    }

    #[inline(always)]
    fn received(&mut self, message: u64, at: Ticks, carried: Option<Ticks>) {
        self.first.set(message, at);
        if let (Some(sent), Some(carried)) = (&mut self.second, carried) {
            sent.set(message, carried);
        }
    }

    #[inline(always)]
    fn answered(&mut self, burst: u64, at: Ticks) {
        self.answered.set(burst, at);
    }
}

#[cfg(test)]
mod tests;
