//! The rows: every number of a point.

use super::row::{At, Interval, Quantity, Reading};
use super::statistic::{OF_MESSAGES, STATISTICS};
use crate::record::{self, Cpu, End, Latency, LatencyKind, Point, Throughput};
use crate::stats::shape;
use crate::units::Dimension::{self, Bandwidth, MessageRate, Number, Share, Time};

/// Path of what a call costs. It has no whole nanoseconds, as latencies have.
pub const COST: &str = "cost.ns";

macro_rules! quantities {
    ($($row:expr;)+) => {
        /// Every row, in the order in which they are offered. A path belongs to the first that it fits.
        pub static ALL: &[Quantity] = &[$($row),+];
    };
}

quantities! {
    latency("latency.*", |p, _| p.latency.as_ref(), "{}").offered();
    latency("first.*", |p, _| p.one_way.as_ref()?.first.as_ref(), "{} of the first messages").offered();
    latency("with_first.*", |p, _| p.one_way.as_ref()?.with_first.as_ref(), "{}, the first messages too").offered();
    latency("start_skew.*", start_skew, "{}");
    latency("KIND.*", of_kind, "{}").offered();
    latency("ends.N.latency.*", |p, at| end(p, at)?.latency.as_ref(), "{} of an end");

    rate("throughput.bytes_per_s", Bandwidth, |p, _| bytes(p.throughput.as_ref()), "throughput of {}").offered();
    rate("throughput.messages_per_s", MessageRate, |p, _| messages(p.throughput.as_ref()), "message rate of {}").offered();
    number("throughput_total.bytes_per_s", Bandwidth, |p, _| bytes(p.throughput_total.as_ref()),
        "throughput, both directions together");
    number("throughput_total.messages_per_s", MessageRate, |p, _| messages(p.throughput_total.as_ref()),
        "message rate, both directions together");
    number("ends.N.throughput.bytes_per_s", Bandwidth, |p, at| bytes(end(p, at)?.throughput.as_ref()), "throughput of an end");
    number("ends.N.throughput.messages_per_s", MessageRate, |p, at| messages(end(p, at)?.throughput.as_ref()),
        "message rate of an end");

    number("cpu.N.wall_ns", Time, |p, at| Some(cpu(p, at)?.wall_ns as f64), "time in which a rank measured");
    number("cpu.N.user_ns", Time, |p, at| Some(cpu(p, at)?.user_ns as f64), "CPU time of a rank in user space").offered();
    number("cpu.N.system_ns", Time, |p, at| Some(cpu(p, at)?.system_ns as f64), "CPU time of a rank in the kernel");
    number("cpu.N.voluntary_switches", Number, |p, at| Some(cpu(p, at)?.voluntary_switches as f64), "times that a rank slept");
    number("cpu.N.involuntary_switches", Number, |p, at| Some(cpu(p, at)?.involuntary_switches as f64),
        "times that a rank was taken off its CPU");
    number("cpu.N.messages", Number, |p, at| Some(cpu(p, at)?.messages? as f64), "messages of a rank");

    number("completed_first_share", Share, |p, _| p.one_way.as_ref()?.completed_first_share,
        "messages that completed before they were received").with_interval(of_completions).offered();
    number(COST, Time, |p, _| Some(p.cost.as_ref()?.ns), "cost of a call").with_interval(of_cost).offered();
    number("cpu_ns_per_byte", Number, |p, _| cpu_ns_per_byte(p), "CPU time of both ends per byte, in ns").offered();
    number("cpu_ns_per_message", Number, |p, _| cpu_ns_per_message(p), "CPU time of both ends per message, in ns").offered();
    number("half_mean_ns", Time, |p, _| half_mean_ns(p), "mean of half a round trip").offered();
    per_message().offered();

    number("pipeline.missed_share", Share, |p, _| missed_share(p), "steps that were missed").with_interval(of_steps).offered();
    number("pipeline.achieved_hz", Number, |p, _| Some(p.pipeline.as_ref()?.achieved_hz), "samples generated in a second");
    number("pipeline.alone_share", Share, |p, _| alone_share(p), "steps that the timer misses alone").with_interval(of_timer);
    number("pipeline.busy_share", Share, |p, _| busy_share(p), "steps that were missed at work, and not waiting")
        .with_interval(of_steps);
    number("pipeline.lost_share", Share, |p, _| lost_share(p), "steps whose samples were lost").with_interval(of_steps);

    number("transactions_per_s", Number, |p, _| transactions_per_s(p), "transactions in a second").own().offered();
    number("wall_ns", Time, |p, _| Some(p.wall_ns as f64), "wall time of the point").offered();
    number("fairness.jain", Number, |p, _| Some(p.fairness?.jain), "Jain's index of fairness");
    number("fairness.least_share", Share, |p, _| Some(p.fairness?.least_share), "least share, relative to the largest");
    number("calibration.before_ns", Time, |p, _| Some(p.calibration.as_ref()?.before_ns), "cross-core latency before the point");
    number("calibration.after_ns", Time, |p, _| Some(p.calibration.as_ref()?.after_ns), "cross-core latency after the point");
    number("counters.*", Number, |p, at| Some(*p.counters.get(at.name)? as f64), "counter {}");
}

