//! The calls of a rank, with a stamp before and after each.

use std::time::Duration;

use measure::record::{Cpu, LatencyKind};
use measure::samples::Samples;

use super::choices::Start;
use super::pass::pass;
use super::stamps::{CallStamps, OverlapTimes};
use super::start::{Among, Beginning, Starter};
use super::work::{Alone, Overlapped, Work};
use crate::Error;
use crate::barrier::Barrier;
use crate::cpu::watched;
use crate::endpoint::collectives::{Collectives, CollectivesVisitor, Joint};
use crate::pattern::outcome::Outcome;
use crate::point::{Injection, Length, PointSpec};
use crate::rank_clock::RankClock;

/// A rank's share of a point of collective calls.
pub(crate) struct Share<'a> {
    pub(crate) spec: &'a PointSpec,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) rank_clock: &'a RankClock,
    pub(crate) has_one_clock: bool,
    pub(crate) barrier: Option<Barrier>,
    pub(crate) joint: Joint,
    pub(crate) start: Start,
    pub(crate) injection: Option<Injection>,
    /// Whether a computation overlaps with each call, and how often it calls the library's test
    /// function.
    pub(crate) overlap: Option<u32>,
}

/// Makes the calls of a rank: all, or those until the point is cut.
///
/// # Errors
/// The errors of the endpoint; [`Error::WrongResult`] where a call had a wrong result.
pub(crate) fn run<E: Collectives>(
    share: Share<'_>,
    endpoint: &mut E,
) -> Result<(Outcome, Option<CallStamps>), Error> {
    let Share { spec, rank, ranks, rank_clock, has_one_clock, barrier, joint, start, injection, overlap } =
        share;
    let Length::Iterations(calls) = spec.length else { return Ok((Outcome::default(), None)) };
    let clock = rank_clock.clock;
    endpoint.prepare(&joint)?;
    checked(endpoint)?;
    let delays = Injection::of(injection, rank, clock);
    let limit = Duration::try_from_secs_f64(spec.timeout_s).unwrap_or(Duration::MAX);
    let among = Among { rank, ranks, barrier, has_one_clock, limit };
    let mut starter = Starter::new(start, endpoint, among, delays)?;
    let mut stamps = Stamped::room(calls, spec.warmup);
    let mut times = None;
    let (done, mut cpu) = watched(clock, || stamps.take(endpoint, &mut starter, delays, &mut Alone));
    let is_whole = done?;
    if let Some(tests) = overlap {
        endpoint.meet()?;
        if is_whole {
            (times, cpu) = overlapped(endpoint, &mut starter, delays, &mut stamps, tests)?;
        } else {
            // No call has overlapped with a computation.
            stamps.keep(0);
        }
    }
    // Some ways of starting let a rank start before others have ended: wait for all ranks here.
    endpoint.meet()?;
    let exchanged = starter.end(endpoint)?;
    checked(endpoint)?;
    let own = Samples::from_ns(stamps.own().into_iter().map(|ticks| clock.ns(ticks)).collect());
    let Stamped { begun, ended, late, warmup } = stamps;
    let made = begun.len() as u64 + warmup;
    let outcome = Outcome {
        latency: own.latency(LatencyKind::Own, &spec.share_above_ns),
        cpu: cpu.map(|cpu| cpu.of(made)),
        ..Outcome::default()
    };
    let told = CallStamps::new(rank_clock, [begun, ended], late, exchanged).with(times);
    Ok((outcome, Some(told)))
}

