//! Merges the stamps of both ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use measure::clock::{Exchange, Offset, holds_one_clock};
use measure::record::{Clocks, Gaps, Histogram, Largest, Latency, LatencyKind, OneWay, Timed};
use measure::samples::{Samples, Stamps};
use measure::{stats, step};

use super::settings::Settings;
use super::stamped::{Column, Stamped};
use crate::Error;
use crate::pattern::Watched;
use crate::pattern::outcome::{KeptSamples, Source};
use crate::point::PointSpec;

/// The merged stamps of a point.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Every kind of latency, the main one first.
    pub kinds: Vec<Timed>,
    /// What the record has in addition.
    pub one_way: OneWay,
    /// Raw samples by kind, where the plan keeps them.
    pub samples: Vec<KeptSamples>,
    /// Counters of messages.
    pub counters: BTreeMap<String, u64>,
    /// Why the numbers are unstable, if so.
    pub unstable: Option<String>,
}

/// Merges the stamps of rank 0 and rank 1.
///
/// # Errors
/// [`Error::Clocks`] where the two clocks cannot be compared; [`Error::TooFewMessages`] where
/// nothing arrived.
pub(crate) fn merge(spec: &PointSpec, sender: &Stamped, receiver: &Stamped) -> Result<Joined, Error> {
    let mut messages = Messages::new(spec, sender, receiver, LatencyKind::OneWay, Column::Submitted)?;
    let arrived = messages.arrived();
    let received = arrived.len() as u64;
    let counters = [
        ("messages_received".to_owned(), received),
        ("messages_lost".to_owned(), messages.counted().len() as u64 - received),
    ];
    let mut others = Vec::new();
    if !receiver.column(Column::Sent).is_empty() {
        others.push((LatencyKind::OneWaySend, messages.since(Column::Sent)));
    }
    others.push((LatencyKind::Completion, messages.within(Column::Submitted, Column::Completed)));
    messages.put_together(&arrived, others, counters.into())
}

/// The messages of a point, with the stamps of both ranks.
pub(crate) struct Messages<'a> {
    spec: &'a PointSpec,
    stamps: Both<'a>,
    /// The main latency, and the stamp at which it starts.
    kind: LatencyKind,
    start: Column,
    /// Messages of the warm-up.
    first: usize,
    all: usize,
    /// Messages that seem to arrive before they were sent.
    negative: u64,
}

impl<'a> Messages<'a> {
    /// The messages of a point whose main latency is `kind`, from the stamp `start` to the arrival.
    ///
    /// # Errors
    /// As [`merge`].
    pub(crate) fn new(
        spec: &'a PointSpec,
        sender: &'a Stamped,
        receiver: &'a Stamped,
        kind: LatencyKind,
        start: Column,
    ) -> Result<Self, Error> {
        let all = sender.column(start).len();
        let stamps = Both { sender, receiver, start, time: Time::of(spec, sender, receiver)? };
        let first = usize::try_from(spec.warmup).unwrap_or(usize::MAX).min(all);
        Ok(Self { spec, stamps, kind, start, first, all, negative: 0 })
    }

    /// The numbers of the messages that count.
    pub(crate) fn counted(&self) -> Range<usize> {
        self.first..self.all
    }

    /// Number and latency in ns of the messages that count and have arrived.
    pub(crate) fn arrived(&mut self) -> Vec<(usize, u64)> {
        self.stamps.latencies(self.start, self.counted(), &mut self.negative)
    }

    /// Latencies in ns from another stamp to the arrival.
    pub(crate) fn since(&self, start: Column) -> Vec<u64> {
        ns_of(&self.stamps.latencies(start, self.counted(), &mut 0))
    }

    /// Times in ns between two stamps of rank 0.
    pub(crate) fn within(&self, from: Column, to: Column) -> Vec<u64> {
        self.stamps.within(from, to, self.first)
    }

