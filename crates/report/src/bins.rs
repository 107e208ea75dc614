//! Histograms of few bins for the report, from raw samples or from recorded buckets; the histograms
//! of a point have the same edges.
//!
//! Bins reach from the smallest sample to the largest of the 99.9th percentiles. Samples above are
//! counted, never dropped: `overflow` samples, the largest of which is `max_ns`.

use measure::samples::Counted;
use serde::Serialize;

use crate::timeline::Timeline;

/// The largest number of bins of a distribution, overflow included.
pub(crate) const BINS_MAX: usize = 200;

/// Above this ratio of the 99.9th percentile to the minimum, bins grow geometrically.
const LINEAR_RATIO_MAX: u64 = 3;

/// Steps of a spectrum in which the share of the samples above halves.
const STEPS_PER_HALF: f64 = 4.0;

/// A distribution.
#[derive(Debug)]
pub(crate) struct Source {
    /// Every sample; or the middle of each bucket, once for each of its samples.
    pub(crate) samples: Counted,
    /// For buckets, the smallest and the largest sample that they can hold.
    reach: Option<(u64, u64)>,
    /// How the samples follow each other, where their order is known.
    timeline: Option<Timeline>,
}

impl Source {
    /// Every sample.
    pub(crate) fn of_samples(samples: Counted) -> Self {
        Self { samples, reach: None, timeline: None }
    }

    /// The same samples, which follow each other so.
    pub(crate) fn following(self, timeline: Option<Timeline>) -> Self {
        Self { timeline, ..self }
    }

    /// Lower edge, upper edge (exclusive) and count of buckets, in rising order.
    pub(crate) fn of_buckets(buckets: &[(u64, u64, u64)]) -> Self {
        // A record may come from anywhere: its buckets may be unsorted or large.
        let largest = |(low, high, _): &(u64, u64, u64)| high.saturating_sub(1).max(*low);
        let least = buckets.iter().map(|bucket| bucket.0).min().unwrap_or_default();
        let reach = (least, buckets.last().map(largest).unwrap_or_default());
        let middle = |(low, high, count): &(u64, u64, u64)| {
            (low + high.saturating_sub(*low).saturating_sub(1) / 2, *count)
        };
        Self {
            samples: Counted::of(buckets.iter().map(middle).collect()),
            reach: Some(reach),
            timeline: None,
        }
    }

    /// Whether buckets stand for samples.
    pub(crate) fn is_approximate(&self) -> bool {
        self.reach.is_some()
    }

    fn range(&self) -> Option<Range> {
        let min = self.reach.map(|(least, _)| least).or(self.samples.min())?;
        // Buckets may all be empty.
        let p999 = self.samples.at(rank_of_999(self.samples.total())).or(self.samples.max())?;
        Some(Range { min, p999: p999.max(min) })
    }

    fn count(&self, name: &str, edges: &[u64]) -> NamedBins {
        let below = |edge: u64| self.samples.below(edge);
        let counts: Vec<u64> = edges.windows(2).map(|edges| below(edges[1]) - below(edges[0])).collect();
        let total = self.samples.total();
        let max_ns = self.reach.map(|(_, largest)| largest).or(self.samples.max());
        NamedBins {
            name: name.to_owned(),
            source: if self.is_approximate() { "histogram" } else { "samples" },
            total,
            overflow: total - counts.iter().sum::<u64>(),
            counts,
            max_ns: max_ns.unwrap_or_default(),
            spectrum: self.spectrum(),
            timeline: self.timeline.clone(),
        }
    }

    /// The samples at rising shares of all, as HdrHistogram lists them (inverse of the empirical
    /// distribution function).
    fn spectrum(&self) -> Vec<u64> {
        let total = self.samples.total();
        let steps = (total.max(1) as f64).log2() * STEPS_PER_HALF;
        let above = |step: u32| (total as f64 * (-f64::from(step) / STEPS_PER_HALF).exp2()) as u64;
        let rank = |step: u32| (total - above(step).min(total)).max(1);
        (0..=steps as u32 + 1).filter_map(|step| self.samples.at(rank(step))).collect()
    }
}

