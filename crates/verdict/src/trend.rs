//! Where a series of runs changes: the largest CUSUM of ranks, and binary segmentation (Pettitt, A
//! Non-Parametric Approach to the Change-Point Problem, Applied Statistics 28 (1979), 126-135;
//! Truong, Oudre and Vayatis, Selective review of offline change point detection methods, Signal
//! Processing 167 (2020), section 5.2).
//!
//! The null distribution comes from permuted runs; where neighbouring runs resemble each other,
//! from permuted blocks of runs.

use measure::random::Random;

use crate::orders::{middle, ranked, shuffle, sorted};
use crate::ranks;

/// The fewest runs on each side of a change.
pub const SEGMENT: usize = 5;
/// The largest p-value of a change, of one quantity.
pub const ALPHA: f64 = 0.01;
/// Neighbouring runs resemble each other if the correlation of their ranks, times the square root
/// of the number of runs, exceeds this. A smaller threshold costs power where runs do not; with 2,
/// 8 % of the series of `verdicts` whose neighbours correlate by 0.4 get a false change.
const RESEMBLING: f64 = 1.0;
/// This threshold takes the place of [`RESEMBLING`] in series that are too short for blocks: few
/// runs do not tell the correlation well. In the series of `verdicts` whose neighbours correlate by
/// 0.4, 3.7 % of those of 15 runs get a false change with 0.5, and 4.8 % of those of 30 runs with
/// 1.
const RESEMBLING_SHORT: f64 = 0.0;
/// Runs in a block, where neighbouring runs resemble each other. With 5, blocks still resemble each
/// other (4 % false changes in the same series); with 10, too few blocks find changes.
const BLOCK: usize = 8;
/// A change is far larger than the noise if it is larger than this number of interquartile ranges
/// of the residuals. Of normal noise, that is four standard deviations.
const FAR: f64 = 3.0;
/// Permutations of one quantity, the order that was measured included.
const ORDERS: usize = 1000;
/// Permutations that many quantities share: each gets fewer.
const ORDERS_SHARED: usize = 100_000;
/// The fewest of each quantity: with fewer, no change could reach its share of [`ALPHA`].
const ORDERS_LEAST: usize = (1.0 / ALPHA) as usize;
/// The seed of all permutations.
const SEED: u64 = 0x7472_656e_6473;

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The index of the first run after the change.
    pub at: usize,
    /// The difference between the runs after and before it, up to the next changes: the shift of
    /// Hodges and Lehmann, in the unit of the series.
    pub shift: f64,
}

/// What was found in a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The changes, in their order.
    pub changes: Vec<Change>,
    /// The fewest runs that can show a change, if the series has fewer and none was found: its
    /// orders are too few for any to be as improbable as a change must be.
    pub least: Option<usize>,
}

/// Returns the changes of a series, in their order: those that [`find`] finds.
#[must_use]
pub fn changes(series: &[f64], quantities: usize, margin: f64) -> Vec<Change> {
    find(series, quantities, margin).changes
}

/// Looks for changes in a series. `quantities` is the number of series that are asked about
/// together: each gets that share of [`ALPHA`]. A change is said only if it is larger than a ratio
/// of 1 + `margin` of the numbers, of which the series has the logarithms.
#[must_use]
pub fn find(series: &[f64], quantities: usize, margin: f64) -> Found {
    let too_few = |block: usize| Some(fewest(quantities, block)).filter(|fewest| series.len() < *fewest);
    if let Some(least) = too_few(1) {
        return Found { changes: Vec::new(), least: Some(least) };
    }
    let mut places = segmented(series, quantities, 1);
    let mut least = None;
    let too_few_blocks = too_few(BLOCK);
    // Residuals of independent runs correlate by -1 / n for each middle that was taken out.
    let resemble = || {
        let n = series.len() as f64;
        let taken = (places.len() + 1) as f64 / n;
        let most = if too_few_blocks.is_some() { RESEMBLING_SHORT } else { RESEMBLING };
        autocorrelation(&residuals(series, &places)) + taken > most / n.sqrt()
    };
    // Blocks find no change where single runs find none.
    if !places.is_empty() && resemble() {
        let by_runs = std::mem::replace(&mut places, segmented(series, quantities, BLOCK));
        if places.is_empty() && too_few_blocks.is_some() {
            places = beyond_noise(series, &by_runs);
            least = too_few_blocks.filter(|_| places.is_empty());
        }
    }
    // The smallest change goes first: without it, its neighbours have longer segments.
    let smallest_said = margin.ln_1p();
    loop {
        let changes = shifts(series, &places);
        let smallest = changes.iter().min_by(|a, b| a.shift.abs().total_cmp(&b.shift.abs()));
        match smallest.filter(|change| change.shift.abs() <= smallest_said) {
            Some(change) => places.retain(|at| *at != change.at),
            None => return Found { changes, least },
        }
    }
}

