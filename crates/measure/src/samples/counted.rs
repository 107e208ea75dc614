//! Samples as the values that occur, each with its number of occurrences.

/// The values of samples, in ns and rising. Millions of samples have a few thousand values.
#[derive(Debug, Default)]
pub struct Counted {
    /// Each value, and the number of samples that are not above it.
    values: Vec<(u64, u64)>,
}

impl Counted {
    /// Counts samples. Those near the smallest are counted in an array with a place for each value,
    /// so that only the rest has to be sorted.
    pub fn new(samples: &[u64]) -> Self {
        let least = samples.iter().copied().min().unwrap_or_default();
        let most = samples.iter().copied().max().unwrap_or_default();
        // No more places than a few for each sample.
        let places = (most - least).saturating_add(1).min(PLACES).min(4 * samples.len() as u64);
        let mut counts = vec![0u64; places as usize];
        let mut rest = Vec::new();
        for sample in samples {
            match counts.get_mut((sample - least) as usize) {
                Some(count) => *count += 1,
                None => rest.push(*sample),
            }
        }
        rest.sort_unstable();
        let near = (0..).zip(counts).filter(|(_, count)| *count > 0);
        let near = near.map(|(place, count)| (least + place, count));
        let far = rest.chunk_by(u64::eq).map(|same| (same[0], same.len() as u64));
        Self::rising(near.chain(far))
    }

    /// Counts from values in any order, each with its number of occurrences.
    pub fn of(mut counts: Vec<(u64, u64)>) -> Self {
        counts.sort_unstable();
        Self::rising(counts.into_iter())
    }

    /// The samples of several sets.
    pub fn merged(all: &[Self]) -> Self {
        Self::of(all.iter().flat_map(Self::counts).collect())
    }

    fn rising(counts: impl Iterator<Item = (u64, u64)>) -> Self {
        let up_to = |seen: &mut u64, (value, count): (u64, u64)| {
            *seen = seen.saturating_add(count);
            Some((value, *seen))
        };
        Self { values: counts.scan(0, up_to).collect() }
    }

    /// Each value with its number of occurrences.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let before = [0].into_iter().chain(self.values.iter().map(|(_, up_to)| *up_to));
        self.values.iter().zip(before).map(|((value, up_to), before)| (*value, up_to - before))
    }

    /// The number of samples.
    pub fn total(&self) -> u64 {
        self.values.last().map_or(0, |(_, up_to)| *up_to)
    }

    /// The number of samples below a value.
    pub fn below(&self, value: u64) -> u64 {
        let values = self.values.partition_point(|(known, _)| *known < value);
        self.values[..values].last().map_or(0, |(_, up_to)| *up_to)
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<u64> {
        self.values.first().map(|(value, _)| *value)
    }

    /// The largest sample.
    pub fn max(&self) -> Option<u64> {
        self.values.last().map(|(value, _)| *value)
    }

    /// The sample at a rank; the smallest has rank 1.
    pub fn at(&self, rank: u64) -> Option<u64> {
        let place = self.values.partition_point(|(_, up_to)| *up_to < rank);
        self.values.get(place).map(|(value, _)| *value)
    }
}

/// Largest number of places of the array that counts samples: 4 ms of latencies, and 32 MiB of
/// memory.
const PLACES: u64 = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_whether_near_the_least_or_far() {
        let far = u64::MAX;
        let samples = [7, far, 5, 7, 5 + PLACES, 4 + PLACES, 7, 5 + PLACES, 900];
        let counted = Counted::new(&samples);
        let values = [(5, 1), (7, 3), (900, 1), (4 + PLACES, 1), (5 + PLACES, 2), (far, 1)];
        assert!(counted.counts().eq(values));
        assert!(Counted::of(values.into_iter().rev().collect()).counts().eq(values));
        let twice = Counted::merged(&[Counted::new(&samples), counted]);
        assert_eq!((twice.total(), twice.below(7), twice.below(8), twice.at(18)), (18, 2, 8, Some(far)));
        let counted = Counted::new(&samples);
        assert_eq!((counted.total(), counted.min(), counted.max()), (9, Some(5), Some(far)));
        assert_eq!([1, 2, 4, 5, 9].map(|rank| counted.at(rank).unwrap()), [5, 7, 7, 900, far]);
        assert!(Counted::new(&[]).max().is_none() && Counted::new(&[far]).counts().eq([(far, 1)]));
    }
}
