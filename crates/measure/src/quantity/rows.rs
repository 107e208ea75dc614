//! The rows of all patterns: every number of a point.

use super::row::{At, Interval, OfCounted, OfNames, Quantity, Reading};
use super::statistic::{OF_MESSAGES, STATISTICS};
use crate::record::{Cpu, End, Latency, LatencyKind, Point, Status, Throughput};
use crate::units::Dimension::{self, Bandwidth, MessageRate, Number, Share, Time};

/// Path of the cost of a call, which is not a whole number of nanoseconds.
pub const COST: &str = "cost.ns";

macro_rules! quantities {
    ($($row:expr;)+) => {
        /// Every row, in the order in which hints offer them. A path belongs to the first row that
        /// it fits.
        pub static ALL: &[Quantity] = &[$($row),+];
    };
}

quantities! {
    latency("latency.*", |p, _| p.latency.as_ref(), "{}").offered();
    latency("first.*", |p, _| p.one_way.as_ref()?.first.as_ref(), "{} of the first messages").offered();
    latency("with_first.*", |p, _| p.one_way.as_ref()?.with_first.as_ref(), "{}, the first messages too").offered();
    latency("KIND.*", of_kind, "{}").offered();
    latency("ends.N.latency.*", |p, at| end(p, at)?.latency.as_ref(), "{} of a rank");

    rate("throughput.bytes_per_s", Bandwidth, |p, _| bytes(p.throughput.as_ref()), "throughput of {}").offered();
    rate("throughput.messages_per_s", MessageRate, |p, _| messages(p.throughput.as_ref()), "message rate of {}").offered();
    number("throughput_total.bytes_per_s", Bandwidth, |p, _| bytes(p.throughput_total.as_ref()),
        "throughput, both directions together");
    number("throughput_total.messages_per_s", MessageRate, |p, _| messages(p.throughput_total.as_ref()),
        "message rate, both directions together");
    number("ends.N.throughput.bytes_per_s", Bandwidth, |p, at| bytes(end(p, at)?.throughput.as_ref()), "throughput of a rank");
    number("ends.N.throughput.messages_per_s", MessageRate, |p, at| messages(end(p, at)?.throughput.as_ref()),
        "message rate of a rank");

    number("cpu.N.wall_ns", Time, |p, at| Some(cpu(p, at)?.wall_ns as f64), "time for which a rank measured");
    number("cpu.N.user_ns", Time, |p, at| Some(cpu(p, at)?.user_ns as f64), "CPU time of a rank in user space").offered();
    number("cpu.N.system_ns", Time, |p, at| Some(cpu(p, at)?.system_ns as f64), "CPU time of a rank in the kernel");
    number("cpu.N.voluntary_switches", Number, |p, at| Some(cpu(p, at)?.voluntary_switches as f64), "times that a rank slept");
    number("cpu.N.involuntary_switches", Number, |p, at| Some(cpu(p, at)?.involuntary_switches as f64),
        "times that a rank was preempted");
    number("cpu.N.messages", Number, |p, at| Some(cpu(p, at)?.messages? as f64), "messages of a rank");

    number("completed_first_share", Share, |p, _| p.one_way.as_ref()?.completed_first_share,
        "messages that completed before they were received").with_interval(of_completions).offered();
    number(COST, Time, |p, _| Some(p.cost.as_ref()?.ns), "cost of a call").with_interval(of_cost).offered();
    number("cpu_ns_per_byte", Number, |p, _| cpu_ns_per_byte(p), "CPU time of both ranks per byte, in ns").offered();
    number("cpu_ns_per_message", Number, |p, _| cpu_ns_per_message(p), "CPU time of both ranks per message, in ns").offered();
    number("half_mean_ns", Time, |p, _| half_mean_ns(p), "mean of half a round trip").offered();
    number("messages_lost", Number, |p, _| known_lost(p), "messages that were lost").with_interval(exact).count().offered();
    number("wall_ns", Time, |p, _| Some(p.wall_ns as f64), "wall time of the point").offered();
    number("fairness.jain", Number, |p, _| Some(p.fairness?.jain), "Jain's index of fairness");
    number("fairness.least_share", Share, |p, _| Some(p.fairness?.least_share), "smallest share, relative to the largest");
    number("calibration.before_ns", Time, |p, _| Some(p.calibration.as_ref()?.before_ns),
        "core-to-core latency before the point");
    number("calibration.after_ns", Time, |p, _| Some(p.calibration.as_ref()?.after_ns),
        "core-to-core latency after the point");
    number("counters.*", Number, |p, at| Some(*p.counters.get(at.name)? as f64), "counter {}")
        .named(|p| p.counters.keys().cloned().collect())
        .count();
}

