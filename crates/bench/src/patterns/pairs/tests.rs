use measure::clock::{Clock, Domain};
use measure::record::{Status, Throughput};

use super::*;
use crate::axis;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern as Named;

fn spec(size_bytes: u64) -> PointSpec {
    let settings = Settings::default().axis(axis::TRAFFIC.value(Traffic::Stream));
    let plan = Plan::new("pairs", "Pairs").experiment("e", Named::PAIRS, settings);
    let mut spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
    spec.message.size_bytes = size_bytes;
    spec
}

fn passed() -> FloodProgress {
    FloodProgress { clock: Domain::of(&Clock::monotonic()), tick_hz: 1e9, span: [0; 2], seen: Vec::new() }
}

/// A stream with a message per `ticks` ticks of a nanosecond.
fn flood(span: [u64; 2], ticks: u64) -> FloodProgress {
    let seen = (0..=(span[1] - span[0]) / ticks).map(|count| (span[0] + count * ticks, count)).collect();
    FloodProgress { span, seen, ..passed() }
}

/// The merged streams, by rank, and the outcomes that are left.
fn merged(spec: &PointSpec, told: Vec<Option<FloodProgress>>) -> (Merged, Vec<Outcome>) {
    let own = Throughput { bytes_per_s: 1.0, messages_per_s: 1.0, direction: Direction::Uni };
    let outcome = |told: &Option<FloodProgress>| Outcome {
        throughput: told.as_ref().map(|_| own.clone()),
        ..Outcome::default()
    };
    let mut outcomes = told.iter().map(outcome).collect();
    (Pairs::merge(spec, &mut outcomes, told), outcomes)
}

#[test]
fn what_pairs_carry_is_counted_in_the_time_that_all_were_at_it() {
    // The second stream is three times as slow, starts late and ends late.
    let told = vec![Some(flood([1000, 11_000], 10)), None, Some(flood([3000, 33_000], 30)), None];
    let (together, outcomes) = merged(&spec(2), told);
    let total = together.throughput.unwrap();
    assert_eq!(total.direction, Direction::Pairs);
    assert!((total.messages_per_s / (1e8 + 1e8 / 3.0) - 1.0).abs() < 1e-2, "{total:?}");
    assert_eq!(total.bytes_per_s, 2.0 * total.messages_per_s);
    assert!((outcomes[0].throughput.as_ref().unwrap().messages_per_s / 1e8 - 1.0).abs() < 1e-2);
    let fairness = together.fairness.unwrap();
    // Rates of 3 and 1: (3 + 1)^2 / 2 (9 + 1), and 1 of 3.
    assert!(
        (fairness.jain - 0.8).abs() < 1e-2 && (fairness.least_share - 1.0 / 3.0).abs() < 1e-2,
        "{fairness:?}"
    );
    assert!(together.unstable.is_empty());
}

/// Two streams share one link, with messages of a tick each: for a while one of them sends, then
/// the other.
#[test]
fn what_shares_a_link_carries_no_more_than_that() {
    let mut seen = [vec![(0, 0)], vec![(0, 0)]];
    let mut now = 0;
    for turn in 0..40 {
        let flood = &mut seen[turn % 2];
        for _ in 0..100 + 7 * turn as u64 {
            now += 1;
            flood.push((now, flood.len() as u64));
        }
    }
    let ends = [now - 1, now - 500];
    let told = [0, 1].map(|one: usize| {
        Some(FloodProgress { span: [one as u64, ends[one]], seen: seen[one].clone(), ..passed() })
    });
    let total = merged(&spec(1), told.into()).0.throughput.unwrap().messages_per_s;
    assert!((total / 1e9 - 1.0).abs() < 1e-9, "{total}");
}

#[test]
fn what_is_hardly_counted_is_no_number() {
    let told = || Some(FloodProgress { span: [0, 1500], seen: vec![(0, 0), (1400, 16)], ..passed() });
    let (together, outcomes) = merged(&spec(1), vec![told(), told()]);
    let Some(Status::NotMeasured { reason }) = together.status else { panic!("{together:?}") };
    assert!(reason.contains("too few messages were complete"), "{reason}");
    assert!(outcomes.is_empty());
}

#[test]
fn without_a_common_time_that_is_said() {
    for second in [[200, 300], [60, 160]] {
        let (together, _) = merged(&spec(1), vec![Some(flood([0, 100], 1)), Some(flood(second, 1))]);
        let Some(Status::NotMeasured { reason }) = together.status else { panic!("{:?}", together.status) };
        assert!(reason.starts_with("2 pairs hardly overlapped in time"), "{reason}");
        assert_eq!((together.throughput, together.fairness), (None, None));
    }
    let mut other = flood([0, 100], 1);
    other.clock.boot_id = Some("another".to_owned());
    let (apart, _) = merged(&spec(1), vec![Some(flood([0, 100], 1)), Some(other)]);
    assert!(apart.unstable[0].contains("different clocks") && apart.throughput.is_some());
}
