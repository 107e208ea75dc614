//! The critical value of many points at once: whole runs are permuted, so that points which vary
//! together count as little as they should (Westfall and Young, Resampling-Based Multiple Testing,
//! 1993).
//!
//! All points share one critical value k. It is the largest for which the smallest statistic of all
//! points is at most k in at most a share alpha of the orders. Numbers of a point that are equal
//! (steps of a clock) get their ranks in a random order, so that each point's own statistic has the
//! distribution that it has without ties: otherwise points with ties would decide k for all.
//!
//! A shift that many points have in common makes their permuted statistics agree although their
//! noise does not, which would make k too large for their intervals. So k is the smaller one of the
//! numbers as they are (the test that nothing differs) and of the numbers without their shifts (the
//! intervals).

use measure::random::Random;

use crate::orders::{ranked, shuffle};
use crate::{ranks, signs};

/// The numbers of one point: of the base's units and of the new side's, in the order of units. Each
/// point of a call has the same units.
pub type Sides = [Vec<f64>; 2];

/// Orders that are drawn where there are too many to try them all.
const ORDERS: usize = 9_999;
/// The most runs of which all orders are tried.
const ALL_MAX: usize = 10;
/// The seed of all draws.
const SEED: u64 = 0x7265_7065_6174;

/// Returns the critical value of independent sides for all points: at most this many differences
/// lie on one side of 0 with a probability of at most `alpha` for any of the points. `None` if this
/// many units cannot decide this many points.
#[must_use]
pub fn unpaired(points: &[Sides], alpha: f64) -> Option<usize> {
    let [base, new] = points.first()?;
    let without_shift = |[base, new]: &Sides| {
        let shift = ranks::shift(&ranks::differences(base, new)).unwrap_or(0.0);
        [base.clone(), new.iter().map(|y| y - shift).collect()]
    };
    let centred: Vec<Sides> = points.iter().map(without_shift).collect();
    let permuted = labels(points, alpha).min(labels(&centred, alpha));
    // Drawn orders can miss the exact tail by chance; Bonferroni's bound holds for any dependence.
    permuted.max(ranks::critical(base.len(), new.len(), alpha / (2 * points.len()) as f64))
}

/// Returns the critical value of pairs for all points, from the differences of each point in the
/// order of pairs: the ranks of one sign add up to at most this with a probability of at most
/// `alpha` for any of the points. A pair's sign is changed for all points at once. `None` if this
/// many pairs cannot decide this many points.
#[must_use]
pub fn paired(points: &[Vec<f64>], alpha: f64) -> Option<usize> {
    let pairs = points.first()?.len();
    let without_shift = |point: &Vec<f64>| {
        let shift = signs::shift(&signs::averages(point)).unwrap_or(0.0);
        point.iter().map(|difference| difference - shift).collect()
    };
    let centred: Vec<Vec<f64>> = points.iter().map(without_shift).collect();
    let permuted = changed_signs(points, alpha).min(changed_signs(&centred, alpha));
    permuted.max(signs::critical(pairs, alpha / (2 * points.len()) as f64))
}

/// The critical value from permuted labels of runs.
fn labels(points: &[Sides], alpha: f64) -> Option<usize> {
    let sizes = points.first()?.each_ref().map(Vec::len);
    let total = sizes[0] + sizes[1];
    let mut random = Random(SEED);
    let by_point: Vec<Vec<u32>> = points.iter().map(|sides| ranked(&sides.concat(), &mut random)).collect();
    let by_unit = transposed(&by_point, total);
    let least = (sizes[1] * sizes[1].saturating_sub(1) / 2) as u32;
    let mut counts = Counts::new((sizes[0] * sizes[1]) as u32);
    let mut sums = vec![0; points.len()];
    let mut see = |is_new: &mut dyn FnMut(usize) -> bool| {
        sums.fill(0);
        for (_, ranks) in by_unit.iter().enumerate().filter(|(unit, _)| is_new(*unit)) {
            sums.iter_mut().zip(ranks).for_each(|(sum, rank)| *sum += rank);
        }
        counts.see(sums.iter().map(|sum| sum - least));
    };
    if total <= ALL_MAX {
        let chosen = (0_u32..1 << total).filter(|chosen| chosen.count_ones() as usize == sizes[1]);
        chosen.for_each(|chosen| see(&mut |unit| chosen >> unit & 1 == 1));
    } else {
        let mut is_new: Vec<bool> = (0..total).map(|unit| unit >= sizes[0]).collect();
        see(&mut |unit| is_new[unit]);
        for _ in 0..ORDERS {
            shuffle(&mut is_new, &mut random);
            see(&mut |unit| is_new[unit]);
        }
    }
    counts.critical(alpha)
}

