//! Sentences about one-way latencies, which the terminal and the report share.

use crate::quantity::share_bounds;
use crate::record::{Clocks, Gaps, Largest, OneWay, Point};
use crate::text;

/// How the stamps of the two ranks were compared; every number from two clocks has a bound.
fn clocks(clocks: &Clocks) -> String {
    match clocks {
        Clocks::One => "one clock".to_owned(),
        Clocks::Two { offset_ns, bound_ns, drift_ppm: [least, largest], exchanges } => format!(
            "two clocks, +- {bound:.0} ns (rank 1 ahead by {offset_ns:.0} ns, its rate {least:+.3} to {largest:+.3} ppm, {} \
             exchanges)",
            text::grouped(*exchanges),
            bound = bound_ns.ceil()
        ),
    }
}

/// Everything but the latencies and the preemptions: sentences without full stops.
pub fn notes(point: &Point) -> Vec<String> {
    let Some(one_way) = &point.one_way else { return Vec::new() };
    let mut notes = vec![clocks(&one_way.clocks)];
    notes.extend(shares(point));
    notes.extend(one_way.largest.as_ref().map(|message| largest(message, &one_way.gaps)));
    notes.extend(explained(one_way));
    notes.extend(
        one_way
            .completed_first_share
            .map(|share| format!("{:.2} % completed before they were received", share * 100.0)),
    );
    notes.extend(one_way.first.as_ref().map(|first| {
        format!(
            "warm-up, {} messages: median {}, max {}",
            text::grouped(first.count),
            text::time(first.p50_ns as f64),
            text::time(first.max_ns as f64)
        )
    }));
    notes.extend((one_way.negative > 0).then(|| negative(one_way)));
    notes
}

/// Messages that seem to arrive before they were posted.
fn negative(one_way: &OneWay) -> String {
    let count = text::grouped(one_way.negative);
    let why = match one_way.clocks {
        Clocks::One => "because the clock's readings on two CPUs differ slightly",
        Clocks::Two { .. } => "within the bound of the two clocks",
    };
    format!("{count} received before they were posted, {why}: they count as 0 ns")
}

/// The bounds of the shares above a threshold, of the kinds that compare two clocks.
fn shares(point: &Point) -> Vec<String> {
    let mut said = Vec::new();
    for latency in point.kinds.iter().map(|timed| &timed.latency) {
        for threshold in latency.share_above.keys() {
            let Some([least, largest]) = share_bounds(point, latency, threshold) else { continue };
            let kind = latency.kind.name();
            let above = above(threshold);
            said.push(match latency.share_above_bounds.contains_key(threshold) {
                true => {
                    format!("{kind} above {above}: {} to {}", text::percent(least), text::percent(largest))
                }
                false => format!("{kind} above {above}: the record has no bounds of that share"),
            });
        }
    }
    said
}

/// Prints a threshold.
fn above(threshold: &str) -> String {
    threshold.parse::<u64>().map_or_else(|_| threshold.to_owned(), |ns| text::time(ns as f64))
}

/// The largest latency, and the preemptions that explain it.
fn largest(largest: &Largest, gaps: &[Gaps]) -> String {
    let time = |ns: u64| text::time(ns as f64);
    let ran = largest.gaps_ns.iter().filter(|(_, ns)| **ns > 0);
    let ran = ran.map(|(rank, ns)| format!("rank {rank} was preempted for {} of it", time(*ns)));
    let unknown = gaps.iter().filter(|gaps| !largest.gaps_ns.contains_key(&gaps.rank));
    let unknown = unknown.filter_map(|gaps| {
        let kept = text::grouped(gaps.kept?);
        Some(format!(
            "it came after the first {kept} preemptions of rank {}, and later ones were not recorded",
            gaps.rank
        ))
    });
    let known: Vec<String> = ran.chain(unknown).collect();
    let why = match (&known[..], largest.gaps_ns.is_empty()) {
        ([], true) => "both ranks sleep, so preemptions were not recorded".to_owned(),
        ([], false) => "no preemption of a polling rank explains it".to_owned(),
        (known, _) => known.join(", "),
    };
    format!("the largest, {}: {why}", time(largest.ns))
}