/// The histograms of a point.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Bins {
    /// Edges of the bins in ns, one more than there are bins; a bin holds its lower edge but not
    /// its upper.
    pub(crate) edges: Vec<u64>,
    /// Whether the bins grow geometrically.
    pub(crate) logarithmic: bool,
    /// The ranks in order, or the kinds of latency.
    pub(crate) ends: Vec<NamedBins>,
}

/// The histogram of one rank or of one kind of latency.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct NamedBins {
    /// `rank 0`, or the name of the kind.
    pub(crate) name: String,
    /// `samples` or `histogram`.
    pub(crate) source: &'static str,
    /// Number of all samples, overflow included.
    pub(crate) total: u64,
    /// Samples in each bin.
    pub(crate) counts: Vec<u64>,
    /// Samples above the last edge.
    pub(crate) overflow: u64,
    /// The largest sample, in ns (of buckets: the largest that the last one can hold).
    pub(crate) max_ns: u64,
    /// Samples in ns: the number `i` is not below the share 1 - 2^(-i / 4) of all samples. The last
    /// is the largest sample.
    pub(crate) spectrum: Vec<u64>,
    /// How the samples follow each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<Timeline>,
}

/// Bins the distributions of a point; `None` when there is no sample.
pub(crate) fn bin(ends: &[(String, Source)]) -> Option<Bins> {
    let ranges: Vec<Range> = ends.iter().filter_map(|(_, source)| source.range()).collect();
    let low = ranges.iter().map(|r| r.min).min()?;
    let high = ranges.iter().map(|r| r.p999).max()?;
    let (edges, logarithmic) = edges(low, high);
    let ends = ends.iter().map(|(name, source)| source.count(name, &edges)).collect();
    Some(Bins { edges, logarithmic, ends })
}

struct Range {
    min: u64,
    p999: u64,
}

/// The edges of bins from one sample to another, and whether the bins grow geometrically.
fn edges(low: u64, high: u64) -> (Vec<u64>, bool) {
    let bins = BINS_MAX as u64 - 1;
    let span = (high - low).saturating_add(1);
    if span <= bins || high / LINEAR_RATIO_MAX <= low {
        let width = span.div_ceil(bins);
        let edge = |bin: u64| low.saturating_add(bin.saturating_mul(width));
        return ((0..=span.div_ceil(width)).map(edge).collect(), false);
    }
    let from = low.max(1) as f64;
    let growth = ((high as f64 + 1.0) / from).ln() / (bins - 1) as f64;
    let mut edges: Vec<u64> = (0..bins).map(|i| (from * (growth * i as f64).exp()).round() as u64).collect();
    edges[0] = low;
    if let Some(last) = edges.last_mut() {
        *last = (*last).max(high.saturating_add(1));
    }
    edges.dedup();
    (edges, true)
}