    /// Merges the messages that have [`arrived`](Self::arrived) with times of other kinds and
    /// counters.
    ///
    /// # Errors
    /// [`Error::TooFewMessages`] where nothing arrived.
    pub(crate) fn put_together(
        mut self,
        arrived: &[(usize, u64)],
        others: Vec<(LatencyKind, Vec<u64>)>,
        counters: BTreeMap<String, u64>,
    ) -> Result<Joined, Error> {
        let spec = self.spec;
        let first = self.first;
        let warm = self.stamps.latencies(self.start, 0..first, &mut self.negative);
        let Self { stamps, kind, start, negative, .. } = self;
        let all: Vec<u64> = warm.iter().chain(arrived).map(|(_, ns)| *ns).collect();
        let latency = |samples_ns: &[u64]| stamps.time.latency(spec, kind, samples_ns);
        let gaps = [stamps.sender, stamps.receiver].map(GapList::of);
        let largest = arrived.iter().max_by_key(|(_, ns)| *ns).map(|&(message, ns)| Largest {
            message: (message - first) as u64,
            ns,
            gaps_ns: stamps.stolen(&gaps, message).into_iter().collect(),
        });
        let above_explained = spec.share_above_ns.iter().map(|threshold| {
            let is_explained = |&&(message, ns): &&(usize, u64)| {
                ns > *threshold && stamps.stolen(&gaps, message).iter().any(|(_, stolen)| stolen * 2 >= ns)
            };
            (threshold.to_string(), arrived.iter().filter(is_explained).count() as u64)
        });
        let ends = [stamps.sender, stamps.receiver];
        let one_way = OneWay {
            clocks: stamps.time.clocks(),
            first: latency(&ns_of(&warm)),
            with_first: (first > 0).then(|| latency(&all)).flatten(),
            completed_first_share: stamps.completed_first(first),
            negative,
            gaps: (0..).zip(ends).filter_map(|(rank, end)| seen(rank, end)).collect(),
            largest,
            above_explained: above_explained.collect(),
        };
        let unstable = step::step(&levels(spec, start == Column::Due, arrived)).map(|step| step.to_string());
        let kinds = [(kind, ns_of(arrived))].into_iter().chain(others).collect();
        let (kinds, samples) = keep(spec, kinds, &stamps.time);
        if kinds.first().is_none_or(|timed| timed.latency.kind != kind) {
            return Err(Error::TooFewMessages { messages: arrived.len() as u64 });
        }
        Ok(Joined { kinds, one_way, samples, counters, unstable })
    }
}

fn ns_of(messages: &[(usize, u64)]) -> Vec<u64> {
    messages.iter().map(|(_, ns)| *ns).collect()
}

/// Statistics of each kind, with its samples or their distribution. A kind without samples is left
/// out.
fn keep(
    spec: &PointSpec,
    kinds: Vec<(LatencyKind, Vec<u64>)>,
    time: &Time,
) -> (Vec<Timed>, Vec<KeptSamples>) {
    let mut timed = Vec::new();
    let mut kept = Vec::new();
    for (kind, samples_ns) in kinds {
        let Some(latency) = time.latency(spec, kind, &samples_ns) else { continue };
        let mut histogram: Option<Histogram> = None;
        if spec.keep_samples {
            kept.push(KeptSamples { of: Source::Kind(kind), samples_ns });
        } else {
            histogram = Some(Samples::from_ns(samples_ns).histogram());
        }
        timed.push(Timed { latency, samples: None, histogram });
    }
    (timed, kept)
}

/// The series in which a shift shows a change of the machine. Within a burst, latency changes as a
/// queue fills and empties, which is what the pattern measures; then each burst has one value.
fn levels(spec: &PointSpec, is_paced: bool, messages: &[(usize, u64)]) -> Vec<f64> {
    let Settings { burst, pause_ns, .. } = Settings::of(spec);
    let burst = burst.map_or(usize::MAX, |burst| burst as usize);
    if burst == 1 || pause_ns > 0 || is_paced {
        return Samples::from_ns(messages.iter().map(|(_, ns)| *ns).collect()).series();
    }
    let bursts = messages.chunk_by(|(one, _), (next, _)| one / burst == next / burst);
    let median = |burst: &[(usize, u64)]| {
        let mut sorted: Vec<u64> = burst.iter().map(|(_, ns)| *ns).collect();
        sorted.sort_unstable();
        stats::quantile(&sorted, stats::Share::P50)
    };
    Samples::from_ns(bursts.filter_map(median).collect()).series()
}

fn seen(rank: u32, end: &Stamped) -> Option<Gaps> {
    let Watched { threshold, longest, total, count } = end.watched?;
    let ns = |ticks: u64| (ticks as f64 * 1e9 / end.clock.tick_hz).round() as u64;
    let threshold_ns = ns(threshold);
    let total_ns = ns(total);
    let longest_ns = ns(longest);
    let kept = Some(gaps_kept(end)).filter(|kept| *kept < count);
    Some(Gaps { rank, threshold_ns, count, kept, total_ns, longest_ns })
}

/// The number of preemptions that a rank kept: all, or the first ones.
fn gaps_kept(end: &Stamped) -> u64 {
    end.column(Column::Gaps).len() as u64 / 2
}

