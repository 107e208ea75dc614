//! What the calls of all ranks come to.
//!
//! With s and e the stamps of a rank r before and after a call: own = e_r - s_r; slowest = max own;
//! skew = max s - min s; last_last = max e - max s, which no rank that came late spoils; first_last
//! = max e - min s, the time of the operation as a whole (Hunold and Carpen-Amarie 2016). t_min,
//! t_max and t_avg are taken over the ranks' means, as the OSU and the Intel MPI Benchmarks do.

use measure::record::{LatencyKind, Status, Timed};
use measure::samples::Samples;
use serde_json::{Value, json};

use super::stamps::CallStamps;
use crate::pattern::outcome::{KeptSamples, Merged, Outcome, Source};
use crate::point::PointSpec;

/// Puts the calls of all ranks together.
pub(crate) fn merge(spec: &PointSpec, outcomes: &[Outcome], told: Vec<Option<CallStamps>>) -> Merged {
    // It was not measured, or has failed: that stands.
    if outcomes.is_empty() {
        return Merged::of(outcomes);
    }
    let told: Vec<CallStamps> = told.into_iter().flatten().collect();
    let (Some(first), true) = (told.first(), told.len() == outcomes.len()) else {
        let error = "a rank has not told when its calls began and ended".to_owned();
        return Merged::without_numbers(Status::Failed { error });
    };
    if told.iter().any(|other| other.begun.len() != first.begun.len()) {
        let error = "the ranks have not made the same number of calls".to_owned();
        return Merged::without_numbers(Status::Failed { error });
    }
    let mut merged = Merged { own: Some(means(outcomes, &told)), ..Merged::of(outcomes) };
    if told.iter().all(|other| other.clock.shares_with(&first.clock)) || told.len() == 1 {
        for (kind, ns) in kinds(&told) {
            let samples = Samples::from_ns(ns);
            let Some(latency) = samples.latency(kind, &spec.share_above_ns) else { continue };
            let histogram = (!spec.keep_samples).then(|| samples.histogram());
            merged.kinds.push(Timed { latency, samples: None, histogram });
            if spec.keep_samples {
                let samples_ns = samples.raw().unwrap_or_default().to_vec();
                merged.samples.push(KeptSamples { of: Source::Kind(kind), samples_ns });
            }
        }
    } else {
        merged.unstable.push(
            "the ranks have several clocks, which cannot be compared to a call's length: only each rank's own time is known"
                .to_owned(),
        );
    }
    let late = late(&told);
    if late as f64 > LATE_SHARE_MAX * first.begun.len() as f64 {
        merged.unstable.push(format!(
            "some rank came late to {late} of {} calls, which then did not begin together",
            first.begun.len()
        ));
    }
    merged
}

/// Times of all calls, in ns, by kind: the headline first.
fn kinds(told: &[CallStamps]) -> [(LatencyKind, Vec<u64>); 4] {
    let [mut slowest, mut last_last, mut first_last, mut skew] = [(); 4].map(|()| Vec::new());
    let tick_hz = told.first().map_or(1e9, |first| first.tick_hz);
    let ns = |ticks: u64| (ticks as f64 * 1e9 / tick_hz).round() as u64;
    for call in 0..told.first().map_or(0, |first| first.begun.len()) {
        let begun = || told.iter().map(|rank| rank.begun[call]);
        let ended = || told.iter().map(|rank| rank.ended[call]);
        let first_begun = begun().min().unwrap_or(0);
        let last_begun = begun().max().unwrap_or(0);
        let last_ended = ended().max().unwrap_or(0);
        let own = begun().zip(ended()).map(|(begin, end)| end.saturating_sub(begin));
        slowest.push(ns(own.max().unwrap_or(0)));
        last_last.push(ns(last_ended.saturating_sub(last_begun)));
        first_last.push(ns(last_ended.saturating_sub(first_begun)));
        skew.push(ns(last_begun - first_begun));
    }
    [
        (LatencyKind::Slowest, slowest),
        (LatencyKind::LastLast, last_last),
        (LatencyKind::FirstLast, first_last),
        (LatencyKind::StartSkew, skew),
    ]
}

/// Calls that some rank came to late.
fn late(told: &[CallStamps]) -> usize {
    let mut late: Vec<u64> = told.iter().flat_map(|rank| rank.late.iter().copied()).collect();
    late.sort_unstable();
    late.dedup();
    late.len()
}

/// The least, the largest and the mean of the ranks' means.
fn means(outcomes: &[Outcome], told: &[CallStamps]) -> Value {
    let means: Vec<f64> =
        outcomes.iter().filter_map(|outcome| Some(outcome.latency.as_ref()?.mean_ns)).collect();
    let least = means.iter().copied().reduce(f64::min);
    let largest = means.iter().copied().reduce(f64::max);
    let mean = (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64);
    json!({ "t_min_ns": least, "t_max_ns": largest, "t_avg_ns": mean, "late": late(told) })
}

/// Above this share of calls that some rank came to late, they did not begin at the instants that
/// are said.
const LATE_SHARE_MAX: f64 = 0.05;

#[cfg(test)]
mod tests {
    use measure::clock::Clock;

    use super::*;
    use crate::rank_clock::RankClock;

    fn stamps(begun: &[u64], ended: &[u64], late: &[u64]) -> CallStamps {
        let clock = RankClock::new(Clock::monotonic(), None);
        CallStamps::new(&clock, begun.to_vec(), ended.to_vec(), late.to_vec())
    }

    #[test]
    fn calls_of_several_ranks_come_to_the_kinds_that_are_defined() {
        let told = [stamps(&[100, 1000], &[180, 1300], &[1]), stamps(&[130, 1050], &[150, 1200], &[1])];
        let found = kinds(&told);
        assert_eq!(found[0], (LatencyKind::Slowest, vec![80, 300]));
        assert_eq!(found[1], (LatencyKind::LastLast, vec![50, 250]));
        assert_eq!(found[2], (LatencyKind::FirstLast, vec![80, 300]));
        assert_eq!(found[3], (LatencyKind::StartSkew, vec![30, 50]));
        assert_eq!(late(&told), 1, "both were late to the same call");
    }
}
