use std::collections::BTreeMap;

use measure::clock::{ClockKind, Domain, Nominal, Skew};
use measure::record::{Clocks, LatencyKind, OneWay};
use measure::samples::Stamps;

use super::merge::merge;
use super::*;
use crate::Error;
use crate::axis;
use crate::pattern::Watched;
use crate::pattern::outcome::Source;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::{Pattern, PointSpec};

const NONE: u64 = Stamps::NONE;
/// A tick is half a nanosecond.
const HZ: f64 = 2e9;

fn spec(iterations: u64, warmup: u64, burst: Option<u32>) -> PointSpec {
    let settings = Settings { iterations: Some(iterations), warmup: Some(warmup), ..Settings::default() };
    let settings = settings.axis(axis::BURST.value(burst));
    let plan = Plan::new("one-way", "One way").experiment("one", Pattern::ONE_WAY, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0)
}

fn stamped(host: &str, watched: Option<Watched>, columns: &[(Column, &[u64])]) -> Stamped {
    let boot_id = Some(host.to_owned());
    let domain = Domain { kind: ClockKind::Tsc, boot_id, time_namespace: None };
    let clock = Nominal { tick_hz: HZ, drift_ppm: 200.0, wander_ppm: 0.0 };
    let columns: BTreeMap<_, _> = columns.iter().map(|(column, stamps)| (*column, stamps.to_vec())).collect();
    Stamped::new(domain, clock, watched, columns)
}

const WATCHED: Watched = Watched { threshold: 4000, longest: 60_000, total: 60_000, count: 1 };

#[test]
fn stamps_of_both_ranks_become_latencies_of_each_kind() {
    let sender = [
        (Column::Submitted, &[1000, 2000, 3000, 4000, 5000][..]),
        (Column::Completed, &[1100, 2100, NONE, 4900, 5100]),
    ];
    let receiver = [
        (Column::Received, &[1800, 2200, 3400, NONE, 5050][..]),
        (Column::Sent, &[1200, 2050, 3100, NONE, 5000]),
    ];
    let merged =
        merge(&spec(4, 1, None), &stamped("a", None, &sender), &stamped("a", None, &receiver)).unwrap();
    let kinds: Vec<_> = merged.kinds.iter().map(|timed| timed.latency.kind).collect();
    assert_eq!(kinds, [LatencyKind::OneWay, LatencyKind::OneWaySend, LatencyKind::Completion]);
    let samples = |kind| {
        let kept = merged.samples.iter().find(|kept| kept.of == Source::Kind(kind)).unwrap();
        kept.samples_ns.clone()
    };
    assert_eq!(
        samples(LatencyKind::OneWay),
        [100, 200, 25],
        "the first of five is warm-up, the fourth was lost"
    );
    assert_eq!(samples(LatencyKind::OneWaySend), [75, 150, 25]);
    assert_eq!(samples(LatencyKind::Completion), [50, 450, 50], "the third asked for none");
    let one_way = merged.one_way;
    assert_eq!(one_way.clocks, Clocks::One);
    assert_eq!(one_way.first.unwrap().max_ns, 400);
    assert_eq!((one_way.with_first.as_ref().unwrap().count, one_way.with_first.unwrap().max_ns), (4, 400));
    // Of those with both stamps, one completed 50 ns before its reception and one 25 ns after.
    assert_eq!(one_way.completed_first_share, Some(0.5));
    assert_eq!((one_way.negative, one_way.gaps.len()), (0, 0));
    let counters: Vec<_> = merged.counters.into_iter().collect();
    assert_eq!(counters, [("messages_lost".to_owned(), 1), ("messages_received".to_owned(), 3)]);
}

#[test]
fn a_shift_inside_a_burst_is_what_is_measured_and_one_between_bursts_is_not() {
    let shifts = |burst: Option<u32>, latency: fn(u64) -> u64| {
        let submitted: Vec<u64> = (0..2000).map(|i| 1_000_000 + i * 10_000).collect();
        let received: Vec<u64> =
            (0..2000).map(|i| submitted[i as usize] + latency(i) + i * 7919 % 10).collect();
        let sender = [(Column::Submitted, &submitted[..])];
        let receiver = [(Column::Received, &received[..])];
        merge(&spec(2000, 0, burst), &stamped("a", None, &sender), &stamped("a", None, &receiver))
            .unwrap()
            .unstable
    };
    // The second half of every hundred takes twice as long.
    let inside: fn(u64) -> u64 = |i| if i % 100 < 50 { 400 } else { 800 };
    assert_eq!(shifts(Some(100), inside), None);
    let once: fn(u64) -> u64 = |i| if i < 1000 { 400 } else { 800 };
    for burst in [Some(1), Some(100)] {
        let shift = shifts(burst, once).unwrap_or_else(|| panic!("no shift with bursts of {burst:?}"));
        assert!(shift.contains("at 50 % of the measurement"), "{shift}");
    }
    assert_eq!(shifts(None, once), None, "one burst has one level");
}