/// The critical value from changed signs of pairs.
fn changed_signs(points: &[Vec<f64>], alpha: f64) -> Option<usize> {
    let pairs = points.first()?.len();
    let mut random = Random(SEED);
    let by_point: Vec<Vec<i64>> = points.iter().map(|point| signed_ranks(point, &mut random)).collect();
    let by_pair = transposed(&by_point, pairs);
    let mut counts = Counts::new((pairs * (pairs + 1) / 2) as u32);
    let mut sums = vec![0; points.len()];
    let mut see = |is_changed: &mut dyn FnMut(usize) -> bool| {
        sums.fill(0);
        for (pair, ranks) in by_pair.iter().enumerate() {
            // The own sign of a point's difference times the common sign of the pair.
            let common = if is_changed(pair) { -1 } else { 1 };
            sums.iter_mut().zip(ranks).for_each(|(sum, rank)| *sum += (common * rank).max(0) as u32);
        }
        counts.see(sums.iter().copied());
    };
    if pairs <= ALL_MAX {
        (0_u32..1 << pairs).for_each(|changed| see(&mut |pair| changed >> pair & 1 == 1));
    } else {
        see(&mut |_| false);
        (0..ORDERS).for_each(|_| see(&mut |_| random.bits() >> 63 == 1));
    }
    counts.critical(alpha)
}

/// Returns the ranks of the differences' sizes, from 1, with the differences' signs. A difference
/// of 0 gets a random sign.
fn signed_ranks(differences: &[f64], random: &mut Random) -> Vec<i64> {
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranks = ranked(&sizes, random);
    let mut signed = |(rank, difference): (u32, &f64)| {
        let is_negative = if *difference == 0.0 { random.bits() >> 63 == 1 } else { *difference < 0.0 };
        if is_negative { -i64::from(rank + 1) } else { i64::from(rank + 1) }
    };
    ranks.into_iter().zip(differences).map(&mut signed).collect()
}

/// Returns rows as columns.
fn transposed<T: Copy>(rows: &[Vec<T>], columns: usize) -> Vec<Vec<T>> {
    (0..columns).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

/// How often each smallest statistic of an order was seen.
struct Counts {
    of: Vec<usize>,
    orders: usize,
    most: u32,
}

impl Counts {
    fn new(most: u32) -> Self {
        Self { of: vec![0; most as usize / 2 + 1], orders: 0, most }
    }

    /// Counts an order from the statistics of its points. The other side's statistic is `most`
    /// without it.
    fn see(&mut self, statistics: impl Iterator<Item = u32>) {
        let least = statistics.map(|one| one.min(self.most - one)).min().unwrap_or(0);
        self.of[least as usize] += 1;
        self.orders += 1;
    }

    /// Returns the largest statistic that at most a share of the orders do not exceed. The order
    /// that was measured is one of them.
    fn critical(&self, alpha: f64) -> Option<usize> {
        let orders = self.orders as f64;
        let shares: Vec<f64> = self.of.iter().map(|count| *count as f64 / orders).collect();
        crate::orders::largest_within(&shares, alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that vary from unit to unit, with a share that all points have in common.
    fn numbers(points: usize, units: usize, common: f64) -> Vec<Vec<f64>> {
        let mut random = Random(5);
        let shared: Vec<f64> = (0..units).map(|_| common * random.normal()).collect();
        (0..points).map(|_| shared.iter().map(|shared| shared + random.normal()).collect()).collect()
    }

    fn sides(points: usize, n: usize, common: f64) -> Vec<Sides> {
        numbers(points, 2 * n, common).into_iter().map(|all| [all[..n].to_vec(), all[n..].to_vec()]).collect()
    }

    #[test]
    fn one_point_has_the_exact_value() {
        assert_eq!(unpaired(&sides(1, 5, 0.0), 0.05), Some(2));
        assert!(matches!(unpaired(&sides(1, 10, 0.0), 0.05), Some(23 | 24)));
        assert_eq!(paired(&numbers(1, 8, 0.0), 0.05), Some(3));
        assert!(matches!(paired(&numbers(1, 16, 0.0), 0.05), Some(29 | 30)));
        assert_eq!(unpaired(&sides(1, 3, 0.0), 0.05), None);
        assert_eq!(unpaired(&[], 0.05), None);
        assert_eq!(paired(&[], 0.05), None);
    }

    #[test]
    fn points_that_vary_together_cost_little() {
        let together = unpaired(&sides(33, 10, 100.0), 0.05).unwrap();
        let alone = unpaired(&sides(33, 10, 0.0), 0.05).unwrap();
        assert!(together >= 20 && alone <= 12, "{together} and {alone} of 23");
        let together = paired(&numbers(33, 16, 100.0), 0.05).unwrap();
        let alone = paired(&numbers(33, 16, 0.0), 0.05).unwrap();
        assert!(together >= 25 && alone <= 14, "{together} and {alone} of 29");
    }

    /// The signs of the points of a pair are opposite: without a point's own sign, the permutation
    /// is of another family.
    #[test]
    fn points_of_opposite_signs_are_one_question() {
        let one = numbers(1, 12, 0.0).remove(0);
        let opposite: Vec<f64> = one.iter().map(|number| -number).collect();
        assert_eq!(paired(&[one.clone(), opposite], 0.05), paired(&[one], 0.05));
    }

    #[test]
    fn ties_leave_the_value_of_the_others() {
        let mut all = sides(3, 10, 0.0);
        let without = unpaired(&all, 0.05).unwrap();
        all[2] = [vec![95.0; 10], vec![95.0; 10]];
        let with = unpaired(&all, 0.05).unwrap();
        assert!(with.abs_diff(without) <= 2, "{with}, without ties {without}");
    }
}
