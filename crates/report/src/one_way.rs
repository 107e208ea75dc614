//! What is known of messages that were timed one way, in the words that terminal and page share.

use measure::record::{Clocks, Gaps, Largest, LatencyKind, OneWay, Point};

use crate::unit;

/// How the stamps of the two ends were compared; the bound goes with every number of two clocks.
fn clocks(clocks: &Clocks) -> String {
    match clocks {
        Clocks::One => "one clock".to_owned(),
        Clocks::Two { offset_ns, bound_ns, drift_ppm: [least, largest], exchanges } => format!(
            "two clocks, +- {bound:.0} ns (rank 1 ahead by {offset_ns:.0} ns, its rate {least:+.3} to {largest:+.3} ppm, {} \
             exchanges)",
            unit::grouped(*exchanges),
            bound = bound_ns.ceil()
        ),
    }
}

/// The largest error of a latency of a point that comes from comparing two clocks, in ns; none where one clock took both stamps.
pub(crate) fn bound_ns(point: &Point, kind: LatencyKind) -> Option<f64> {
    match (point.one_way.as_ref()?.clocks, kind) {
        (Clocks::Two { bound_ns, .. }, LatencyKind::OneWay | LatencyKind::OneWaySend) => Some(bound_ns),
        _ => None,
    }
}

/// Everything but the latencies and the gaps, a sentence each without its end.
pub(crate) fn notes(one_way: &OneWay) -> Vec<String> {
    let mut notes = vec![clocks(&one_way.clocks)];
    notes.extend(one_way.largest.as_ref().map(largest));
    notes.extend(explained(one_way));
    notes.extend(
        one_way
            .completed_first_share
            .map(|share| format!("{:.2} % completed before they were received", share * 100.0)),
    );
    notes.extend(one_way.first.as_ref().map(|first| {
        format!(
            "the first {} apart: median {}, max {}",
            unit::grouped(first.count),
            unit::time(first.p50_ns as f64),
            unit::time(first.max_ns as f64)
        )
    }));
    if one_way.negative > 0 {
        let negative = unit::grouped(one_way.negative);
        notes.push(format!(
            "{negative} received before they were posted, within the bound: they count as 0 ns"
        ));
    }
    notes
}

/// The message that took longest, and what the ends did meanwhile.
fn largest(largest: &Largest) -> String {
    let time = |ns: u64| unit::time(ns as f64);
    let ran: Vec<String> = largest
        .gaps_ns
        .iter()
        .filter(|(_, ns)| **ns > 0)
        .map(|(rank, ns)| format!("rank {rank} did not run for {} of it", time(*ns)))
        .collect();
    let why = match (&ran[..], largest.gaps_ns.is_empty()) {
        ([], true) => "no end watched its own time, for both sleep".to_owned(),
        ([], false) => "no gap in the time of an end that polls explains it".to_owned(),
        (ran, _) => ran.join(", "),
    };
    format!("the largest, {}: {why}", time(largest.ns))
}

/// How many of the slow messages an end slept through, by threshold.
fn explained(one_way: &OneWay) -> Vec<String> {
    let said = |(threshold, count): (&String, &u64)| {
        let above = threshold.parse::<u64>().map_or_else(|_| threshold.clone(), |ns| unit::time(ns as f64));
        format!("above {above}: {} while an end did not run for half of the time", unit::grouped(*count))
    };
    // An end that sleeps watches nothing, so that none says nothing.
    let is_watched = !one_way.gaps.is_empty();
    one_way.above_explained.iter().filter(|(_, count)| is_watched || **count > 0).map(said).collect()
}

/// The gaps that an end saw in its own time.
pub(crate) fn gaps(gaps: &Gaps) -> String {
    let time = |ns: u64| unit::time(ns as f64);
    format!(
        "rank {}: {} gaps of {} or more in its time, {} together, the longest {}",
        gaps.rank,
        unit::grouped(gaps.count),
        time(gaps.threshold_ns),
        time(gaps.total_ns),
        time(gaps.longest_ns)
    )
}