/// A function that finds a latency in a point.
pub type OfLatency = for<'a> fn(&'a Point, At<'_>) -> Option<&'a Latency>;
/// A function that finds a number in a point.
pub type OfNumber = fn(&Point, At<'_>) -> Option<f64>;

/// The row of a number without an interval within one run.
pub const fn number(path: &'static str, unit: Dimension, of: OfNumber, help: &'static str) -> Quantity {
    let reading = Reading::Number { unit, of, interval: |_, _| Interval { ends: None, samples: None } };
    Quantity { path, reading, help, is_offered: false, counted: None, is_count: false, names: None }
}

const fn rate(path: &'static str, unit: Dimension, of: OfNumber, help: &'static str) -> Quantity {
    number(path, unit, of, help).with_interval(of_rounds)
}

/// The row of a latency, with all of its statistics.
pub const fn latency(path: &'static str, of: OfLatency, help: &'static str) -> Quantity {
    let reading = Reading::Latency { of, messages: |_| 1.0, statistics: STATISTICS };
    Quantity { path, reading, help, is_offered: false, counted: None, is_count: false, names: None }
}

impl Quantity {
    /// The same with an interval within one run.
    #[must_use]
    pub const fn with_interval(self, interval: fn(&Point, f64) -> Interval) -> Self {
        match self.reading {
            Reading::Number { unit, of, .. } => {
                Self { reading: Reading::Number { unit, of, interval }, ..self }
            }
            Reading::Latency { .. } => self,
        }
    }

    /// The same, in a unit that each point says.
    #[must_use]
    pub const fn counted_in(self, counted: OfCounted) -> Self {
        Self { counted: Some(counted), ..self }
    }

    /// The same, as a count of what happened.
    #[must_use]
    pub const fn count(self) -> Self {
        Self { is_count: true, ..self }
    }

    /// The same, with the names that a point has in the place of a last `*`.
    #[must_use]
    pub const fn named(self, names: OfNames) -> Self {
        Self { names: Some(names), ..self }
    }

    /// The same, offered by hints when a wrong path resembles no other.
    #[must_use]
    pub const fn offered(self) -> Self {
        Self { is_offered: true, ..self }
    }

    /// The same per message, where a latency is that of several messages: times are divided by
    /// their number. A spread cannot be divided so.
    #[must_use]
    pub const fn per_message(self, messages: fn(&Point) -> f64) -> Self {
        match self.reading {
            Reading::Latency { of, .. } => {
                Self { reading: Reading::Latency { of, messages, statistics: OF_MESSAGES }, ..self }
            }
            Reading::Number { .. } => self,
        }
    }
}

fn bytes(throughput: Option<&Throughput>) -> Option<f64> {
    Some(throughput?.bytes_per_s)
}

fn messages(throughput: Option<&Throughput>) -> Option<f64> {
    Some(throughput?.messages_per_s)
}

fn end<'a>(point: &'a Point, at: At<'_>) -> Option<&'a End> {
    point.ends.get(at.rank as usize)
}

fn cpu(point: &Point, at: At<'_>) -> Option<Cpu> {
    point.ends.iter().find(|end| end.rank == at.rank)?.cpu
}

/// The latencies of a point by their kind: all that were timed, and the main latency, which may be
/// one of them.
pub fn kinds(point: &Point) -> impl Iterator<Item = &Latency> {
    point.kinds.iter().map(|timed| &timed.latency).chain(&point.latency)
}

fn of_kind<'a>(point: &'a Point, at: At<'_>) -> Option<&'a Latency> {
    kinds(point).find(|latency| latency.kind.name() == at.name)
}

/// The interval of a throughput that is computed from the median of a round of `fan-out`.
fn of_rounds(point: &Point, value: f64) -> Interval {
    let is_round = |latency: &&Latency| matches!(latency.kind, LatencyKind::Fan | LatencyKind::FanHalf);
    let Some(latency) = point.latency.as_ref().filter(is_round).filter(|latency| latency.p50_ns > 0) else {
        return Interval::default();
    };
    let of = |ns: u64| value * latency.p50_ns as f64 / ns as f64;
    let ends = latency.p50_ci95_ns.map(|[low, high]| [of(high), of(low)]);
    Interval { ends, samples: Some(latency.count) }
}

fn of_cost(point: &Point, _: f64) -> Interval {
    let ends = point.cost.as_ref().and_then(|cost| cost.ci95_ns);
    Interval { ends, samples: point.latency.as_ref().map(|batches| batches.count) }
}

fn of_completions(point: &Point, share: f64) -> Interval {
    let completions = kinds(point).find(|latency| latency.kind == LatencyKind::Completion);
    let count = completions.or(point.latency.as_ref()).map(|latency| latency.count);
    Interval { samples: count, ..Interval::of_share(share, count.unwrap_or_default()) }
}

/// The mean of half a round trip, measured by rdmascope or another tool, in ns.
fn half_mean_ns(point: &Point) -> Option<f64> {
    if let Some(reported) = &point.reported {
        return reported.mean_ns;
    }
    let latency = point.latency.as_ref().filter(|latency| latency.kind == LatencyKind::RttHalf)?;
    Some(latency.mean_ns)
}

/// The CPU time of both ranks per message, in ns. Messages of the warm-up and lost messages count.
/// `None` where a rank did not count it.
pub fn cpu_ns_per_message(point: &Point) -> Option<f64> {
    let ends = point.ends.iter().map(|end| end.cpu.map(|cpu| cpu.user_ns + cpu.system_ns));
    let spent_ns = ends.collect::<Option<Vec<u64>>>().filter(|ends| ends.len() == 2)?;
    let counted = point.ends.iter().filter_map(|end| end.cpu?.messages).max();
    let messages = counted.or_else(|| posted(point))?;
    Some(spent_ns.iter().sum::<u64>() as f64 / messages as f64)
}

fn cpu_ns_per_byte(point: &Point) -> Option<f64> {
    let size = point.axes.get("size_bytes")?.as_f64().filter(|size| *size > 0.0)?;
    Some(cpu_ns_per_message(point)? / size)
}

/// Messages of a point that arrived, including the warm-up. `None` where nothing was measured.
pub fn arrived(point: &Point) -> Option<u64> {
    let first = point.one_way.as_ref().and_then(|one_way| one_way.first.as_ref());
    Some(point.latency.as_ref()?.count + first.map_or(0, |first| first.count))
}

/// Messages of a point that were lost.
pub fn lost(point: &Point) -> u64 {
    point.counters.get("messages_lost").copied().unwrap_or(0)
}

/// Messages of a point that were lost; `None` where they were not counted and could be lost. A
/// reliable connection that loses a message breaks, so that its point fails (IBTA vol. 1, 9.7.5).
fn known_lost(point: &Point) -> Option<f64> {
    let timed = point.latency.as_ref().map(|latency| latency.count);
    let is_whole = || timed.is_some() && timed == point.iterations;
    let is_reliable = || point.axes.get("service").is_some_and(|service| service == "RC");
    let counted = point.counters.get("messages_lost").copied();
    let none = || (point.status == Status::Measured && (is_reliable() || is_whole())).then_some(0);
    Some(counted.or_else(none)? as f64)
}

/// The interval of a number that was counted.
fn exact(_: &Point, count: f64) -> Interval {
    Interval { ends: Some([count; 2]), samples: None }
}

/// Messages that were posted, including the warm-up.
pub fn posted(point: &Point) -> Option<u64> {
    Some(arrived(point)? + lost(point)).filter(|messages| *messages > 0)
}
