//! Whether the level of a series shifted while it was measured, for good or for a while.
//!
//! Two processors of a virtual machine may be siblings of one core in one minute and on two sockets
//! in the next; the core-to-core latency then changes from 24 to 246 ns or back, and every latency
//! with it. A point during which that happened has a median that belongs to neither state.
//!
//! # The rule
//!
//! 1. The logarithms of the blocks' levels are divided into a low and a high class, at least
//!    [`SUSTAINED_BLOCKS`] in each, such that the sum of their distances from the medians of their
//!    classes is smallest. The order in time does not matter here.
//! 2. The medians of the classes differ by more than [`RATIO`].
//! 3. They differ by more than [`SPREADS`] times the spread within the classes (the median absolute
//!    deviation, scaled to a standard deviation). The halves of one normal distribution differ by
//!    2.3 such spreads, the halves of a ramp by 2.7.
//! 4. The order in time is not one of chance: the probability of as few runs of low and high
//!    blocks, or fewer, is at most [`CHANCE`] (Wald and Wolfowitz, On a Test Whether Two Samples
//!    are from the Same Population, Annals of Mathematical Statistics 11 (1940), 147-162; computed
//!    exactly, not by its normal limit).
//! 5. Each class has a run of at least [`SUSTAINED_BLOCKS`]; shorter runs are taken as part of
//!    their neighbours.
//!
//! Given the levels, independent samples take every order with the same probability, whatever their
//! distribution. So (4) alone bounds the share of false alarms by [`CHANCE`], for heavy tails and
//! few samples as for any other noise.

use std::fmt;

use crate::text;

#[cfg(test)]
mod tests;

/// A shift of the level of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Share of the series before the shift.
    pub at_share: f64,
    /// Share of the series before the level went back; `None` when it stayed.
    pub back_at_share: Option<f64>,
    /// Level that the series starts from, in ns.
    pub before_ns: f64,
    /// Level that it shifted to, in ns.
    pub after_ns: f64,
}

impl Step {
    /// Describes the shift of `what` in a sentence.
    #[must_use]
    pub fn of(&self, what: &str) -> String {
        let [before, after] = [self.before_ns, self.after_ns].map(text::time);
        let at = self.at_share * 100.0;
        let when = match self.back_at_share {
            Some(back) => format!("between {at:.0} % and {:.0} %", back * 100.0),
            None => format!("at {at:.0} %"),
        };
        format!("{what} jumped from {before} to {after} {when} of the measurement")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of("latency"))
    }
}

/// Finds the first shift of a series of levels in ns, in the order of time, e.g.
/// [`crate::samples::Samples::series`]. Returns `None` when there is none by the rule of this
/// module, or when a level is not a finite number. At most a few hundred levels.
pub fn step(blocks: &[f64]) -> Option<Step> {
    if blocks.iter().any(|level| !level.is_finite()) {
        return None;
    }
    let logs: Vec<f64> = blocks.iter().map(|level| level.max(LEVEL_MIN_NS).ln()).collect();
    let classes = Classes::of(&logs)?;
    let is_high: Vec<bool> = logs.iter().map(|&log| log >= classes.high_from).collect();
    if !classes.are_apart() || chance_of_runs(&is_high) > CHANCE {
        return None;
    }
    describe(blocks, &sustained_runs(&is_high))
}

/// Whether the raw core-to-core latency before and after a point shows that the CPUs were moved: it
/// differs by more than 20 % and more than [`PLACEMENT_NS`], either way. The regimes seen lie at
/// 24, 50, 246 and 370 to 1100 ns.
pub fn placement_changed(before_ns: f64, after_ns: f64) -> bool {
    let low = before_ns.min(after_ns);
    let high = before_ns.max(after_ns);
    high > low * RATIO && high - low > PLACEMENT_NS
}

/// The smallest difference of two raw core-to-core latencies that is a change of placement, in ns.
/// The regimes seen lie at least 25 ns apart, and siblings of one core vary by several ns with the
/// work of either.
pub const PLACEMENT_NS: f64 = 10.0;
/// The smallest ratio of two levels that is a step.
pub const RATIO: f64 = 1.2;
/// The smallest number of blocks that a level has to last.
pub const SUSTAINED_BLOCKS: usize = 3;
/// The smallest distance of two levels, as a multiple of the spread within them.
pub const SPREADS: f64 = 3.0;
/// The largest probability that chance makes such an order. Three neighbours out of 64 have 0.0015.
pub const CHANCE: f64 = 0.005;