/// Returns the places of changes that are far larger than the noise. If a series is too short for
/// blocks and its neighbours resemble each other, only these changes are sure.
fn beyond_noise(series: &[f64], places: &[usize]) -> Vec<usize> {
    let around = sorted(residuals(series, places));
    let [first, third] = [0.25, 0.75].map(|share| around[(share * around.len() as f64) as usize]);
    let changes = shifts(series, places).into_iter();
    changes.filter(|change| change.shift.abs() > FAR * (third - first)).map(|change| change.at).collect()
}

/// Returns the fewest runs that can show a change in the middle. If all runs before a change are
/// below all after it, 2 of the (2h over h) choices of half of the 2h blocks are as improbable as
/// that: these and no others of the orders reach its CUSUM. Orders are drawn, so that more than
/// their share can come; half of what a change may have leaves room.
fn fewest(quantities: usize, block: usize) -> usize {
    let share = ALPHA / quantities.max(1) as f64 / 2.0;
    let mut half = 1;
    let mut choices = 2.0;
    while 2.0 / choices > share {
        half += 1;
        choices *= (4 * half - 2) as f64 / half as f64;
    }
    // The last block may have a single run.
    (block * (2 * half - 1) + 1).max(2 * SEGMENT)
}

/// Returns the places of significant changes, sorted.
fn segmented(series: &[f64], quantities: usize, block: usize) -> Vec<usize> {
    let mut random = Random(SEED);
    let quantities = quantities.max(1);
    let of_each = (ORDERS_SHARED / quantities).clamp(ORDERS_LEAST, ORDERS);
    // This many of the orders may reach a change, itself included.
    let most = of_each / ORDERS_LEAST;
    let mut places = Vec::new();
    let mut open = vec![(0, series.len())];
    while let Some((start, end)) = open.pop() {
        let ranks = ranked(&series[start..end], &mut random);
        let units = units(ranks.len());
        let Some((at, largest)) = largest(&ranks, &units) else { continue };
        let mut blocks: Vec<&[u32]> = ranks.chunks(block).collect();
        let mut order = Vec::with_capacity(ranks.len());
        let mut reached = 1;
        for _ in 1..of_each * quantities {
            shuffle(&mut blocks, &mut random);
            order.clear();
            blocks.iter().for_each(|block| order.extend_from_slice(block));
            let (_, other) = self::largest(&order, &units).unwrap_or((0, f64::INFINITY));
            reached += usize::from(other >= largest);
            if reached > most {
                break;
            }
        }
        if reached <= most {
            let at = start + at;
            places.push(at);
            open.extend([(start, at), (at, end)]);
        }
    }
    places.sort_unstable();
    places
}

/// Returns the inverse of the standard deviation of the CUSUM after each number of `n` runs: 0
/// where too few runs are on a side for a change.
fn units(n: usize) -> Vec<f64> {
    let unit = |k: usize| match k < SEGMENT || k + SEGMENT > n {
        true => 0.0,
        false => 1.0 / (k as f64 * (n - k) as f64 * (n as f64 + 1.0) / 12.0).sqrt(),
    };
    (1..=n).map(unit).collect()
}

/// Returns the place of the largest CUSUM of ranks (from 0), and its size in [`units`]; `None` for
/// too short a segment.
fn largest(ranks: &[u32], units: &[f64]) -> Option<(usize, f64)> {
    let mean = (ranks.len() as f64 - 1.0) / 2.0;
    let mut sum = 0.0;
    let mut best = None;
    for (k, (rank, unit)) in (1..).zip(ranks.iter().zip(units)) {
        sum += f64::from(*rank) - mean;
        if *unit == 0.0 {
            continue;
        }
        let size = f64::abs(sum) * unit;
        if best.is_none_or(|(_, most)| size > most) {
            best = Some((k, size));
        }
    }
    best
}

/// The segments between changes.
fn segments<'a>(series: &'a [f64], places: &'a [usize]) -> impl Iterator<Item = &'a [f64]> {
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([series.len()]);
    starts.zip(ends).map(|(start, end)| &series[start..end])
}

/// The differences of the runs from the middle of their segments.
fn residuals(series: &[f64], places: &[usize]) -> Vec<f64> {
    let of = |segment: &[f64]| {
        let centre = middle(&sorted(segment.to_vec())).unwrap_or(0.0);
        segment.iter().map(|y| y - centre).collect::<Vec<f64>>()
    };
    segments(series, places).flat_map(of).collect()
}

/// The correlation of the ranks of each two neighbours.
fn autocorrelation(series: &[f64]) -> f64 {
    let ranks = ranked(series, &mut Random(SEED));
    let mean = (ranks.len() as f64 - 1.0) / 2.0;
    let centred: Vec<f64> = ranks.into_iter().map(|rank| f64::from(rank) - mean).collect();
    let squares: f64 = centred.iter().map(|rank| rank * rank).sum();
    let products: f64 = centred.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}