#[test]
fn the_largest_is_explained_by_what_its_ends_saw() {
    // One of the four messages takes 20 us; rank 1 was preempted for 18 us of that, and for 12 us
    // after the last message.
    let sender = [(Column::Submitted, &[10_000, 20_000, 80_000, 90_000][..]), (Column::Gaps, &[])];
    let gaps = [(Column::Gaps, &[22_000, 58_000, 100_000, 124_000][..])];
    let receiver = [(Column::Received, &[10_400, 60_000, 80_400, 90_400][..]), gaps[0]];
    let sender = stamped("a", Some(Watched { longest: 40, total: 0, count: 0, ..WATCHED }), &sender);
    let receiver = stamped("a", Some(WATCHED), &receiver);
    let one_way = merge(&spec(4, 0, None), &sender, &receiver).unwrap().one_way;
    let largest = one_way.largest.unwrap();
    assert_eq!((largest.message, largest.ns), (1, 20_000));
    assert_eq!(largest.gaps_ns, BTreeMap::from([(0, 0), (1, 18_000)]));
    assert_eq!(one_way.above_explained, BTreeMap::from([("10000".to_owned(), 1)]));
    let gaps: Vec<_> =
        one_way.gaps.iter().map(|gaps| (gaps.rank, gaps.threshold_ns, gaps.longest_ns)).collect();
    assert_eq!(gaps, [(0, 2000, 20), (1, 2000, 30_000)]);
}

#[test]
fn a_gap_that_was_not_in_the_way_explains_nothing() {
    let sender = [(Column::Submitted, &[10_000, 40_000][..]), (Column::Gaps, &[])];
    let receiver = [(Column::Received, &[10_400, 70_000][..]), (Column::Gaps, &[12_000, 38_000])];
    let merged = merge(
        &spec(2, 0, None),
        &stamped("a", Some(WATCHED), &sender),
        &stamped("a", Some(WATCHED), &receiver),
    );
    let one_way = merged.unwrap().one_way;
    assert_eq!(one_way.largest.unwrap().gaps_ns, BTreeMap::from([(0, 0), (1, 0)]));
    assert_eq!(one_way.above_explained, BTreeMap::from([("10000".to_owned(), 0)]));
}

#[test]
fn after_the_last_gap_that_was_kept_nothing_is_explained() {
    // Rank 1 kept one of two preemptions. The largest latency comes after it, one of 10.1 us
    // before.
    let sender = [(Column::Submitted, &[10_000, 40_000, 90_000][..]), (Column::Gaps, &[])];
    let receiver = [(Column::Received, &[30_200, 40_400, 150_000][..]), (Column::Gaps, &[10_100, 30_300])];
    let nothing = Watched { longest: 40, total: 0, count: 0, ..WATCHED };
    let one_way = |count| {
        let watched = Watched { count, ..WATCHED };
        let sender = stamped("a", Some(nothing), &sender);
        let receiver = stamped("a", Some(watched), &receiver);
        merge(&spec(3, 0, None), &sender, &receiver).unwrap().one_way
    };
    let part = one_way(2);
    let whole = one_way(1);
    let kept = |one_way: &OneWay| one_way.gaps.iter().map(|gaps| gaps.kept).collect::<Vec<_>>();
    assert_eq!((kept(&part), kept(&whole)), (vec![None, Some(1)], vec![None, None]));
    let largest = |one_way: OneWay| (one_way.largest.unwrap().gaps_ns, one_way.above_explained["10000"]);
    assert_eq!(largest(part), (BTreeMap::from([(0, 0)]), 1), "rank 1's later preemptions are unknown");
    assert_eq!(largest(whole), (BTreeMap::from([(0, 0), (1, 0)]), 1));
}

/// Bursts of one message each between two hosts. A message takes about 1 us, its answer 3 us.
fn hosts(messages: u64, skew: &str) -> (Stamped, Stamped) {
    let skew: Skew = skew.parse().unwrap();
    let theirs = |ticks: u64| skew.apply(ticks, HZ);
    let submitted: Vec<u64> = (0..messages).map(|i| 1_000_000_000 + i * 200_000).collect();
    let arrived = |i: usize| submitted[i] + 1800 + (i as u64 * 7919) % 400;
    let received: Vec<u64> = (0..submitted.len()).map(|i| theirs(arrived(i))).collect();
    let answered: Vec<u64> = (0..submitted.len()).map(|i| theirs(arrived(i) + 100)).collect();
    let returned: Vec<u64> = (0..submitted.len()).map(|i| arrived(i) + 100 + 6000).collect();
    let sender = [(Column::Submitted, &submitted[..]), (Column::Answered, &returned)];
    let receiver = [(Column::Received, &received[..]), (Column::Answered, &answered)];
    (stamped("a", None, &sender), stamped("b", None, &receiver))
}

