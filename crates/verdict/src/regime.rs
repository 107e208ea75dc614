//! Regimes of placement: a hypervisor or a scheduler puts the CPUs of a run near each other or far
//! apart, and the core-to-core latency around each point shows which. Runs of different regimes
//! are not compared.

use std::collections::BTreeMap;

/// Neighbouring core-to-core latencies in their order belong to two regimes if they differ by more
/// than this factor.
pub const FAR: f64 = 2.0;
/// Counts of regimes that are less probable than this differ.
const ALPHA: f64 = 0.01;

/// The regime of each number, and whether the sides are placed alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// Whether each number of the base, and of the new side, is of the regime that is compared.
    pub kept: [Vec<bool>; 2],
    /// Whether the counts of that regime differ between the sides.
    pub differs: bool,
}

/// Chooses the regime that is compared from the core-to-core latencies of both sides: the most
/// frequent one that both sides have, and of several the nearest. Numbers without a latency are of
/// every regime.
#[must_use]
pub fn common(base: &[Option<f64>], new: &[Option<f64>]) -> Common {
    let regimes = regimes(base.iter().chain(new).flatten().copied().collect());
    let of = |latency: Option<f64>| latency.map(|latency| regimes.partition_point(|most| *most < latency));
    let sides = [base, new].map(|side| side.iter().map(|latency| of(*latency)).collect::<Vec<_>>());
    let mut counts: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
    for (side, regimes) in sides.iter().enumerate() {
        regimes.iter().flatten().for_each(|regime| counts.entry(*regime).or_default()[side] += 1);
    }
    let all = counts.values().fold([0, 0], |all, found| [all[0] + found[0], all[1] + found[1]]);
    if all[0] == 0 || all[1] == 0 {
        return Common { kept: sides.map(|side| vec![true; side.len()]), differs: false };
    }
    let shared = counts.iter().filter(|(_, found)| found[0] > 0 && found[1] > 0);
    // Of equal maxima the last one wins: the nearest comes last.
    let chosen = shared.rev().max_by_key(|(_, found)| found[0] + found[1]);
    let kept = |regime: Option<usize>| {
        regime.is_none_or(|regime| chosen.is_some_and(|(chosen, _)| *chosen == regime))
    };
    let differs = chosen.is_none_or(|(_, found)| {
        fisher([[found[0], all[0] - found[0]], [found[1], all[1] - found[1]]]) < ALPHA
    });
    Common { kept: sides.map(|side| side.into_iter().map(kept).collect()), differs }
}

/// Returns whether each run of a series is of its most frequent regime, and of several of the
/// nearest. Runs without a latency are of every regime.
#[must_use]
pub fn most_frequent(latencies: &[Option<f64>]) -> Vec<bool> {
    common(latencies, latencies).kept.into_iter().next().unwrap_or_default()
}

/// Returns the largest latency of each regime, the nearest first.
fn regimes(mut latencies: Vec<f64>) -> Vec<f64> {
    latencies.sort_unstable_by(f64::total_cmp);
    latencies.chunk_by(|near, far| far / near <= FAR).filter_map(|regime| regime.last().copied()).collect()
}

/// Returns the p-value of Fisher's exact test of a table of counts, two-sided: the probability of
/// all tables with the same sums that are not more probable than this one (Agresti, Categorical
/// Data Analysis, 3rd ed., section 3.5.1).
#[must_use]
pub fn fisher(table: [[u64; 2]; 2]) -> f64 {
    let [[a, b], [c, d]] = table;
    let row = a + b;
    let column = a + c;
    let total = row + c + d;
    let probability =
        |a: u64| (choose_ln(column, a) + choose_ln(total - column, row - a) - choose_ln(total, row)).exp();
    let found = probability(a);
    let possible = (row + column).saturating_sub(total)..=row.min(column);
    // Tables of equal probability differ by rounding.
    possible.map(probability).filter(|other| *other <= found * (1.0 + 1e-7)).sum::<f64>().min(1.0)
}

/// The logarithm of a binomial coefficient.
pub(crate) fn choose_ln(n: u64, k: u64) -> f64 {
    (1..=k.min(n - k)).map(|i| ((n + 1 - i) as f64 / i as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.fisher_exact(table).pvalue`.
    #[test]
    fn fishers_test_is_scipys() {
        FISHER.iter().for_each(|&(table, p)| {
            let found = fisher(table);
            assert!((found / p - 1.0).abs() < 1e-9, "{table:?}: {found}, not {p}");
        });
    }

    #[test]
    fn regimes_are_told_apart_and_the_most_frequent_common_one_is_compared() {
        let near = Some(30.0);
        let far = Some(198.0);
        let some = common(&[near, near, far, near], &[far, Some(33.0), near, near]);
        assert_eq!(some.kept, [[true, true, false, true], [false, true, true, true]]);
        assert!(!some.differs);
        let equal = common(&[near, far], &[far, near]);
        assert_eq!(equal.kept, [[true, false], [false, true]], "the nearest of equally frequent ones");
        let apart = common(&[near; 3], &[far; 3]);
        assert!(apart.differs && apart.kept == [[false; 3]; 2]);
        let flipped = common(&[near; 10], &[[near; 2].as_slice(), &[far; 8]].concat());
        assert!(flipped.differs, "10 of 10 and 2 of 10: p = 0.0007");
        assert!(!common(&[near; 10], &[[near; 6].as_slice(), &[far; 4]].concat()).differs);
        assert_eq!(common(&[None, None], &[far]).kept, [vec![true, true], vec![true]]);
        assert_eq!(most_frequent(&[near, far, far, None]), [false, true, true, true]);
    }

    const FISHER: [([[u64; 2]; 2], f64); 5] = [
        ([[8, 2], [3, 7]], 0.069_778_518_694_927_34),
        ([[10, 0], [2, 8]], 0.000_714_455_822_814_955_8),
        ([[5, 5], [6, 4]], 1.0),
        ([[1, 9], [11, 3]], 0.002_759_456_185_220_083_6),
        ([[20, 0], [14, 6]], 0.020_196_020_196_020_202),
    ];
}
