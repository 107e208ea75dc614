//! Exact statistics of a set of latencies.
//!
//! * Percentiles are the inverse of the empirical distribution function: type 1 of Hyndman and Fan,
//!   Sample Quantiles in Statistical Packages, The American Statistician 50 (1996), 361-365;
//!   `inverted_cdf` in numpy. The value is always a sample. The rank is computed in integers:
//!   `ceil(0.999 * n)` in floating point is off by one for some n.
//! * Mean and standard deviation come from exact integer sums and are rounded once, at the end
//!   ([`Moments`]). Latencies that differ little do not cancel, and no sample is left out.
//!   (perftest stores deviations as whole microseconds, so that any below 1 us count as 0, and
//!   drops the two largest samples first.)
//! * The interval of the median is from order statistics ([`MedianInterval`]).
//! * The interval of a mean of repetitions is Student's ([`MeanInterval`]).
//! * The mean of the middle half moves where a median sits on a step of the clock ([`MiddleMean`]).
//! * Spread between runs differs from spread within a run: [`spread`].
//! * Numbers computed from several medians, with their errors: [`shape`].

use std::collections::BTreeMap;

use crate::record::{Latency, LatencyKind, Mavericks};

pub mod fit;
mod interval;
mod mean;
mod middle;
mod moments;
pub mod shape;
#[cfg(test)]
mod tests;
mod wide;

pub use interval::{MedianInterval, NORMAL_97_5};
pub use mean::MeanInterval;
pub use middle::MiddleMean;
pub use moments::Moments;

/// A share of a whole, as a fraction because 0.999 is not a floating-point number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    /// 10 %.
    pub const P10: Self = Self::new(10, 100);
    /// Half.
    pub const P50: Self = Self::new(50, 100);
    /// 90 %.
    pub const P90: Self = Self::new(90, 100);
    /// 99 %.
    pub const P99: Self = Self::new(99, 100);
    /// 99.9 %.
    pub const P999: Self = Self::new(999, 1000);

    /// `part` of `whole`. Panics unless `0 <= part <= whole` and `whole > 0`.
    pub const fn new(part: u64, whole: u64) -> Self {
        assert!(part <= whole && whole > 0, "a share is between 0 and 1");
        Self { part, whole }
    }

    /// Rank, from 1, of this percentile among `count` samples: the smallest rank r such that
    /// r / count is not below the share.
    pub fn rank(self, count: u64) -> u64 {
        let rank = (u128::from(self.part) * u128::from(count)).div_ceil(u128::from(self.whole));
        (rank as u64).max(1)
    }
}

/// A set of samples with access by rank: a sorted array or a histogram.
pub trait Ranked {
    /// Count, sum and sum of squares.
    fn moments(&self) -> Moments;
    /// The sample of a rank, from 1 (the smallest) to the count.
    fn at_rank(&self, rank: u64) -> u64;
    /// Number of samples strictly above a threshold.
    fn count_above(&self, threshold_ns: u64) -> u64;
    /// The smallest sample.
    fn min_ns(&self) -> u64;
    /// The largest sample.
    fn max_ns(&self) -> u64;
    /// Relative width of the buckets; `None` when every sample is known.
    fn resolution(&self) -> Option<f64>;
}

/// Exact statistics of samples in ns, in any order; `None` when there is no sample.
pub fn latency(kind: LatencyKind, samples_ns: &[u64], thresholds_ns: &[u64]) -> Option<Latency> {
    let mut sorted = samples_ns.to_vec();
    sorted.sort_unstable();
    summarise(kind, &Sorted(&sorted), thresholds_ns)
}

/// As [`latency`], for samples that are each right to within `bound_ns`, with the bounds of the
/// shares.
pub fn latency_within(
    kind: LatencyKind,
    samples_ns: &[u64],
    thresholds_ns: &[u64],
    bound_ns: f64,
) -> Option<Latency> {
    let mut sorted = samples_ns.to_vec();
    sorted.sort_unstable();
    let sorted = Sorted(&sorted);
    let count = samples_ns.len() as f64;
    let share_above = |ns: u64| sorted.count_above(ns) as f64 / count;
    let bounds = |&ns: &u64| (ns.to_string(), share_above_bounds(ns, bound_ns, share_above));
    let latency = summarise(kind, &sorted, thresholds_ns)?;
    Some(Latency { share_above_bounds: thresholds_ns.iter().map(bounds).collect(), ..latency })
}