/// The time between stamps of rank 0 and of rank 1.
enum Time {
    /// One clock: ns per tick.
    One(f64),
    Two {
        offset: Box<Offset>,
        ns_per_tick: f64,
        /// Rank 1's clock minus rank 0's in the middle of the point, in ns.
        offset_ns: f64,
        bound_ns: f64,
        exchanges: u64,
    },
}

impl Time {
    fn of(spec: &PointSpec, sender: &Stamped, receiver: &Stamped) -> Result<Self, Error> {
        let exchanges = exchanges(spec, sender, receiver);
        let ns_per_tick = 1e9 / sender.clock.tick_hz;
        // Hosts may claim one clock, but exchanges that refute it are decisive.
        if sender.domain.shares_with(&receiver.domain) && holds_one_clock(&exchanges, 0) {
            return Ok(Self::One(ns_per_tick));
        }
        let offset = Offset::of(&exchanges, sender.clock, receiver.clock);
        let offset = offset.map_err(|reason| Error::Clocks { reason: reason.to_string() })?;
        let received = receiver.column(Column::Received).iter().filter(|stamp| **stamp != Stamps::NONE);
        let (Some(&first), Some(&last)) = (received.clone().min(), received.max()) else {
            return Err(Error::TooFewMessages { messages: 0 });
        };
        let middle = first.midpoint(last);
        let interval = offset.interval(middle);
        let ours = (interval.least + interval.largest) as f64 / 2.0 * ns_per_tick;
        let offset_ns = middle as f64 * 1e9 / receiver.clock.tick_hz - ours;
        let bound_ns = offset.bound_ns(first, last);
        let exchanges = exchanges.len() as u64;
        Ok(Self::Two { offset: Box::new(offset), ns_per_tick, offset_ns, bound_ns, exchanges })
    }

    /// The time from a stamp of rank 0 to one of rank 1, in ns; negative where the first is later.
    fn across(&self, ours: u64, theirs: u64) -> f64 {
        match self {
            Self::One(_) => self.within(ours, theirs),
            Self::Two { offset, .. } => offset.elapsed(ours, theirs).ns,
        }
    }

    /// The time from a stamp of rank 0 to another, in ns.
    fn within(&self, from: u64, to: u64) -> f64 {
        let (Self::One(ns_per_tick) | Self::Two { ns_per_tick, .. }) = self;
        to.wrapping_sub(from).cast_signed() as f64 * ns_per_tick
    }

    /// Statistics of a kind of latency, with bounds where it compares two clocks.
    fn latency(&self, spec: &PointSpec, kind: LatencyKind, samples_ns: &[u64]) -> Option<Latency> {
        match (self, kind) {
            (
                Self::Two { bound_ns, .. },
                LatencyKind::Arrival | LatencyKind::OneWay | LatencyKind::OneWaySend,
            ) => stats::latency_within(kind, samples_ns, &spec.share_above_ns, *bound_ns),
            _ => stats::latency(kind, samples_ns, &spec.share_above_ns),
        }
    }

    fn clocks(&self) -> Clocks {
        match self {
            Self::One(_) => Clocks::One,
            Self::Two { offset, offset_ns, bound_ns, exchanges, .. } => {
                let (least, largest) = offset.drift_ppm();
                Clocks::Two {
                    offset_ns: *offset_ns,
                    bound_ns: *bound_ns,
                    drift_ppm: [least, largest],
                    exchanges: *exchanges,
                }
            }
        }
    }
}

/// The exchanges before and after the messages, and the bursts with their answers.
fn exchanges(spec: &PointSpec, sender: &Stamped, receiver: &Stamped) -> Vec<Exchange> {
    let own = sender.column(Column::Exchanged).chunks_exact(2);
    let apart = own.zip(receiver.column(Column::Exchanged).chunks_exact(2)).map(|(own, their)| Exchange {
        sent: own[0],
        arrived: their[0],
        answered: their[1],
        returned: own[1],
    });
    let submitted = sender.column(Column::Submitted);
    let received = receiver.column(Column::Received);
    let burst = Settings::of(spec).burst.map_or(submitted.len(), |burst| burst as usize).max(1);
    let answers = sender.column(Column::Answered).iter().zip(receiver.column(Column::Answered));
    let bursts = (1..).zip(answers).filter_map(|(number, (&returned, &answered))| {
        let last = (number * burst).min(submitted.len()).checked_sub(1)?;
        let exchange = Exchange { sent: submitted[last], arrived: *received.get(last)?, answered, returned };
        let Exchange { sent, arrived, answered, returned } = exchange;
        [sent, arrived, answered, returned].iter().all(|stamp| *stamp != Stamps::NONE).then_some(exchange)
    });
    apart.chain(bursts).collect()
}

