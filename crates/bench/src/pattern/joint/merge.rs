//! Merges the stamps of all ranks into times.
//!
//! With s and e the stamps of a rank r before and after a call: own = e_r - s_r; slowest = max own,
//! which needs no comparison of clocks; skew = max s - min s; last_last = max e - max s, which does
//! not change when a rank is late; first_last = max e - min s, the time of the operation as a whole
//! (Hunold and Carpen-Amarie 2016). t_min, t_max and t_avg are taken over the ranks' means, as the
//! OSU and the Intel MPI Benchmarks do.

use measure::record::{LatencyKind, Status, Timed};
use measure::samples::Samples;
use measure::stats;
use serde_json::{Value, json};

use super::overlap;
use super::stamps::CallStamps;
use super::times::{self, Times};
use crate::endpoint::collectives::{CALLS, WRITES};
use crate::pattern::outcome::{KeptSamples, Merged, Outcome, Source};
use crate::point::PointSpec;

/// Merges the calls of all ranks.
pub(crate) fn merge(spec: &PointSpec, outcomes: &[Outcome], told: Vec<Option<CallStamps>>) -> Merged {
    // The point was not measured or failed: its status stays.
    if outcomes.is_empty() {
        return Merged::of(outcomes);
    }
    let told: Vec<CallStamps> = told.into_iter().flatten().collect();
    let (Some(first), true) = (told.first(), told.len() == outcomes.len()) else {
        let error = "a rank has not reported when its calls started and ended".to_owned();
        return Merged::without_numbers(Status::Failed { error });
    };
    if told.iter().any(|other| other.begun.len() != first.begun.len()) {
        let error = "the ranks have not made the same number of calls".to_owned();
        return Merged::without_numbers(Status::Failed { error });
    }
    // The point was cut before the first call.
    if first.begun.is_empty() {
        return Merged::of(outcomes);
    }
    let mut merged = Merged { own: Some(means(outcomes, &told)), ..Merged::of(outcomes) };
    if let Err(reason) = keep(spec, &told, &mut merged) {
        merged.unstable.push(reason);
    }
    let late = late(&told);
    if late as f64 > LATE_SHARE_MAX * first.begun.len() as f64 {
        merged.unstable.push(format!(
            "at least one rank was late for {late} of {} calls, so that the ranks did not start these together",
            first.begun.len()
        ));
    }
    merged
}

/// Keeps the times of all calls by kind, the main latency first, with the bound of times between
/// two ranks.
///
/// # Errors
/// Why some of the times are unknown.
fn keep(spec: &PointSpec, told: &[CallStamps], merged: &mut Merged) -> Result<(), String> {
    let own = told.iter().enumerate().map(|(rank, stamps)| times::own(rank, stamps));
    let slowest = slowest(&own.collect::<Result<Vec<_>, _>>()?);
    keep_kind(spec, LatencyKind::Slowest, slowest, 0.0, merged);
    let times = Times::of(told).map_err(|reason| format!("{reason}; times between ranks are unknown"))?;
    let bound_ns = times.bound_ns;
    let between = between(&times.calls);
    for (kind, ns) in between.kinds {
        let p50_ns = keep_kind(spec, kind, ns, bound_ns, merged);
        let p50_ns = p50_ns.filter(|_| kind == LatencyKind::LastLast);
        if let Some(p50_ns) = p50_ns.filter(|p50_ns| bound_ns > *p50_ns * BOUND_SHARE_MAX) {
            merged.unstable.push(format!(
                "times between ranks have an error of up to {:.3} us, because their clocks differ, but the operation takes only \
                 {:.3} us",
                bound_ns / 1e3,
                p50_ns / 1e3
            ));
        }
    }
    if let Some(Value::Object(own)) = merged.own.as_mut().filter(|_| bound_ns > 0.0) {
        own.insert("clock_bound_ns".to_owned(), json!(bound_ns));
        own.insert("reversed".to_owned(), json!(between.reversed));
    }
    Ok(())
}

/// Keeps the times of all calls of a kind, each with an error of up to `bound_ns`; returns their
/// median.
fn keep_kind(
    spec: &PointSpec,
    kind: LatencyKind,
    ns: Vec<u64>,
    bound_ns: f64,
    merged: &mut Merged,
) -> Option<f64> {
    let thresholds = &spec.share_above_ns;
    let latency = match bound_ns {
        0.0 => stats::latency(kind, &ns, thresholds),
        _ => stats::latency_within(kind, &ns, thresholds, bound_ns),
    }?;
    if spec.keep_samples {
        merged.samples.push(KeptSamples { of: Source::Kind(kind), samples_ns: ns.clone() });
    }
    let histogram = (!spec.keep_samples).then(|| Samples::from_ns(ns).histogram());
    let p50_ns = latency.p50_ns as f64;
    merged.kinds.push(Timed { latency, samples: None, histogram });
    Some(p50_ns)
}

/// The own time of the slowest rank, for each call.
fn slowest(own: &[Vec<f64>]) -> Vec<u64> {
    let of_call = |call: usize| whole(largest(&mut own.iter().map(|calls| calls[call])));
    (0..own.first().map_or(0, Vec::len)).map(of_call).collect()
}

/// Times between ranks, which need stamps by one clock.
struct Between {
    /// Times of all calls, in ns, by kind.
    kinds: [(LatencyKind, Vec<u64>); 3],
    /// Calls that the last rank seems to have ended before the last rank started.
    reversed: usize,
}

