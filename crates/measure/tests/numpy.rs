//! Statistics against an independent implementation: numpy, and exact rationals in Python.
//!
//! The interpreter is the one that the environment variable RDMASCOPE_PYTHON names, else python3.
//! Without numpy the test is skipped and says so, or fails if RDMASCOPE_REQUIRE contains `numpy`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, io};

use measure::record::{Latency, LatencyKind};
use measure::samples::{Distribution, write_raw};
use measure::stats::{self, MedianInterval, Share};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Reference {
    numpy: String,
    files: BTreeMap<String, Statistics>,
    intervals: Vec<(u64, Option<(u64, u64)>)>,
}

#[derive(Deserialize)]
struct Statistics {
    count: u64,
    min: u64,
    max: u64,
    quantiles: Vec<u64>,
    numpy_quantiles: Vec<u64>,
    mean: f64,
    numpy_mean: f64,
    stddev: Option<f64>,
    numpy_stddev: Option<f64>,
    share_above: Vec<f64>,
    mavericks: u64,
}

/// p10, p50, p90, p99, p99.9, as parts of a whole.
const SHARES: [(u64, u64); 5] = [(10, 100), (50, 100), (90, 100), (99, 100), (999, 1000)];
const THRESHOLDS_NS: [u64; 4] = [0, 150, 1000, 1 << 56];

#[test]
fn statistics_are_those_of_numpy() {
    let Some(python) = python_with_numpy() else { return };
    let sets = sets();
    let dir = tempfile::tempdir().unwrap();
    for (name, samples_ns) in &sets {
        write_raw(&dir.path().join(name).with_extension("u64"), samples_ns).unwrap();
    }
    let reference = reference(&python, dir.path());
    // Asserted, so that the comparison cannot pass by comparing nothing.
    assert_eq!(reference.files.len(), sets.len());
    assert_eq!(reference.intervals.len(), interval_counts().len());
    for (name, samples_ns) in &sets {
        compare(name, samples_ns, &reference.files[name]);
    }
    for (count, ranks) in reference.intervals {
        let interval = MedianInterval::of(count).map(|interval| (interval.low, interval.high));
        assert_eq!(interval, ranks, "interval of the median of {count} samples");
    }
    say(&format!("{} sets of samples agree with numpy {}", sets.len(), reference.numpy));
}

fn compare(name: &str, samples_ns: &[u64], expected: &Statistics) {
    let latency = stats::latency(LatencyKind::RttHalf, samples_ns, &THRESHOLDS_NS).unwrap();
    assert_eq!(
        (latency.count, latency.min_ns, latency.max_ns),
        (expected.count, expected.min, expected.max),
        "{name}"
    );
    assert_eq!(quantiles(&latency), expected.quantiles[..], "{name}: quantiles");
    assert_eq!(quantiles(&latency), expected.numpy_quantiles[..], "{name}: quantiles of numpy");
    let mut sorted = samples_ns.to_vec();
    sorted.sort_unstable();
    for (&(part, whole), &quantile) in SHARES.iter().zip(&expected.quantiles) {
        assert_eq!(
            stats::quantile(&sorted, Share::new(part, whole)),
            Some(quantile),
            "{name}: {part} of {whole}"
        );
    }
    // Python rounds the rational once, this crate once or twice.
    let rounding = 4.0 * f64::EPSILON;
    assert_close(&format!("{name}: mean"), latency.mean_ns, expected.mean, rounding * expected.mean);
    assert_eq!(latency.stddev_ns.is_some(), expected.stddev.is_some(), "{name}: deviation");
    // Numpy sums in floating point of 64 bits or more; the error is proportional to the largest
    // value.
    let summing = 1e-12 * expected.mean + 1e-15 * expected.max as f64;
    assert_close(&format!("{name}: mean of numpy"), latency.mean_ns, expected.numpy_mean, summing);
    if let (Some(stddev), Some(exact), Some(numpy)) =
        (latency.stddev_ns, expected.stddev, expected.numpy_stddev)
    {
        assert_close(&format!("{name}: deviation"), stddev, exact, rounding * exact);
        assert_close(&format!("{name}: deviation of numpy"), stddev, numpy, 1e-12 * numpy + summing);
    }
    for (ns, &share) in THRESHOLDS_NS.iter().zip(&expected.share_above) {
        assert_eq!(latency.share_above[&ns.to_string()], share, "{name}: share above {ns} ns");
    }
    assert_eq!(latency.mavericks.count, expected.mavericks, "{name}: outliers");
    compare_histogram(name, samples_ns, expected);
}