/// The rank of the 99.9th percentile among `count` samples (inverse of the empirical distribution
/// function).
fn rank_of_999(count: u64) -> u64 {
    (count - count / 1000).clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rank: u32) -> String {
        format!("rank {rank}")
    }

    fn counted(end: &NamedBins) -> u64 {
        end.counts.iter().sum::<u64>() + end.overflow
    }

    #[test]
    fn no_sample_is_lost_and_bins_are_few() {
        let narrow: Vec<u64> = (0..100_000).map(|i| 800 + i % 431).collect();
        let wide: Vec<u64> = (0..100_000u64).map(|i| 700 + i * i / 1000).collect();
        for samples in [narrow, wide, vec![5], vec![0, 0, 1 << 60], vec![u64::MAX, 1]] {
            let count = samples.len() as u64;
            let bins = bin(&[(end(0), Source::of_samples(Counted::new(&samples)))]).unwrap();
            assert!(bins.edges.len() <= BINS_MAX, "{}", bins.edges.len());
            assert!(bins.edges.is_sorted());
            assert_eq!(bins.ends[0].total, count);
            assert_eq!(counted(&bins.ends[0]), count);
        }
    }

    #[test]
    fn buckets_that_no_program_writes_do_no_harm() {
        let spoilt = [(900, 910, 3), (10, 5, u64::MAX), (u64::MAX, 0, u64::MAX)];
        let bins = bin(&[(end(0), Source::of_buckets(&spoilt))]).unwrap();
        assert!(bins.edges.is_sorted());
        assert!(bin(&[(end(0), Source::of_buckets(&[]))]).is_none());
        let names = |buckets: &[_]| {
            let ends =
                [(end(0), Source::of_samples(Counted::new(&[7]))), (end(1), Source::of_buckets(buckets))];
            bin(&ends).unwrap().ends.into_iter().map(|end| (end.source, end.total)).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), [("samples", 1), ("histogram", 0)]);
        assert!(bin(&[(end(0), Source::of_buckets(&[(900, 910, 0)]))]).is_some());
    }

    #[test]
    fn outliers_go_to_the_overflow_with_their_maximum() {
        let mut samples: Vec<u64> = (0..9_995).map(|i| 1000 + i % 100).collect();
        samples.extend([90_000; 5]);
        let bins = bin(&[(end(0), Source::of_samples(Counted::new(&samples)))]).unwrap();
        assert_eq!((bins.ends[0].overflow, bins.ends[0].max_ns), (5, 90_000));
        assert!(!bins.logarithmic);
        assert_eq!((bins.edges[0], *bins.edges.last().unwrap()), (1000, 1100));
        assert_eq!(bins.ends[0].counts.iter().sum::<u64>(), 9_995);
    }

    #[test]
    fn a_long_tail_is_binned_geometrically() {
        let samples: Vec<u64> = (0..10_000u64).map(|i| 500 + i * i).collect();
        let bins = bin(&[(end(0), Source::of_samples(Counted::new(&samples)))]).unwrap();
        assert!(bins.logarithmic);
        let edges = &bins.edges;
        assert!(edges[1] - edges[0] < edges[edges.len() - 1] - edges[edges.len() - 2]);
    }

    #[test]
    fn both_ends_share_their_edges_and_buckets_count_too() {
        let buckets = [(1000, 1002, 7), (1010, 1020, 2), (5000, 5100, 1)];
        let ends = [
            (end(0), Source::of_samples(Counted::new(&[990, 1005]))),
            (end(1), Source::of_buckets(&buckets)),
        ];
        let bins = bin(&ends).unwrap();
        assert_eq!(bins.edges[0], 990);
        assert_eq!(bins.ends.iter().map(counted).collect::<Vec<_>>(), [2, 10]);
        assert_eq!((bins.ends[1].source, bins.ends[1].max_ns), ("histogram", 5099));
        assert_eq!(bin(&[(end(0), Source::of_samples(Counted::new(&[])))]), None);
    }

    #[test]
    fn the_spectrum_goes_from_the_smallest_to_the_largest_sample() {
        let spectrum = |samples: &[u64]| Source::of_samples(Counted::new(samples)).spectrum();
        let samples: Vec<u64> = (1..=1024).collect();
        let of_many = spectrum(&samples);
        assert_eq!((of_many.len(), of_many[0], of_many[41]), (42, 1, 1024));
        // Half, three quarters, seven eighths of the samples, and all but one.
        assert_eq!([4, 8, 12, 40].map(|step| of_many[step]), [512, 768, 896, 1023]);
        assert!(of_many.is_sorted());
        assert_eq!((spectrum(&[7]), spectrum(&[])), (vec![7, 7], vec![]));
        assert_eq!(spectrum(&[7, 9]), [7, 7, 7, 7, 7, 9]);
    }

    #[test]
    fn the_quantile_is_that_of_the_record() {
        assert_eq!(
            (rank_of_999(1), rank_of_999(999), rank_of_999(1000), rank_of_999(10_000)),
            (1, 999, 999, 9_990)
        );
    }
}