fn between(ranks: &[Vec<[f64; 2]>]) -> Between {
    let [mut last_last, mut first_last, mut skew] = [(); 3].map(|()| Vec::new());
    let mut reversed = 0;
    for call in 0..ranks.first().map_or(0, Vec::len) {
        let begun = || ranks.iter().map(|calls| calls[call][0]);
        let first_begun = begun().fold(f64::INFINITY, f64::min);
        let last_begun = largest(&mut begun());
        let last_ended = largest(&mut ranks.iter().map(|calls| calls[call][1]));
        reversed += usize::from(last_ended < last_begun);
        last_last.push(whole(last_ended - last_begun));
        first_last.push(whole(last_ended - first_begun));
        skew.push(whole(last_begun - first_begun));
    }
    let kinds = [
        (LatencyKind::LastLast, last_last),
        (LatencyKind::FirstLast, first_last),
        (LatencyKind::StartSkew, skew),
    ];
    Between { kinds, reversed }
}

fn largest(times: &mut dyn Iterator<Item = f64>) -> f64 {
    times.fold(f64::NEG_INFINITY, f64::max)
}

/// Rounds a time. Clocks may differ by more than a call takes: a negative time counts as 0.
fn whole(ns: f64) -> u64 {
    ns.round().max(0.0) as u64
}

/// The number of calls for which at least one rank was late.
fn late(told: &[CallStamps]) -> usize {
    let mut late: Vec<u64> = told.iter().flat_map(|rank| rank.late.iter().copied()).collect();
    late.sort_unstable();
    late.dedup();
    late.len()
}

/// The smallest, the largest and the mean of the ranks' means, and the overlap with a computation.
fn means(outcomes: &[Outcome], told: &[CallStamps]) -> Value {
    let means: Vec<f64> =
        outcomes.iter().filter_map(|outcome| Some(outcome.latency.as_ref()?.mean_ns)).collect();
    let least = means.iter().copied().reduce(f64::min);
    let largest = means.iter().copied().reduce(f64::max);
    let mean = (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64);
    let mut own = json!({ "t_min_ns": least, "t_max_ns": largest, "t_avg_ns": mean, "late": late(told) });
    let overlap = overlap::of(&told.iter().map(|rank| rank.overlap).collect::<Vec<_>>());
    if let Some(own) = own.as_object_mut() {
        own.extend(overlap);
    }
    if let Some(writes) = writes(outcomes) {
        own["writes"] = writes.into();
    }
    own
}

/// RDMA Writes of all ranks per call, where they were counted.
fn writes(outcomes: &[Outcome]) -> Option<f64> {
    let of_call = |outcome: &Outcome| {
        let [calls, writes] = [CALLS, WRITES].map(|name| outcome.counters.get(name).copied());
        Some(writes? as f64 / calls? as f64)
    };
    outcomes.iter().map(of_call).sum()
}

/// Above this share of late calls, the calls did not start as the plan says.
const LATE_SHARE_MAX: f64 = 0.05;
/// Above this share of the operation's time, the bound is too large for the time to be useful.
const BOUND_SHARE_MAX: f64 = 0.5;

#[cfg(test)]
mod tests {
    use measure::clock::Clock;

    use super::*;
    use crate::rank_clock::RankClock;

    fn stamps(begun: &[u64], ended: &[u64], late: &[u64]) -> CallStamps {
        let clock = RankClock::new(Clock::monotonic(), None);
        CallStamps::new(&clock, [begun.to_vec(), ended.to_vec()], late.to_vec(), Vec::new())
    }

    #[test]
    fn calls_of_several_ranks_come_to_the_kinds_that_are_defined() {
        let told = [stamps(&[100, 1000], &[180, 1300], &[1]), stamps(&[130, 1050], &[150, 1200], &[1])];
        let times = Times::of(&told).unwrap();
        assert_eq!(times.bound_ns, 0.0);
        assert_eq!(slowest(&own(&told)), [80, 300]);
        let found = between(&times.calls);
        assert_eq!(found.kinds[0], (LatencyKind::LastLast, vec![50, 250]));
        assert_eq!(found.kinds[1], (LatencyKind::FirstLast, vec![80, 300]));
        assert_eq!(found.kinds[2], (LatencyKind::StartSkew, vec![30, 50]));
        assert_eq!(found.reversed, 0);
        assert_eq!(late(&told), 1, "both were late to the same call");
    }

    fn own(told: &[CallStamps]) -> Vec<Vec<f64>> {
        told.iter().enumerate().map(|(rank, stamps)| times::own(rank, stamps).unwrap()).collect()
    }

    #[test]
    fn clocks_that_nothing_compares_give_no_times_between_ranks() {
        let wrong = RankClock::new(Clock::monotonic(), Some("offset=5ms".parse().unwrap()));
        let other = CallStamps::new(&wrong, [vec![130], vec![250]], Vec::new(), Vec::new());
        let told = [stamps(&[100], &[180], &[]), other];
        let reason = Times::of(&told).unwrap_err();
        assert!(
            reason.starts_with("the clocks of rank 0 and rank 1 were not compared: no messages"),
            "{reason}"
        );
        // Each rank's own time needs no other clock.
        assert_eq!(slowest(&own(&told)), [120]);
    }

    #[test]
    fn a_rate_that_no_clock_has_gives_no_times() {
        for tick_hz in [0.0, -1e9, f64::NAN, f64::INFINITY] {
            let mut told = stamps(&[100], &[180], &[]);
            told.nominal.tick_hz = tick_hz;
            let reason = times::own(3, &told).unwrap_err();
            assert!(reason.starts_with("the clock of rank 3 is said to run at"), "{reason}");
        }
    }

    #[test]
    fn calls_that_seem_to_end_before_they_begin_are_counted() {
        let found = between(&[vec![[0.0, 50.0]], vec![[100.0, 90.0]]]);
        assert_eq!((found.reversed, &found.kinds[0].1), (1, &vec![0]));
    }
}
