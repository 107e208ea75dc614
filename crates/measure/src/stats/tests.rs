//! Statistics against their definitions. The comparison with numpy is in tests/numpy.rs.

use proptest::prelude::*;

use super::*;

fn stats(samples_ns: &[u64]) -> Latency {
    latency(LatencyKind::RttHalf, samples_ns, &[]).unwrap()
}

#[test]
fn a_rank_is_exact_where_floating_point_is_not() {
    for (percent, count, rank) in [(7, 100, 7), (55, 100, 55), (14, 50, 7)] {
        // The product is a little above the integer, and rounding up makes it one more.
        let in_floating_point = (percent as f64 / 100.0 * count as f64).ceil() as u64;
        assert_eq!(in_floating_point, rank + 1, "the example proves nothing");
        assert_eq!(Share::new(percent, 100).rank(count), rank);
    }
    assert_eq!(
        [1, 999, 1000, 1001, 2000, 2001].map(|count| Share::P999.rank(count)),
        [1, 999, 999, 1000, 1998, 1999]
    );
    assert_eq!(Share::P999.rank(u64::MAX), 18_428_297_329_635_842_064);
    assert_eq!((Share::new(0, 1).rank(5), Share::new(1, 1).rank(5)), (1, 5));
}

#[test]
fn few_samples_have_the_statistics_that_they_can_have() {
    let one = stats(&[7]);
    assert_eq!((one.min_ns, one.p10_ns, one.p50_ns, one.p999_ns, one.max_ns), (7, 7, 7, 7, 7));
    assert_eq!((one.mean_ns, one.stddev_ns, one.p50_ci95_ns, one.resolution), (7.0, None, None, None));
    let two = stats(&[9, 5]);
    assert_eq!((two.p10_ns, two.p50_ns, two.p90_ns, two.mean_ns), (5, 5, 9, 7.0));
    assert_eq!(two.stddev_ns, Some(8f64.sqrt()));
    assert_eq!(stats(&[1, 2, 3, 4, 5]).p50_ci95_ns, None);
    assert_eq!(stats(&[6, 5, 4, 3, 2, 1]).p50_ci95_ns, Some([1, 6]));
    assert!(latency(LatencyKind::Rtt, &[], &[]).is_none());
    assert!(quantile(&[], Share::P50).is_none());
}

#[test]
fn deviations_below_a_microsecond_count() {
    // perftest keeps deviations as whole microseconds and prints 0.00 for these.
    let samples: Vec<u64> = (0..1000).map(|i| if i % 2 == 0 { 1000 } else { 1400 }).collect();
    let stddev_ns = stats(&samples).stddev_ns.unwrap();
    assert!((stddev_ns - 200.0 * (1000.0f64 / 999.0).sqrt()).abs() < 1e-10, "{stddev_ns}");
}

#[test]
fn no_outlier_is_dropped() {
    let mut samples = vec![100; 998];
    samples.extend([5000, 9000]);
    let latency = stats(&samples);
    assert_eq!((latency.max_ns, latency.mean_ns, latency.count), (9000, 113.8, 1000));
    assert_eq!((latency.mavericks.count, latency.mavericks.rule.as_str()), (2, "> 2 x mean"));
}

#[test]
fn shares_and_mavericks_are_strictly_above() {
    let latency = latency(LatencyKind::Rtt, &[10, 20, 20, 30], &[20, 9, 30, 1000]).unwrap();
    let above: Vec<(&str, f64)> =
        latency.share_above.iter().map(|(ns, &share)| (ns.as_str(), share)).collect();
    assert_eq!(above, [("1000", 0.0), ("20", 0.25), ("30", 0.0), ("9", 1.0)]);
    // Twice the mean is 8, and one sample is 8.
    assert_eq!(stats(&[1, 3, 8]).mavericks.count, 0);
    // Twice the mean is 7.33, and one sample is 8.
    assert_eq!(stats(&[1, 2, 8]).mavericks.count, 1);
    assert_eq!(stats(&[0, 0]).mavericks.count, 0);
}

#[test]
fn shares_of_samples_with_a_bound_have_bounds() {
    let within = |bound_ns| {
        let samples = [10, 89, 99, 100, 101, 111, 112, 500];
        let latency = latency_within(LatencyKind::OneWay, &samples, &[100, 5], bound_ns).unwrap();
        assert_eq!(latency.share_above["100"], 0.5);
        (latency.share_above_bounds["100"], latency.share_above_bounds["5"])
    };
    // The bound plus a nanosecond, for rounding.
    assert_eq!(within(9.2), ([2.0 / 8.0, 6.0 / 8.0], [7.0 / 8.0, 1.0]));
    assert_eq!(within(0.0), ([3.0 / 8.0, 5.0 / 8.0], [1.0, 1.0]));
    assert_eq!(within(f64::INFINITY), ([0.0, 1.0], [0.0, 1.0]));
    assert_eq!(latency_within(LatencyKind::OneWay, &[], &[100], 1.0), None);
    assert!(stats(&[1]).share_above_bounds.is_empty(), "one clock took both stamps");
}

