//! Recorders against plain vectors.

use std::fs;

use proptest::prelude::*;

use super::series::BlockSums;
use super::*;
use crate::environment::stat_field;

/// Records ticks of the monotonic clock, which are nanoseconds.
fn raw(ns: &[u64], scale: Scale) -> Samples {
    let mut samples = RawSamples::new(ns.len()).unwrap();
    ns.iter().for_each(|&ns| samples.record(ns));
    samples.finish(&Clock::monotonic(), scale)
}

fn histogram(ns: &[u64], scale: Scale) -> Samples {
    let mut samples = HistogramSamples::new(&Clock::monotonic(), scale);
    ns.iter().for_each(|&ns| samples.record(ns));
    samples.finish()
}

#[test]
fn an_array_keeps_every_sample_in_order() {
    let ticks: Vec<u64> = (0..1500).map(|i| i * 7919 % 1000).collect();
    let mut samples = RawSamples::new(ticks.len()).unwrap();
    for &tick in &ticks {
        assert!(!samples.is_full());
        samples.record(tick);
    }
    assert!(samples.is_full());
    assert_eq!((samples.len(), samples.missed()), (1500, 0));
    samples.record(1);
    assert_eq!((samples.len(), samples.missed()), (1500, 1));
    assert_eq!(samples.finish(&Clock::monotonic(), Scale::Whole).raw().unwrap(), ticks);
}

#[test]
fn an_array_that_was_cleared_keeps_nothing() {
    let mut samples = RawSamples::new(2).unwrap();
    (0..3).for_each(|tick| samples.record(tick));
    samples.clear();
    assert!(samples.is_empty() && samples.missed() == 0);
    samples.record(9);
    assert_eq!(samples.finish(&Clock::monotonic(), Scale::Whole).raw().unwrap(), [9]);
    let nothing = RawSamples::new(0).unwrap();
    assert!(nothing.is_full());
    assert!(nothing.finish(&Clock::monotonic(), Scale::Whole).latency(LatencyKind::Rtt, &[]).is_none());
}

#[test]
fn an_absurd_array_is_refused() {
    let error = RawSamples::new(usize::MAX).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot allocate") && error.ends_with("keep a histogram instead of raw samples")
    );
}

/// Minor faults of this thread so far (proc_pid_stat(5), field 10).
fn page_faults() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat_field(&stat, 10).unwrap().parse().unwrap()
}

#[test]
fn an_array_causes_no_page_faults_once_it_is_made() {
    const PAGES: usize = 4096;
    // Locking would also touch the pages, and is not always allowed.
    let mut pages = memory::touched(PAGES * PAGE_SAMPLES).unwrap();
    let before = page_faults();
    pages.iter_mut().for_each(|page| page.0[7] = 1);
    let faults = page_faults() - before;
    assert_eq!(std::hint::black_box(pages).len(), PAGES);
    // An untouched page would fault once; the remaining faults come from reading the counter.
    assert!(faults < PAGES as u64 / 8, "{faults} faults for {PAGES} pages");
}

#[test]
fn an_array_is_locked_or_says_why_not() {
    const KIB: u64 = 64;
    let samples = RawSamples::new(KIB as usize * 128).unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let locked_kib =
        status.lines().find_map(|line| line.strip_prefix("VmLck:")?.trim().strip_suffix(" kB")).unwrap();
    match samples.not_locked() {
        None => assert!(locked_kib.parse::<u64>().unwrap() >= KIB, "{locked_kib} KiB are locked"),
        Some(reason) => assert!(reason.starts_with("cannot lock 64 KiB"), "{reason}"),
    }
}

#[test]
fn the_reason_for_not_locking_says_what_to_do() {
    let reason = memory::why_not_locked(32 << 20, rustix::io::Errno::NOMEM);
    assert_eq!(
        reason,
        "cannot lock 32768 KiB of samples in memory: Cannot allocate memory (os error 12); raise the limit with \
         ulimit -l unlimited (LimitMEMLOCK= of a systemd unit, memlock in limits.conf) or run with CAP_IPC_LOCK"
    );
}