/// Smallest and largest share of samples above a threshold in ns, where each sample is right to
/// within `bound_ns`. `share_above` returns the share above a time by the samples as they are.
pub fn share_above_bounds(threshold_ns: u64, bound_ns: f64, share_above: impl Fn(u64) -> f64) -> [f64; 2] {
    // Samples are rounded to a nanosecond. A float becomes the nearest integer.
    let bound_ns = (bound_ns.ceil() as u64).saturating_add(1);
    let least = share_above(threshold_ns.saturating_add(bound_ns));
    // A bound that is wider than the threshold excludes no sample.
    [least, threshold_ns.checked_sub(bound_ns).map_or(1.0, share_above)]
}

/// Statistics of a histogram. Count, smallest, largest, mean and standard deviation are exact.
/// Percentiles, the median's interval, shares and outliers are within the stated resolution of the
/// samples. `None` when there is no sample.
pub fn from_histogram(kind: LatencyKind, samples: &impl Ranked, thresholds_ns: &[u64]) -> Option<Latency> {
    summarise(kind, samples, thresholds_ns)
}

/// A percentile of samples that are sorted; `None` when there is no sample.
pub fn quantile(sorted_ns: &[u64], share: Share) -> Option<u64> {
    debug_assert!(sorted_ns.is_sorted());
    (!sorted_ns.is_empty()).then(|| Sorted(sorted_ns).at_rank(share.rank(sorted_ns.len() as u64)))
}

/// Smallest, median and largest of the medians of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// The smallest.
    pub min: f64,
    /// The median; of an even number of runs the lower of the middle two, as for samples.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

/// Spread from run to run of a statistic of each run; `None` when there is no run. Values that are
/// not finite are ignored.
pub fn spread(medians: &[f64]) -> Option<Spread> {
    let mut sorted: Vec<f64> = medians.iter().copied().filter(|median| median.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let &min = sorted.first()?;
    let &max = sorted.last()?;
    Some(Spread { runs: sorted.len(), min, median: sorted[(sorted.len() - 1) / 2], max })
}

/// The rule of [`Mavericks`].
pub const MAVERICKS_RULE: &str = "> 2 x mean";

fn summarise(kind: LatencyKind, samples: &impl Ranked, thresholds_ns: &[u64]) -> Option<Latency> {
    let moments = samples.moments();
    let count = moments.count();
    let mean_ns = moments.mean()?;
    let quantile = |share: Share| samples.at_rank(share.rank(count));
    let share_above = |&ns: &u64| (ns.to_string(), samples.count_above(ns) as f64 / count as f64);
    let interval = MedianInterval::of(count);
    Some(Latency {
        kind,
        count,
        min_ns: samples.min_ns(),
        p10_ns: quantile(Share::P10),
        p50_ns: quantile(Share::P50),
        p90_ns: quantile(Share::P90),
        p99_ns: quantile(Share::P99),
        p999_ns: quantile(Share::P999),
        max_ns: samples.max_ns(),
        mean_ns,
        stddev_ns: moments.stddev(),
        p50_ci95_ns: interval.map(|ranks| [samples.at_rank(ranks.low), samples.at_rank(ranks.high)]),
        share_above: thresholds_ns.iter().map(share_above).collect::<BTreeMap<_, _>>(),
        share_above_bounds: BTreeMap::new(),
        mavericks: Mavericks { rule: MAVERICKS_RULE.to_owned(), count: count_mavericks(samples, moments) },
        resolution: samples.resolution(),
    })
}

/// Samples are integers, so a sample is above twice the mean if it is above the whole part of that.
fn count_mavericks(samples: &impl Ranked, moments: Moments) -> u64 {
    let twice_mean = moments.sum().saturating_mul(2) / u128::from(moments.count());
    u64::try_from(twice_mean).map_or(0, |ns| samples.count_above(ns))
}

/// Every sample, sorted.
struct Sorted<'a>(&'a [u64]);

impl Ranked for Sorted<'_> {
    fn moments(&self) -> Moments {
        self.0.iter().copied().collect()
    }

    fn at_rank(&self, rank: u64) -> u64 {
        self.0[rank as usize - 1]
    }

    fn count_above(&self, threshold_ns: u64) -> u64 {
        (self.0.len() - self.0.partition_point(|&ns| ns <= threshold_ns)) as u64
    }

    fn min_ns(&self) -> u64 {
        self.0[0]
    }

    fn max_ns(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    fn resolution(&self) -> Option<f64> {
        None
    }
}