#[test]
fn sums_do_not_overflow() {
    let latency = stats(&[u64::MAX; 1000]);
    assert_eq!(
        (latency.mean_ns, latency.stddev_ns, latency.mavericks.count),
        (u64::MAX as f64, Some(0.0), 0)
    );
    let halves: Vec<u64> = (0..1000).map(|i| if i < 500 { 0 } else { u64::MAX }).collect();
    let expected = u64::MAX as f64 / 2.0 * (1000.0f64 / 999.0).sqrt();
    assert!((stats(&halves).stddev_ns.unwrap() / expected - 1.0).abs() < 1e-15);
    // Neighbours of 2^64 differ by less than floating point resolves.
    let close: Vec<u64> = (0..1000).map(|i| u64::MAX - i % 2).collect();
    let expected = 0.5 * (1000.0f64 / 999.0).sqrt();
    assert!((stats(&close).stddev_ns.unwrap() / expected - 1.0).abs() < 1e-15);
}

#[test]
fn moments_of_parts_add_up() {
    let samples: Vec<u64> = (0..100).map(|i| i * i * 7919 % 10_007).collect();
    let (one, other) = samples.split_at(37);
    let mut merged: Moments = one.iter().copied().collect();
    merged.merge(&other.iter().copied().collect());
    assert_eq!(merged, samples.iter().copied().collect());
    assert_eq!(Moments::default().mean(), None);
    assert_eq!(Moments::default().stddev(), None);
}

#[test]
fn the_interval_of_the_median_has_the_ranks_of_the_tables() {
    let ranks = |count| MedianInterval::of(count).map(|ranks| (ranks.low, ranks.high));
    for count in 0..6 {
        assert_eq!(ranks(count), None);
    }
    // Conover, table of the binomial distribution, and any table of the sign test at 5 %.
    for (count, low) in
        [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (100, 40), (1000, 469)]
    {
        assert_eq!(ranks(count), Some((low, count + 1 - low)), "{count} samples");
    }
}

#[test]
fn spread_is_that_of_the_runs() {
    let spread_of =
        |medians: &[f64]| spread(medians).map(|spread| (spread.runs, spread.min, spread.median, spread.max));
    assert_eq!(spread_of(&[3.0, 1.0, 2.0]), Some((3, 1.0, 2.0, 3.0)));
    assert_eq!(spread_of(&[4.0, 1.0, 2.0, 3.0]), Some((4, 1.0, 2.0, 4.0)));
    assert_eq!(spread_of(&[f64::NAN, 5.0]), Some((1, 5.0, 5.0, 5.0)));
    assert_eq!(spread_of(&[]), None);
}

proptest! {
    #[test]
    fn a_quantile_is_the_least_sample_that_enough_are_not_above(
        mut samples in prop::collection::vec(0u64..50, 1..200),
        whole in 1u64..1000,
        part in 0u64..1000,
    ) {
        let part = part.min(whole);
        samples.sort_unstable();
        let value = quantile(&samples, Share::new(part, whole)).unwrap();
        let count = samples.len() as u64;
        let is_enough = |ns: u64| samples.iter().filter(|&&sample| sample <= ns).count() as u64 * whole >= part * count;
        prop_assert!(samples.contains(&value) && is_enough(value));
        prop_assert!(samples.iter().all(|&sample| sample >= value || !is_enough(sample)));
    }

    #[test]
    fn the_order_of_samples_does_not_matter(mut samples in prop::collection::vec(any::<u64>(), 1..100)) {
        let latency = stats(&samples);
        samples.reverse();
        prop_assert_eq!(stats(&samples), latency.clone());
        samples.sort_unstable();
        prop_assert_eq!(stats(&samples), latency);
    }

    #[test]
    fn deviation_does_not_depend_on_where_the_samples_lie(
        samples in prop::collection::vec(0u64..10_000, 2..100),
        shift in 0u64..1 << 62,
    ) {
        let shifted: Vec<u64> = samples.iter().map(|sample| sample + shift).collect();
        prop_assert_eq!(stats(&shifted).stddev_ns, stats(&samples).stddev_ns);
    }
}