/// The stamps of both ranks.
struct Both<'a> {
    sender: &'a Stamped,
    receiver: &'a Stamped,
    /// The stamp of rank 0 from which a message counts as in flight.
    start: Column,
    time: Time,
}

impl Both<'_> {
    /// Number and latency in ns, from one of rank 0's stamps to the arrival, of the messages of a
    /// range that arrived.
    fn latencies(&self, start: Column, of: Range<usize>, negative: &mut u64) -> Vec<(usize, u64)> {
        let carried = start == Column::Sent;
        let starts = if carried { self.receiver.column(start) } else { self.sender.column(start) };
        let pairs = starts.iter().zip(self.receiver.column(Column::Received)).enumerate();
        let pairs = pairs.take(of.end).skip(of.start);
        let known = pairs.filter(|(_, (start, end))| **start != Stamps::NONE && **end != Stamps::NONE);
        known
            .map(|(message, (start, end))| {
                let ns = self.time.across(*start, *end).round();
                *negative += u64::from(ns < 0.0);
                // The conversion saturates: a negative time becomes 0.
                (message, ns as u64)
            })
            .collect()
    }

    /// Times between two stamps of rank 0 in ns, of the messages from `first` on with both stamps.
    fn within(&self, from: Column, to: Column, first: usize) -> Vec<u64> {
        let pairs = self.sender.column(from).iter().zip(self.sender.column(to));
        let known = pairs.skip(first).filter(|(from, to)| **from != Stamps::NONE && **to != Stamps::NONE);
        known.map(|(from, to)| self.time.within(*from, *to).round() as u64).collect()
    }

    /// The share of the messages from `first` on whose completion was seen before their reception.
    /// `None` with two clocks, whose bound is wider than the difference of the two stamps.
    fn completed_first(&self, first: usize) -> Option<f64> {
        if matches!(self.time, Time::Two { .. }) {
            return None;
        }
        let pairs = self.sender.column(Column::Completed).iter().zip(self.receiver.column(Column::Received));
        let known = pairs.skip(first).filter(|(a, b)| **a != Stamps::NONE && **b != Stamps::NONE);
        let mut before = 0_u64;
        let mut count = 0_u64;
        for (completed, received) in known {
            before += u64::from(self.time.across(*completed, *received) > 0.0);
            count += 1;
        }
        (count > 0).then(|| before as f64 / count as f64)
    }

    /// For how long each rank was preempted while a message was in flight, in ns. A rank that did
    /// not keep all preemptions is left out where the message arrived after the last that it kept.
    fn stolen(&self, gaps: &[Option<GapList>; 2], message: usize) -> Vec<(u32, u64)> {
        let submitted = self.sender.column(self.start)[message];
        let received = self.receiver.column(Column::Received)[message];
        // Everything relative to the post, in ns of rank 0's clock.
        let flight_ns = self.time.across(submitted, received);
        let watched = (0..).zip(gaps).filter_map(|(rank, gaps)| Some((rank, gaps.as_ref()?)));
        let stolen = |(rank, gaps): (u32, &GapList)| {
            let at = |stamp: u64| match rank {
                0 => self.time.within(submitted, stamp),
                _ => self.time.across(submitted, stamp),
            };
            let is_known = gaps.known_until.is_none_or(|last| flight_ns <= at(last));
            is_known.then(|| (rank, gaps.within(&at, flight_ns)))
        };
        watched.filter_map(stolen).collect()
    }
}

/// The preemptions of a rank, in the order of time.
struct GapList {
    /// Start and end, in ticks of the rank's clock.
    gaps: Vec<(u64, u64)>,
    /// The end of the last preemption, where later ones were not kept.
    known_until: Option<u64>,
}

impl GapList {
    fn of(end: &Stamped) -> Option<Self> {
        let is_whole = end.watched?.count <= gaps_kept(end);
        let gaps: Vec<_> = end.column(Column::Gaps).chunks_exact(2).map(|gap| (gap[0], gap[1])).collect();
        let known_until = gaps.last().map(|(_, end)| *end).filter(|_| !is_whole);
        Some(Self { gaps, known_until })
    }

    /// How much of the time from 0 to `end_ns` the rank was preempted, in ns.
    fn within(&self, at: &impl Fn(u64) -> f64, end_ns: f64) -> u64 {
        let start = self.gaps.partition_point(|(_, end)| at(*end) <= 0.0);
        let inside = self.gaps[start..].iter().map(|(from, to)| (at(*from), at(*to)));
        let overlap: f64 = inside
            .take_while(|(from, _)| *from < end_ns)
            .map(|(from, to)| to.min(end_ns) - from.max(0.0))
            .sum();
        overlap.round() as u64
    }
}
