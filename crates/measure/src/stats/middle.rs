//! The mean of the middle half of samples: a number that moves where a median sits on a step of the
//! clock.

use crate::record::Histogram;

/// The mean of the middle half of samples (the interquartile mean), and the step of the clock
/// there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MiddleMean {
    /// The mean of the samples above the lowest quarter and below the highest, in ns. Where a
    /// quarter of the count is not whole, samples at its edge count in part.
    pub mean_ns: f64,
    /// The smallest difference between two samples that differ, of the middle half and its nearest
    /// neighbours, in ns; `None` where all samples are the same.
    pub step_ns: Option<f64>,
}

impl MiddleMean {
    /// The mean of the middle half of samples in ns, in any order; `None` without samples.
    pub fn of(samples_ns: &[u64]) -> Option<Self> {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let counted: Vec<(f64, f64)> =
            sorted.chunk_by(|a, b| a == b).map(|same| (same[0] as f64, same.len() as f64)).collect();
        Self::of_counted(&counted)
    }

    /// The same from a histogram, as if all samples of a bucket were in its middle.
    pub fn of_histogram(histogram: &Histogram) -> Option<Self> {
        let middle = |low: u64, high: u64| f64::midpoint(low as f64, high.saturating_sub(1) as f64);
        let counted: Vec<(f64, f64)> =
            histogram.buckets.iter().map(|&(low, high, count)| (middle(low, high), count as f64)).collect();
        Self::of_counted(&counted)
    }

    /// The same from values that differ, in rising order, with their counts.
    fn of_counted(counted: &[(f64, f64)]) -> Option<Self> {
        let total: f64 = counted.iter().map(|(_, count)| count).sum();
        let [from, to] = [total / 4.0, total * 3.0 / 4.0];
        let mut below = 0.0;
        let mut sum = 0.0;
        let mut inside = Vec::new();
        for (at, (ns, count)) in counted.iter().enumerate() {
            let part = (to.min(below + count) - from.max(below)).max(0.0);
            below += count;
            sum += part * ns;
            if part > 0.0 {
                inside.push(at);
            }
        }
        let first = inside.first()?.saturating_sub(1);
        let last = (inside.last()? + 1).min(counted.len() - 1);
        let steps = counted[first..=last].windows(2).map(|pair| pair[1].0 - pair[0].0);
        Some(Self { mean_ns: sum / (to - from), step_ns: steps.reduce(f64::min) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.trim_mean(x, 0.25)` where a quarter of the count is whole.
    #[test]
    fn the_mean_is_that_of_the_middle_half() {
        let of = |samples: &[u64]| MiddleMean::of(samples).unwrap();
        assert_eq!(of(&[90, 95, 95, 95, 100, 100, 105, 4000]).mean_ns, 97.5);
        assert_eq!(of(&[4000, 100, 95, 95, 105, 90, 100, 95]).step_ns, Some(5.0));
        // The middle half of 6 samples: half of the second, the third and the fourth, half of the
        // fifth.
        assert_eq!(of(&[1, 2, 3, 4, 5, 600]).mean_ns, (1.0 + 3.0 + 4.0 + 2.5) / 3.0);
        assert_eq!(of(&[7; 5]), MiddleMean { mean_ns: 7.0, step_ns: None });
        assert_eq!(MiddleMean::of(&[]), None);
        let buckets = vec![(90, 91, 1), (95, 96, 3), (100, 101, 2), (105, 106, 1), (4000, 4001, 1)];
        assert_eq!(
            MiddleMean::of_histogram(&Histogram { buckets }),
            MiddleMean::of(&[90, 95, 95, 95, 100, 100, 105, 4000])
        );
    }
}