/// How a latency is found in a point.
pub type OfLatency = for<'a> fn(&'a Point, At<'_>) -> Option<&'a Latency>;
/// How a number is found in a point.
pub type OfNumber = fn(&Point, At<'_>) -> Option<f64>;

/// The row of a number without an interval within one run.
pub const fn number(path: &'static str, unit: Dimension, of: OfNumber, help: &'static str) -> Quantity {
    let reading = Reading::Number { unit, of, interval: |_, _| Interval { ends: None, samples: None } };
    Quantity { path, reading, help, is_offered: false, is_own: false }
}

const fn rate(path: &'static str, unit: Dimension, of: OfNumber, help: &'static str) -> Quantity {
    number(path, unit, of, help).with_interval(of_rounds)
}

/// The row of a latency, with all of its statistics.
pub const fn latency(path: &'static str, of: OfLatency, help: &'static str) -> Quantity {
    let reading = Reading::Latency { of, messages: |_| 1.0, statistics: STATISTICS };
    Quantity { path, reading, help, is_offered: false, is_own: false }
}

/// The latency of a round of one to n, divided by n (H14 of the evaluations).
const fn per_message() -> Quantity {
    let reading = Reading::Latency { of: of_round, messages: peers, statistics: OF_MESSAGES };
    Quantity { path: "per_message.*", reading, help: "{} divided by n", is_offered: false, is_own: false }
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

    /// The same, offered where a path resembles no other.
    #[must_use]
    pub const fn offered(self) -> Self {
        Self { is_offered: true, ..self }
    }

    /// The same, of those patterns alone that list it.
    #[must_use]
    pub const fn own(self) -> Self {
        Self { is_own: true, ..self }
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

/// The latencies of a point by their kind: each that was timed, and the headline, which may be one of them.
pub fn kinds(point: &Point) -> impl Iterator<Item = &Latency> {
    point.kinds.iter().map(|timed| &timed.latency).chain(&point.latency)
}

fn of_kind<'a>(point: &'a Point, at: At<'_>) -> Option<&'a Latency> {
    kinds(point).find(|latency| latency.kind.name() == at.name)
}

fn start_skew<'a>(point: &'a Point, _: At<'_>) -> Option<&'a Latency> {
    point.ends.iter().find_map(|end| end.start_skew.as_ref())
}

fn of_round<'a>(point: &'a Point, _: At<'_>) -> Option<&'a Latency> {
    point.axes.get("peers").and(point.latency.as_ref())
}

fn peers(point: &Point) -> f64 {
    point.axes.get("peers").and_then(serde_json::Value::as_f64).unwrap_or(1.0)
}

/// The interval of a throughput that is made of the median of a round of one to n (H15 of the evaluations).
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
    Interval { samples: count, ..of_share(share, count.unwrap_or_default()) }
}

fn of_steps(point: &Point, share: f64) -> Interval {
    record::steps(&point.counters).map(|[steps, _]| of_share(share, steps)).unwrap_or_default()
}

fn of_timer(point: &Point, share: f64) -> Interval {
    point.pipeline.as_ref().map(|found| of_share(share, found.timer.steps)).unwrap_or_default()
}

fn of_share(share: f64, count: u64) -> Interval {
    let estimate = shape::share(share, count);
    Interval { ends: Some([estimate.low, estimate.high]), samples: Some(count) }
}

/// The mean of half a round trip, by whatever program measured the point, in ns.
fn half_mean_ns(point: &Point) -> Option<f64> {
    if let Some(reported) = &point.reported {
        return reported.mean_ns;
    }
    let latency = point.latency.as_ref().filter(|latency| latency.kind == LatencyKind::RttHalf)?;
    Some(latency.mean_ns)
}

/// Transactions in a second, each a message forth and one back: the inverse of the mean time of one. Where messages were
/// lost, and the others waited for what was asked for again: those that nothing marred in the time of all.
fn transactions_per_s(point: &Point) -> Option<f64> {
    if let Some(reported) = &point.reported {
        return Some(1e9 / (2.0 * reported.mean_ns?)).filter(|rate| rate.is_finite());
    }
    let latency = point.latency.as_ref()?;
    if lost(point) > 0 {
        let wall_ns = point.ends.first()?.cpu?.wall_ns;
        return Some(latency.count as f64 * 1e9 / wall_ns as f64).filter(|rate| rate.is_finite());
    }
    let halves = match latency.kind {
        LatencyKind::RttHalf => 2.0,
        LatencyKind::Rtt => 1.0,
        _ => return None,
    };
    Some(1e9 / (halves * latency.mean_ns)).filter(|rate| rate.is_finite())
}

/// The time of CPUs that a message of a point took at both ends, in ns: those of the warm-up and lost ones are messages,
/// too. `None` where an end did not count it.
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

/// Messages of a point that arrived, those of the warm-up too. `None` where nothing was measured.
pub fn arrived(point: &Point) -> Option<u64> {
    let first = point.one_way.as_ref().and_then(|one_way| one_way.first.as_ref());
    Some(point.latency.as_ref()?.count + first.map_or(0, |first| first.count))
}

/// Messages of a point that were lost.
pub fn lost(point: &Point) -> u64 {
    point.counters.get("messages_lost").copied().unwrap_or(0)
}

/// Messages that were posted, those of the warm-up too.
pub fn posted(point: &Point) -> Option<u64> {
    Some(arrived(point)? + lost(point)).filter(|messages| *messages > 0)
}

/// The share of a point's steps that some of them are.
fn share_of_steps(point: &Point, of: impl Fn(u64) -> Option<u64>) -> Option<f64> {
    let [steps, missed] = record::steps(&point.counters)?;
    Some(of(missed)? as f64 / steps.max(1) as f64)
}

fn missed_share(point: &Point) -> Option<f64> {
    share_of_steps(point, Some)
}

fn alone_share(point: &Point) -> Option<f64> {
    let timer = &point.pipeline.as_ref()?.timer;
    Some(timer.missed as f64 / timer.steps.max(1) as f64)
}

/// Steps that were missed while the generator had more to do than to wait: with values, its node and its sink.
fn busy_share(point: &Point) -> Option<f64> {
    share_of_steps(point, |missed| Some(missed.saturating_sub(point.pipeline.as_ref()?.missed_waiting)))
}

fn lost_share(point: &Point) -> Option<f64> {
    share_of_steps(point, |_| point.counters.get("messages_lost").copied())
}