/// Two classes of levels, regardless of time. Levels are logarithms here.
struct Classes {
    low: f64,
    high: f64,
    /// The smallest level of the high class.
    high_from: f64,
    /// Spread within the classes.
    spread: f64,
}

impl Classes {
    /// The best division of the levels; `None` when there are too few.
    fn of(logs: &[f64]) -> Option<Self> {
        let mut sorted = logs.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(SUSTAINED_BLOCKS)?;
        // Equal levels belong to one class.
        let splits = (SUSTAINED_BLOCKS..=last).filter(|&split| sorted[split - 1] < sorted[split]);
        let cost =
            |split: usize| deviations(&sorted[..split]).chain(deviations(&sorted[split..])).sum::<f64>();
        let split = splits.min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
        let (low, high) = sorted.split_at(split);
        let mut within: Vec<f64> = deviations(low).chain(deviations(high)).collect();
        within.sort_unstable_by(f64::total_cmp);
        let spread = MAD_TO_STDDEV * middle(&within);
        Some(Self { low: middle(low), high: middle(high), high_from: high[0], spread })
    }

    fn are_apart(&self) -> bool {
        let distance = self.high - self.low;
        distance > RATIO.ln() && distance > SPREADS * self.spread
    }
}

/// Distances from the median.
fn deviations(sorted: &[f64]) -> impl Iterator<Item = f64> {
    let center = middle(sorted);
    sorted.iter().map(move |value| (value - center).abs())
}

fn middle(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}

/// The probability that blocks of two classes in random order have as few runs as these, or fewer.
/// With `a` and `b` blocks, C(a-1, i-1) C(b-1, j-1) orders have i runs of one class and j of the
/// other, for each class that may come first, where i and j differ by at most one. There are
/// C(a+b, a) orders in all.
fn chance_of_runs(is_high: &[bool]) -> f64 {
    let runs = runs(is_high).len();
    let a = is_high.iter().filter(|&&high| high).count();
    let b = is_high.len() - a;
    let ways = |of: usize, runs: usize| ln_choose(of - 1, runs - 1);
    let orders_ln = ln_choose(a + b, a);
    let exactly = |runs: usize| {
        let few = runs / 2;
        let many = runs.div_ceil(2);
        let chance = |i: usize, j: usize| (ways(a, i) + ways(b, j) - orders_ln).exp();
        chance(few, many) + chance(many, few)
    };
    (2..=runs).map(exactly).sum()
}

/// Logarithm of a binomial coefficient; minus infinity where it is 0.
fn ln_choose(n: usize, k: usize) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    (0..k).map(|i| ((n - i) as f64 / (k - i) as f64).ln()).sum()
}

/// Consecutive blocks of one class.
#[derive(Clone, Copy)]
struct Run {
    is_high: bool,
    start: usize,
    len: usize,
}

fn runs(is_high: &[bool]) -> Vec<Run> {
    let mut start = 0;
    is_high
        .chunk_by(|a, b| a == b)
        .map(|chunk| {
            let run = Run { is_high: chunk[0], start, len: chunk.len() };
            start += chunk.len();
            run
        })
        .collect()
}

/// The runs that last, in order, with neighbours of different classes; shorter runs are left out.
fn sustained_runs(is_high: &[bool]) -> Vec<Run> {
    let mut sustained = runs(is_high);
    sustained.retain(|run| run.len >= SUSTAINED_BLOCKS);
    sustained.dedup_by_key(|run| run.is_high);
    sustained
}

fn describe(blocks: &[f64], runs: &[Run]) -> Option<Step> {
    let first = runs.first()?;
    let second = runs.get(1)?;
    let share = |run: &Run| run.start as f64 / blocks.len() as f64;
    let level = |run: &Run| {
        let mut levels = blocks[run.start..run.start + run.len].to_vec();
        levels.sort_unstable_by(f64::total_cmp);
        middle(&levels)
    };
    Some(Step {
        at_share: share(second),
        back_at_share: runs.get(2).map(share),
        before_ns: level(first),
        after_ns: level(second),
    })
}

/// Scales the median absolute deviation of normal noise to its standard deviation.
const MAD_TO_STDDEV: f64 = 1.482_602_218_505_602;
/// Levels are at least this large, so that they have logarithms; no clock resolves less.
const LEVEL_MIN_NS: f64 = 1.0;