#[test]
fn round_trips_are_halved_without_losing_half_a_nanosecond() {
    // 2001 ns out and back are 1000.5 ns one way.
    assert_eq!(raw(&[2001, 2000], Scale::Half).raw().unwrap(), [1001, 1000]);
    assert_eq!(histogram(&[2001], Scale::Half).latency(LatencyKind::RttHalf, &[]).unwrap().max_ns, 1001);
    assert_eq!(Scale::of(LatencyKind::RttHalf), Scale::Half);
    assert_eq!(Scale::of(LatencyKind::Rtt), Scale::Whole);
}

#[test]
fn a_histogram_is_exact_below_2048_ns() {
    let ns: Vec<u64> = (0..2048).map(|i| i * 31 % 2048).collect();
    let mut from_histogram = histogram(&ns, Scale::Whole).latency(LatencyKind::Rtt, &[100, 1000]).unwrap();
    assert_eq!(from_histogram.resolution.take(), Some(Distribution::RESOLUTION));
    assert_eq!(Some(from_histogram), raw(&ns, Scale::Whole).latency(LatencyKind::Rtt, &[100, 1000]));
}

#[test]
fn samples_above_a_minute_share_the_last_bucket_and_are_not_dropped() {
    let minutes = [90_000_000_000, 120_000_000_000];
    let samples = histogram(&[&[100; 8][..], &minutes].concat(), Scale::Whole);
    let latency = samples.latency(LatencyKind::Rtt, &[61_000_000_000]).unwrap();
    assert_eq!((latency.count, latency.max_ns, latency.mean_ns), (10, minutes[1], 21_000_000_080.0));
    let (low, high, count) = *samples.histogram().buckets.last().unwrap();
    assert_eq!((high, count), (minutes[1] + 1, 2));
    assert!(low <= 60_000_000_000);
    let mut largest = Distribution::new();
    largest.add(u64::MAX);
    assert_eq!(largest.histogram().buckets[0].1, u64::MAX);
}

#[test]
fn a_cleared_histogram_is_empty() {
    let mut samples = HistogramSamples::new(&Clock::monotonic(), Scale::Whole);
    samples.record(5);
    samples.clear();
    assert!(samples.is_empty() && !samples.is_full());
    let samples = samples.finish();
    assert!(samples.latency(LatencyKind::Rtt, &[]).is_none());
    assert!(samples.histogram().buckets.is_empty() && samples.series().is_empty());
}

#[test]
fn merged_samples_have_every_sample_and_no_order() {
    let one = [10, 20, 30_000];
    let other = [5, 40_000, 50];
    let all = [one, other].concat();
    let expected = raw(&all, Scale::Whole).latency(LatencyKind::Rtt, &[]);
    let mut exact = raw(&one, Scale::Whole);
    exact.merge(&raw(&other, Scale::Whole));
    assert_eq!(exact.latency(LatencyKind::Rtt, &[]), expected);
    assert!(exact.series().is_empty());

    let expected = histogram(&all, Scale::Whole).latency(LatencyKind::Rtt, &[]);
    for (mut merged, more) in [
        (histogram(&one, Scale::Whole), histogram(&other, Scale::Whole)),
        (histogram(&one, Scale::Whole), raw(&other, Scale::Whole)),
        (raw(&one, Scale::Whole), histogram(&other, Scale::Whole)),
    ] {
        merged.merge(&more);
        assert_eq!(merged.latency(LatencyKind::Rtt, &[]), expected);
        assert_eq!((merged.count(), merged.series().len()), (6, 0));
    }
}

#[test]
fn a_series_has_the_medians_of_equal_blocks() {
    let ns: Vec<u64> = (0..640).map(|i| if i < 320 { 100 + i % 10 } else { 300 + i % 10 }).collect();
    let expected: Vec<f64> = (0..64).map(|block| if block < 32 { 104.0 } else { 304.0 }).collect();
    assert_eq!(raw(&ns, Scale::Whole).series(), expected);
    assert_eq!(
        histogram(&ns, Scale::Whole).series(),
        expected,
        "blocks of one sample are as good as the samples"
    );
    assert_eq!(raw(&[3, 1, 2], Scale::Whole).series(), [3.0, 1.0, 2.0]);
    assert!(raw(&[], Scale::Whole).series().is_empty());
}

