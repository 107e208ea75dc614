//! The series of levels of a run, from all samples or from a histogram's blocks.

/// Levels in a [`super::Samples::series`]: enough that a shift of 5 % of a run spans three of them.
pub const SERIES_BLOCKS: usize = 64;

/// Medians of at most [`SERIES_BLOCKS`] blocks of values, whose lengths differ by at most one. The
/// median of an even number of values is the lower of the middle two, as everywhere in this crate.
pub(super) fn block_medians<T: Copy + Into<Level>>(values: &[T]) -> Vec<f64> {
    blocks(values, SERIES_BLOCKS).map(median).collect()
}

/// At most `most` blocks of consecutive values, none of them empty, whose lengths differ by at most
/// one.
pub fn blocks<T>(values: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let blocks = values.len().min(most);
    let edge = move |block: usize| values.len() * block / blocks;
    (0..blocks).map(move |block| &values[edge(block)..edge(block + 1)])
}

fn median<T: Copy + Into<Level>>(values: &[T]) -> f64 {
    let mut levels: Vec<f64> = values.iter().map(|&value| value.into().0).collect();
    let middle = (levels.len() - 1) / 2;
    let (_, median, _) = levels.select_nth_unstable_by(middle, f64::total_cmp);
    *median
}

/// A value of a series, in ns.
pub(super) struct Level(f64);

impl From<f64> for Level {
    fn from(ns: f64) -> Self {
        Self(ns)
    }
}

impl From<u64> for Level {
    fn from(ns: u64) -> Self {
        Self(ns as f64)
    }
}

/// Sums of consecutive blocks of 2^k samples, at most [`BLOCKS_MAX`] of them. When they are full,
/// pairs become one block each and k rises by one. One pair is folded with each new block, from one
/// array into another, so that no single sample takes the time of all.
#[derive(Clone, Debug)]
pub(super) struct BlockSums {
    /// `sums[..len]` in the order of time, except for the pairs that still wait in `full`.
    sums: Vec<u64>,
    len: usize,
    /// Blocks of half the length. Its last `waiting` pairs belong in front of
    /// `sums[BLOCKS_MAX / 2]`.
    full: Vec<u64>,
    waiting: usize,
    block_samples: u64,
    open_sum: u64,
    open_left: u64,
}

impl BlockSums {
    pub(super) fn new() -> Self {
        // Not zeros, because the system provides zeros without touching pages.
        let written = || vec![u64::MAX; BLOCKS_MAX];
        let sums = written();
        let full = written();
        Self { sums, len: 0, full, waiting: 0, block_samples: 1, open_sum: 0, open_left: 1 }
    }

    /// Adds the next sample.
    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        self.open_sum = self.open_sum.saturating_add(ns);
        self.open_left -= 1;
        if self.open_left == 0 {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        if self.waiting > 0 {
            let pair = FOLDED - self.waiting;
            self.sums[pair] = self.folded(pair);
            self.waiting -= 1;
        }
        self.sums[self.len] = self.open_sum;
        self.len += 1;
        if self.len == BLOCKS_MAX {
            // As many blocks were closed since the last swap as there were pairs, so none waits.
            std::mem::swap(&mut self.sums, &mut self.full);
            (self.len, self.waiting) = (FOLDED, FOLDED);
            self.block_samples *= 2;
        }
        (self.open_sum, self.open_left) = (0, self.block_samples);
    }

    fn folded(&self, pair: usize) -> u64 {
        self.full[2 * pair].saturating_add(self.full[2 * pair + 1])
    }

    /// Mean of each closed block, in ns, in the order of time.
    pub(super) fn means_ns(&self) -> Vec<f64> {
        let sum = |block: usize| {
            let is_waiting = (FOLDED - self.waiting..FOLDED).contains(&block);
            if is_waiting { self.folded(block) } else { self.sums[block] }
        };
        (0..self.len).map(|block| sum(block) as f64 / self.block_samples as f64).collect()
    }
}

/// The largest number of blocks. At least half as many exist after that many samples.
const BLOCKS_MAX: usize = 4096;
const FOLDED: usize = BLOCKS_MAX / 2;