/// Compares a histogram of the same samples: it is within its resolution, and exact in the numbers
/// that it claims to be exact.
fn compare_histogram(name: &str, samples_ns: &[u64], expected: &Statistics) {
    let samples = Distribution::of(samples_ns);
    let latency = stats::from_histogram(LatencyKind::RttHalf, &samples, &[]).unwrap();
    let resolution = latency.resolution.unwrap();
    assert_eq!(
        (latency.count, latency.min_ns, latency.max_ns),
        (expected.count, expected.min, expected.max),
        "{name}"
    );
    let rounding = 4.0 * f64::EPSILON;
    assert_close(
        &format!("{name}: mean of the histogram"),
        latency.mean_ns,
        expected.mean,
        rounding * expected.mean,
    );
    if expected.max > 60_000_000_000 {
        // The buckets end at a minute.
        return;
    }
    for (&ours, &exact) in quantiles(&latency).iter().zip(&expected.quantiles) {
        let bound = resolution * exact as f64;
        assert_close(&format!("{name}: quantile of the histogram"), ours as f64, exact as f64, bound);
    }
}

fn quantiles(latency: &Latency) -> [u64; 5] {
    [latency.p10_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p999_ns]
}

fn assert_close(what: &str, ours: f64, expected: f64, bound: f64) {
    assert!(
        (ours - expected).abs() <= bound,
        "{what}: {ours} instead of {expected}, more than {bound} apart"
    );
}

/// Realistic and adversarial sets.
fn sets() -> BTreeMap<String, Vec<u64>> {
    let mut random = random();
    let mut uniform = move || ((random() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let mut sets = BTreeMap::new();
    let mut add = |name: String, samples_ns: Vec<u64>| assert!(sets.insert(name, samples_ns).is_none());
    let heavy_tail = |u: f64| (1000.0 * u.powf(-0.7)) as u64;
    for count in [1, 2, 3, 5, 6, 7, 10, 99, 100, 101, 999, 1000, 1001, 20_000] {
        add(format!("constant-{count}"), vec![1234; count]);
        add(format!("rising-{count}"), (0..count as u64).collect());
        add(format!("falling-{count}"), (0..count as u64).rev().collect());
        add(format!("heavy-tail-{count}"), (0..count).map(|_| heavy_tail(uniform())).collect());
        // All deviations from the mean are below a microsecond: perftest counts each of them as 0.
        add(
            format!("sub-microsecond-{count}"),
            (0..count).map(|_| 1000 + (uniform() * 400.0) as u64).collect(),
        );
        add(
            format!("bimodal-{count}"),
            (0..count).map(|_| if uniform() < 0.3 { 550 } else { 140 }).collect(),
        );
        let few_far = |i: usize| if i % 97 == 13 { 40_000_000 } else { 2000 + (i as u64 * 31) % 17 };
        add(format!("few-far-{count}"), (0..count).map(few_far).collect());
        let large = u64::MAX >> 8;
        add(format!("large-{count}"), (0..count as u64).map(|i| large - i * i % 1009).collect());
        add(format!("largest-{count}"), (0..count as u64).map(|i| u64::MAX - i % 2).collect());
        add(format!("extremes-{count}"), (0..count).map(|i| if i % 2 == 0 { 0 } else { u64::MAX }).collect());
    }
    add("zeros".to_owned(), vec![0; 1000]);
    add("two-values".to_owned(), [vec![100; 500], vec![101; 500]].concat());
    add("one-far".to_owned(), [vec![100; 999], vec![u64::MAX >> 8]].concat());
    sets
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn random() -> impl FnMut() -> u64 {
    let mut state = 2016u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// All small counts and some large ones.
fn interval_counts() -> Vec<u64> {
    let large = [999, 1000, 1001, 2047, 5000, 9999, 10_000, 10_001, 12_345, 20_000, 50_001];
    (0..=600).chain(large).collect()
}

fn reference(python: &str, samples: &Path) -> Reference {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/numpy_reference.py");
    let output = Command::new(python)
        .arg(script)
        .arg(samples)
        .args([json!(SHARES), json!(THRESHOLDS_NS), json!(interval_counts())].map(|list| list.to_string()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The interpreter to use; `None` when it has no numpy and that is allowed.
fn python_with_numpy() -> Option<String> {
    let python = env::var("RDMASCOPE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_numpy =
        Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|out| out.status.success());
    if has_numpy {
        return Some(python);
    }
    let reason = format!("numpy is not importable by {python} (pip install numpy)");
    let is_required = env::var("RDMASCOPE_REQUIRE").is_ok_and(|list| list.contains("numpy"));
    assert!(!is_required, "{reason}, and RDMASCOPE_REQUIRE asks for it");
    say(&format!("SKIPPED: {reason}"));
    None
}

/// Writes a line past the capture of test output, so that it is visible.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