/// Makes the calls again, each with a computation that takes as long as the call takes alone.
fn overlapped<E: Collectives>(
    endpoint: &mut E,
    starter: &mut Starter,
    delays: [u64; 2],
    stamps: &mut Stamped,
    tests: u32,
) -> Result<(Option<OverlapTimes>, Option<Cpu>), Error> {
    let clock = endpoint.clock();
    let pure = middle(stamps.own());
    let mut work = Overlapped::new(clock, pure, tests, stamps.begun.len());
    starter.prepare(endpoint, delays, &mut work)?;
    stamps.late.clear();
    let (done, cpu) = watched(clock, || stamps.take(endpoint, starter, delays, &mut work));
    done?;
    let own = stamps.own();
    work.calculated.truncate(own.len());
    let ns = |ticks: f64| ticks * 1e9 / clock.tick_hz();
    let times = (!own.is_empty()).then(|| OverlapTimes {
        pure_ns: ns(pure),
        calculated_ns: ns(middle(work.calculated)),
        overlapped_ns: ns(middle(own)),
    });
    Ok((times, cpu))
}

impl CollectivesVisitor for Share<'_> {
    type Done = Result<(Outcome, Option<CallStamps>), Error>;

    fn visit<C: Collectives>(self, endpoint: &mut C) -> Self::Done {
        run(self, endpoint)
    }
}

/// Makes a call and verifies its result.
fn checked<E: Collectives>(endpoint: &mut E) -> Result<(), Error> {
    endpoint.clear()?;
    endpoint.meet()?;
    endpoint.call()?;
    endpoint.verify()
}

/// Stamps in ticks, in the order of the calls.
struct Stamped {
    begun: Vec<u64>,
    ended: Vec<u64>,
    /// Calls that this rank started late.
    late: Vec<u64>,
    warmup: u64,
}

impl Stamped {
    /// Room for this many calls, in memory that is mapped: a page fault would be part of a call's
    /// time.
    fn room(calls: u64, warmup: u64) -> Self {
        let room = usize::try_from(calls).unwrap_or(usize::MAX);
        let mut late = vec![UNTOUCHED; room];
        late.clear();
        Self { begun: vec![UNTOUCHED; room], ended: vec![UNTOUCHED; room], late, warmup }
    }

    /// The time of each call, in ticks.
    fn own(&self) -> Vec<u64> {
        self.begun.iter().zip(&self.ended).map(|(begin, end)| end.saturating_sub(*begin)).collect()
    }

    /// Keeps the stamps of the first `calls` calls.
    fn keep(&mut self, calls: usize) {
        self.begun.truncate(calls);
        self.ended.truncate(calls);
        self.late.retain(|call| *call < calls as u64);
    }

    /// Makes the calls and stamps them; returns whether all were made: if the point is cut, only
    /// the stamps of those until then remain. `before` and `within` are delays in ticks before and
    /// after the first stamp.
    fn take<E: Collectives, W: Work>(
        &mut self,
        endpoint: &mut E,
        starter: &mut Starter,
        [before, within]: [u64; 2],
        work: &mut W,
    ) -> Result<bool, Error> {
        let clock = endpoint.clock();
        for _ in 0..self.warmup {
            if starter.wait(endpoint)? == Beginning::Cut {
                self.keep(0);
                return Ok(false);
            }
            work.once(endpoint, None)?;
        }
        for call in 0..self.begun.len() {
            let beginning = starter.wait(endpoint)?;
            if beginning == Beginning::Cut {
                self.keep(call);
                return Ok(false);
            }
            pass(clock, before);
            let begin = clock.now();
            pass(clock, within);
            work.once(endpoint, Some(call))?;
            let end = clock.now();
            (self.begun[call], self.ended[call]) = (begin.0, end.0);
            if beginning == Beginning::Late {
                self.late.push(call as u64);
            }
        }
        Ok(true)
    }
}

/// The median; 0 of an empty list.
fn middle(mut ticks: Vec<u64>) -> f64 {
    ticks.sort_unstable();
    let upper = ticks.get(ticks.len() / 2).copied().unwrap_or(0);
    let lower = ticks.get(ticks.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    f64::midpoint(lower as f64, upper as f64)
}

/// Not zero, because a kernel may back a page of zeroes with no memory of its own.
const UNTOUCHED: u64 = u64::MAX;