/// How many of the slow messages a preemption explains, by threshold.
fn explained(one_way: &OneWay) -> Vec<String> {
    let at_least = if one_way.gaps.iter().any(|gaps| gaps.kept.is_some()) { "at least " } else { "" };
    let said = |(threshold, count): (&String, &u64)| {
        let above = above(threshold);
        let count = text::grouped(*count);
        format!("above {above}: {at_least}{count} while a rank was preempted for at least half of the time")
    };
    // A rank that sleeps records no preemptions, so a count of 0 would mean nothing.
    let is_watched = !one_way.gaps.is_empty();
    one_way.above_explained.iter().filter(|(_, count)| is_watched || **count > 0).map(said).collect()
}

/// The preemptions of a rank that polled.
pub fn gaps(gaps: &Gaps) -> String {
    let time = |ns: u64| text::time(ns as f64);
    let kept = gaps.kept.map(|kept| format!(" (the first {} kept)", text::grouped(kept)));
    format!(
        "rank {}: {} preemptions{} of {} or more, {} together, the longest {}",
        gaps.rank,
        text::grouped(gaps.count),
        kept.unwrap_or_default(),
        time(gaps.threshold_ns),
        time(gaps.total_ns),
        time(gaps.longest_ns)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn point(one_way: &OneWay) -> Point {
        let point = json!({
            "id": 0, "experiment": "one", "pattern": "one-way", "axes": {}, "status": "measured", "repetition": 0,
            "one_way": one_way, "wall_ns": 1,
        });
        serde_json::from_value(point).unwrap()
    }

    /// Rank 1 kept so many of its 12,345 preemptions; the largest message came after them.
    fn known(kept: Option<u64>) -> OneWay {
        let gaps = Gaps { rank: 1, threshold_ns: 2000, count: 12_345, kept, ..Gaps::default() };
        let largest = Largest { message: 7, ns: 53_100, gaps_ns: BTreeMap::from([(0, 0)]) };
        OneWay {
            clocks: Clocks::One,
            first: None,
            with_first: None,
            completed_first_share: None,
            negative: 0,
            gaps: vec![Gaps { rank: 0, threshold_ns: 2000, ..Gaps::default() }, gaps],
            largest: Some(largest),
            above_explained: BTreeMap::from([("10000".to_owned(), 17)]),
        }
    }

    #[test]
    fn gaps_that_were_not_kept_explain_nothing_and_are_said() {
        let one_way = known(Some(10_000));
        let notes = notes(&point(&one_way)).join("; ");
        let largest = "the largest, 53.10 us: it came after the first 10,000 preemptions of rank 1, and later ones were not \
                       recorded";
        assert!(notes.contains(largest), "{notes}");
        assert!(notes.contains("above 10.00 us: at least 17 while a rank"), "{notes}");
        let said = gaps(&one_way.gaps[1]);
        assert!(
            said.starts_with("rank 1: 12,345 preemptions (the first 10,000 kept) of 2.00 us or more"),
            "{said}"
        );
        let whole = known(None);
        let notes = super::notes(&point(&whole)).join("; ");
        assert!(notes.contains("the largest, 53.10 us: no preemption of a polling rank"), "{notes}");
        assert!(notes.contains("above 10.00 us: 17 while"), "{notes}");
        assert!(gaps(&whole.gaps[1]).starts_with("rank 1: 12,345 preemptions of 2.00 us or more"));
    }

    #[test]
    fn a_message_before_its_time_is_explained_by_the_clocks() {
        let said = |clocks| {
            let one_way = OneWay { negative: 1234, clocks, ..known(None) };
            notes(&point(&one_way)).pop().unwrap()
        };
        assert_eq!(
            said(Clocks::One),
            "1,234 received before they were posted, because the clock's readings on two CPUs differ slightly: they count as 0 ns"
        );
        let two = Clocks::Two { offset_ns: 0.0, bound_ns: 80.0, drift_ppm: [0.0, 0.1], exchanges: 100 };
        assert_eq!(
            said(two),
            "1,234 received before they were posted, within the bound of the two clocks: they count as 0 ns"
        );
    }
}