/// The changes at these places, with their sizes.
fn shifts(series: &[f64], places: &[usize]) -> Vec<Change> {
    let all: Vec<&[f64]> = segments(series, places).collect();
    let shift = |pair: &[&[f64]]| ranks::shift(&ranks::differences(pair[0], pair[1])).unwrap_or(0.0);
    places.iter().zip(all.windows(2)).map(|(at, pair)| Change { at: *at, shift: shift(pair) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(seed: u64, steps: &[(usize, f64)], scale: f64, memory: f64) -> Vec<f64> {
        let mut random = Random(seed);
        let mut noise = 0.0;
        let mut next = |level: f64| {
            noise = memory * noise + scale * random.normal();
            level + noise
        };
        steps.iter().flat_map(|(n, level)| vec![*level; *n]).map(&mut next).collect()
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let found = changes(&series(1, &[(60, 0.0), (60, -0.1), (60, 0.1)], 0.01, 0.0), 1, 0.05);
        let places: Vec<usize> = found.iter().map(|change| change.at).collect();
        assert_eq!(places, [60, 120], "{found:?}");
        assert!((found[0].shift + 0.1).abs() < 0.01 && (found[1].shift - 0.2).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn changes_within_the_margin_or_of_few_runs_are_not_said() {
        assert_eq!(changes(&series(2, &[(40, 0.0), (40, -0.03)], 0.005, 0.0), 1, 0.05), []);
        assert_eq!(changes(&series(3, &[(60, 0.0), (3, -0.5)], 0.01, 0.0), 1, 0.05), []);
        for n in 0..10 {
            assert_eq!(changes(&series(4, &[(n, 0.0)], 0.01, 0.0), 1, 0.0), [], "{n} runs");
        }
        assert_eq!(changes(&[1.0; 60], 1, 0.0), [], "a constant");
    }

    #[test]
    fn series_in_which_no_change_could_be_found_say_how_many_runs_show_one() {
        let step = |runs: usize| series(5, &[(runs / 2, 0.0), (runs / 2, -0.5)], 0.01, 0.0);
        let found = |runs: usize, quantities: usize| {
            let found = find(&step(runs), quantities, 0.05);
            (found.changes.iter().map(|change| change.at).collect::<Vec<_>>(), found.least)
        };
        assert_eq!(found(10, 1), (vec![], Some(12)), "p = 2 / 252, nearly all of 1 %");
        assert_eq!(found(12, 1), (vec![6], None), "p = 2 / 924");
        assert_eq!(found(12, 3), (vec![], Some(14)));
        assert_eq!(found(14, 3), (vec![7], None));
        assert_eq!(found(16, 2000), (vec![], Some(24)));
        assert_eq!(found(30, 2000), (vec![15], None));
        let mut walks = (0..20).map(|seed| find(&series(seed, &[(40, 0.0)], 0.05, 0.9), 1, 0.0));
        let undecided = walks.find(|found| found.least.is_some()).unwrap();
        assert_eq!(undecided, Found { changes: Vec::new(), least: Some(11 * BLOCK + 1) }, "blocks");
    }

    /// In half of all short independent series, neighbours seem to resemble each other.
    #[test]
    fn short_series_whose_neighbours_resemble_each_other_show_changes_far_beyond_the_noise() {
        let mut found = Vec::new();
        for seed in 0..100 {
            let step = find(&series(seed, &[(30, 0.0), (30, -0.5)], 0.01, 0.0), 1, 0.05);
            let places: Vec<usize> = step.changes.iter().map(|change| change.at).collect();
            assert_eq!((places, step.least), (vec![30], None), "seed {seed}");
            found.push(find(&series(seed, &[(60, 0.0)], 0.01, 0.0), 33, 0.05));
        }
        let nothing = Found { changes: Vec::new(), least: None };
        assert!(found.iter().all(|found| *found == nothing), "{found:?}");
        // A walk is as far at its end as it varies on its way.
        let undecided = (0..100).map(|seed| find(&series(300 + seed, &[(40, 0.0)], 0.05, 0.9), 1, 0.0));
        let undecided = undecided.filter(|found| found.least.is_some()).count();
        assert!(undecided > 50, "{undecided} of 100 walks");
    }

    /// A random walk has no change, and permuting single runs finds many in it.
    #[test]
    fn runs_that_resemble_their_neighbours_are_permuted_in_blocks() {
        let walks = (0..10).map(|seed| series(100 + seed, &[(60, 0.0)], 0.05, 0.6));
        let [mut single, mut blocks] = [0, 0];
        for walk in walks {
            single += segmented(&walk, 1, 1).len();
            blocks += changes(&walk, 1, 0.0).len();
        }
        assert!(single > blocks, "{single} changes by single runs, {blocks} by blocks");
    }

    /// The largest CUSUM by its definition, from the ranks of `scipy.stats.rankdata`.
    #[test]
    fn the_largest_cusum_is_that_of_its_definition() {
        let ranks = [2_u32, 0, 3, 1, 4, 8, 5, 9, 7, 6, 11, 10];
        let (at, size) = largest(&ranks, &units(ranks.len())).unwrap();
        let by_hand = |k: usize| {
            let sum: f64 = ranks[..k].iter().map(|rank| f64::from(*rank) + 1.0 - 6.5).sum();
            sum.abs() / (k as f64 * (12 - k) as f64 * 13.0 / 12.0).sqrt()
        };
        assert!(at == 5 && (size / by_hand(5) - 1.0).abs() < 1e-12, "{at} {size}");
        assert!(by_hand(5) > by_hand(6) && by_hand(5) > by_hand(7));
    }
}
