//! The distribution of samples in bounded memory, for runs that are too long to keep every sample.

use hdrhistogram::Histogram as Counts;

use super::series::BlockSums;
use crate::record::Histogram;
use crate::stats::{Moments, Ranked};

/// Samples in buckets whose width is [`Distribution::RESOLUTION`] of their value; below 2048 ns it
/// is exactly 1 ns. Count, smallest, largest, mean and deviation are exact. Samples above 60 s
/// share the last bucket.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Counts<u64>,
    moments: Moments,
    min_ns: u64,
    max_ns: u64,
    blocks: BlockSums,
}

impl Distribution {
    /// Bound on the width of a bucket relative to the values in it. Three significant digits need
    /// 2^11 divisions of a range that starts at 0; the lower half of them belongs to the range
    /// below.
    pub const RESOLUTION: f64 = 1.0 / 1024.0;

    /// An empty distribution.
    pub fn new() -> Self {
        let mut counts = Counts::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("the bounds are in order");
        // Writes every bucket, so that its first use causes no page fault.
        counts.reset();
        Self { counts, moments: Moments::default(), min_ns: u64::MAX, max_ns: 0, blocks: BlockSums::new() }
    }

    /// The distribution of samples in ns, in the order of time.
    pub fn of(samples_ns: &[u64]) -> Self {
        let mut distribution = Self::new();
        samples_ns.iter().for_each(|&ns| distribution.add(ns));
        distribution
    }

    /// Adds a sample in ns.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.counts.saturating_record(ns);
        self.moments.add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.blocks.add(ns.min(HIGHEST_NS));
    }

    /// Adds the samples of another distribution. The order of time is lost: the blocks stay those
    /// of `self`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("every distribution has the same buckets");
        self.moments.merge(&other.moments);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// The buckets that are not empty, as the record has them.
    pub fn histogram(&self) -> Histogram {
        Histogram { buckets: self.buckets().collect() }
    }

    pub(super) fn block_means_ns(&self) -> Vec<f64> {
        self.blocks.means_ns()
    }

    /// Lower edge (inclusive), upper edge (exclusive) and count. The last bucket reaches up to the
    /// largest sample.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let last = self.counts.lowest_equivalent(HIGHEST_NS);
        self.counts.iter_recorded().map(move |step| {
            let low = self.counts.lowest_equivalent(step.value_iterated_to());
            let high = self.counts.next_non_equivalent(low);
            let high = if low == last { high.max(self.max_ns.saturating_add(1)) } else { high };
            (low, high, step.count_at_value())
        })
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Ranked for Distribution {
    fn moments(&self) -> Moments {
        self.moments
    }

    /// The middle of the sample's bucket, or the exact smallest or largest sample where that is
    /// nearer.
    fn at_rank(&self, rank: u64) -> u64 {
        let mut below = 0;
        let bucket = self.buckets().find(|&(_, _, count)| {
            below += count;
            below >= rank
        });
        let (low, high, _) = bucket.unwrap_or((self.max_ns, self.max_ns.saturating_add(1), 0));
        middle(low, high).clamp(self.min_ns, self.max_ns)
    }

    /// The bucket that holds the threshold counts if its middle is above the threshold.
    fn count_above(&self, threshold_ns: u64) -> u64 {
        let above = |&(low, high, _): &(u64, u64, u64)| middle(low, high) > threshold_ns;
        self.buckets().filter(above).map(|(_, _, count)| count).sum()
    }

    fn min_ns(&self) -> u64 {
        self.min_ns
    }

    fn max_ns(&self) -> u64 {
        self.max_ns
    }

    fn resolution(&self) -> Option<f64> {
        Some(Self::RESOLUTION)
    }
}

/// The middle of the whole nanoseconds in a bucket.
fn middle(low: u64, high: u64) -> u64 {
    low + (high - 1 - low) / 2
}

/// 60 s: longer than any useful wait of a point.
const HIGHEST_NS: u64 = 60_000_000_000;
/// Three significant digits.
const DIGITS: u8 = 3;
