//! The statistics of a set of latencies in a record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LatencyKind;

/// Statistics of a set of latencies. Exact over all samples unless `resolution` says otherwise.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Latency {
    /// The kind of latency. Kinds are never mixed.
    pub kind: LatencyKind,
    /// Number of samples.
    pub count: u64,
    /// Smallest sample, in ns.
    pub min_ns: u64,
    /// 10th percentile, in ns. The p-th percentile is the smallest sample such that at least p % of
    /// all samples are not above it (the inverse of the empirical distribution function; type 1 of
    /// Hyndman and Fan 1996, `inverted_cdf` in numpy).
    pub p10_ns: u64,
    /// Median, in ns.
    pub p50_ns: u64,
    /// 90th percentile, in ns.
    pub p90_ns: u64,
    /// 99th percentile, in ns.
    pub p99_ns: u64,
    /// 99.9th percentile, in ns.
    pub p999_ns: u64,
    /// Largest sample, in ns. No sample is dropped before.
    pub max_ns: u64,
    /// Arithmetic mean, in ns.
    pub mean_ns: f64,
    /// Sample standard deviation (divisor n - 1), in ns; absent below two samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev_ns: Option<f64>,
    /// 95 % confidence interval of the median from order statistics, in ns; within this run only.
    /// Absent with fewer than 6 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ci95_ns: Option<[u64; 2]>,
    /// Share of the samples strictly above a threshold in ns, by threshold.
    #[serde(default)]
    pub share_above: BTreeMap<String, f64>,
    /// Smallest and largest possible share, by threshold, where stamps of two clocks are compared.
    /// The smallest counts samples above the threshold by more than the bound, the largest those
    /// not below it by more than the bound. Absent where one clock took both stamps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub share_above_bounds: BTreeMap<String, [f64; 2]>,
    /// Outliers.
    pub mavericks: Mavericks,
    /// Relative width of a histogram's buckets where the statistics come from a histogram; absent
    /// where they are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
}

/// Outliers by a stated rule.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[schemars(rename = "Outliers")]
pub struct Mavericks {
    /// The rule, e.g. `> 2 x mean`.
    pub rule: String,
    /// The number of samples that are outliers.
    pub count: u64,
}

/// A distribution in buckets.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Histogram {
    /// Lower edge (inclusive), upper edge (exclusive), both in ns, and count, of the buckets that
    /// are not empty, in rising order.
    pub buckets: Vec<(u64, u64, u64)>,
}