#[test]
fn of_two_clocks_the_truth_lies_inside_the_bound() {
    for skew in ["offset=3ms,drift=40ppm", "offset=-7h,drift=-150ppm", "offset=0ns,drift=0ppm"] {
        let (sender, receiver) = hosts(1000, skew);
        let spec = PointSpec { share_above_ns: vec![890, 10_000], ..spec(1000, 0, Some(1)) };
        let merged = merge(&spec, &sender, &receiver).unwrap();
        let Clocks::Two { bound_ns, drift_ppm, exchanges, .. } = merged.one_way.clocks else {
            panic!("{merged:?}")
        };
        let told: Skew = skew.parse().unwrap();
        assert_eq!(exchanges, 1000);
        assert!(drift_ppm[0] <= told.drift_ppm && told.drift_ppm <= drift_ppm[1], "{skew}: {drift_ppm:?}");
        // The shortest round trip is 900 + 50 + 3000 ns; its half is the best possible bound.
        assert!((1900.0..2100.0).contains(&bound_ns), "{skew}: {bound_ns}");
        let latency = &merged.kinds[0].latency;
        let median = latency.p50_ns as f64;
        assert!((median - 1000.0).abs() <= bound_ns, "{skew}: {median} +- {bound_ns}");
        // All are above 890 ns and none above 10 us; the stamps can only prove the second.
        let bounds = &latency.share_above_bounds;
        assert_eq!(
            (bounds["890"], bounds["10000"]),
            ([0.0, 1.0], [0.0, 0.0]),
            "{skew}: {median} +- {bound_ns}"
        );
    }
}

#[test]
fn hosts_that_say_that_they_share_a_clock_are_not_believed_against_the_stamps() {
    let (sender, mut receiver) = hosts(100, "offset=3ms,drift=0ppm");
    receiver.domain = sender.domain.clone();
    let merged = merge(&spec(100, 0, Some(1)), &sender, &receiver).unwrap();
    assert!(matches!(merged.one_way.clocks, Clocks::Two { .. }), "{:?}", merged.one_way.clocks);
    let (sender, mut receiver) = hosts(100, "offset=0ns,drift=0ppm");
    receiver.domain = sender.domain.clone();
    let merged = merge(&spec(100, 0, Some(1)), &sender, &receiver).unwrap();
    assert_eq!(merged.one_way.clocks, Clocks::One);
    assert!(merged.kinds[0].latency.share_above_bounds.is_empty(), "one clock has no bound");
}

#[test]
fn without_a_bound_there_is_no_number() {
    let (sender, _) = hosts(1, "offset=0ns,drift=0ppm");
    let lost = stamped("b", None, &[(Column::Received, &[NONE]), (Column::Answered, &[NONE])]);
    let error = merge(&spec(1, 0, Some(1)), &sender, &lost).unwrap_err();
    assert!(matches!(error, Error::Clocks { .. }), "{error}");
    assert!(error.to_string().contains("no messages were exchanged"), "{error}");
    let lost = stamped("a", None, &[(Column::Received, &[NONE])]);
    let error = merge(&spec(1, 0, Some(1)), &sender, &lost).unwrap_err();
    assert!(matches!(error, Error::TooFewMessages { .. }), "{error}");
}

#[test]
fn columns_travel_behind_their_message() {
    use crate::pattern::outcome::Told;
    use crate::process::message::Reply;
    let before = stamped("a", Some(WATCHED), &[(Column::Gaps, &[7, 8]), (Column::Received, &[1, 2, 3])]);
    let mut told = before.clone();
    let columns = told.take_columns();
    let outcome = Outcome {
        told: Some(serde_json::to_value(&told).unwrap()),
        column_words: columns.len(),
        columns,
        samples: vec![5, 6],
        ..Outcome::default()
    };
    let mut frame = Reply::Done(Box::new(outcome)).to_frame();
    assert_eq!(frame.samples, [5, 6, 7, 8, 1, 2, 3]);
    let Reply::Done(mut after) = Reply::from_frame(frame.clone()).unwrap() else { panic!("another reply") };
    let mut told: Stamped = serde_json::from_value(after.told.take().unwrap()).unwrap();
    told.put_columns(&mut after.columns).unwrap();
    assert_eq!((told, &after.samples[..]), (before, &[5, 6][..]));
    // Columns that are cut short, or claim a huge length, are an error and no panic.
    assert!(matches!(
        Stamped::put_columns(&mut told_again(), &mut vec![1; 4]),
        Err(Error::BrokenFrame { .. })
    ));
    frame.samples.truncate(4);
    assert!(matches!(Reply::from_frame(frame), Err(Error::BrokenFrame { .. })));
}

/// A report that announces five stamps, which are sent separately.
fn told_again() -> Stamped {
    stamped("a", None, &[(Column::Gaps, &[7, 8]), (Column::Received, &[1, 2, 3])])
}