#[test]
fn a_step_is_seen_through_either_recorder() {
    let ns: Vec<u64> = (0..100_000).map(|i| if i < 40_000 { 140 } else { 550 } + i * 7919 % 30).collect();
    for samples in [raw(&ns, Scale::Whole), histogram(&ns, Scale::Whole)] {
        let step = crate::step::step(&samples.series()).expect("four times the level");
        assert!((step.at_share - 0.4).abs() < 0.03, "{step:?}");
        assert!((step.before_ns - 154.5).abs() < 2.0 && (step.after_ns - 564.5).abs() < 2.0, "{step:?}");
    }
}

#[test]
fn a_file_of_samples_is_read_back_and_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000000-0.u64");
    let ns = [0, 1, 258, u64::MAX];
    write_raw(&path, &ns).unwrap();
    assert_eq!(read_raw(&path).unwrap(), ns);
    assert_eq!(fs::read(&path).unwrap()[16..24], [2, 1, 0, 0, 0, 0, 0, 0], "little-endian");
    assert!(write_raw(&path, &[7]).unwrap_err().to_string().contains("File exists"));
    assert_eq!(read_raw(&path).unwrap(), ns);
    fs::write(&path, [1, 2, 3]).unwrap();
    let error = read_raw(&path).unwrap_err().to_string();
    assert!(error.contains("its 3 bytes are not a multiple of the 8 bytes of a sample"), "{error}");
}

/// A sample between zero and two minutes, mostly of a common size.
fn latency_ns() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 100u64..5000, 4 => 0u64..3_000_000, 1 => 0u64..59_000_000_000]
}

proptest! {
    #[test]
    fn a_histogram_is_within_its_resolution(ns in prop::collection::vec(latency_ns(), 1..300)) {
        let exact = raw(&ns, Scale::Half).latency(LatencyKind::RttHalf, &[]).unwrap();
        let coarse = histogram(&ns, Scale::Half).latency(LatencyKind::RttHalf, &[]).unwrap();
        prop_assert_eq!((exact.count, exact.min_ns, exact.max_ns), (coarse.count, coarse.min_ns, coarse.max_ns));
        prop_assert_eq!((exact.mean_ns, exact.stddev_ns), (coarse.mean_ns, coarse.stddev_ns));
        let quantiles = |latency: &Latency| {
            [latency.p10_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p999_ns]
        };
        for (exact, coarse) in quantiles(&exact).into_iter().zip(quantiles(&coarse)) {
            prop_assert!(exact.abs_diff(coarse) as f64 <= Distribution::RESOLUTION * exact as f64);
        }
        prop_assert!(quantiles(&coarse).is_sorted());
    }

    #[test]
    fn buckets_rise_and_hold_every_sample(ns in prop::collection::vec(latency_ns(), 0..300)) {
        let buckets = raw(&ns, Scale::Whole).histogram().buckets;
        prop_assert!(buckets.iter().all(|&(low, high, count)| low < high && count > 0));
        prop_assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        for &(low, high, count) in &buckets {
            prop_assert_eq!(ns.iter().filter(|&&ns| low <= ns && ns < high).count() as u64, count);
            prop_assert!((high - low) as f64 <= (Distribution::RESOLUTION * low as f64).max(1.0));
        }
        prop_assert_eq!(buckets.iter().map(|bucket| bucket.2).sum::<u64>(), ns.len() as u64);
    }

    #[test]
    fn blocks_are_means_of_consecutive_samples(count in 0usize..40_000, seed: u64) {
        let ns: Vec<u64> = (0..count as u64).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).collect();
        let mut sums = BlockSums::new();
        ns.iter().for_each(|&ns| sums.add(ns));
        // The smallest power of two that leaves fewer than 4096 whole blocks.
        let length = (0..).map(|k| 1usize << k).find(|length| count / length < 4096).unwrap();
        let mean = |block: &[u64]| block.iter().sum::<u64>() as f64 / length as f64;
        let expected: Vec<f64> = ns.chunks_exact(length).map(mean).collect();
        prop_assert_eq!(sums.means_ns(), expected);
    }
}
