//! LogfP (Hoefler, Mehlan, Mietke and Rehm, "LogfP - A Model for small Messages in InfiniBand",
//! 2006): LogP in which messages to several peers overlap. The overhead of a message falls from
//! o_max of a single message to o_min of one among many, and f messages in a row have no gap g.
//!
//! The overhead is assumed to fall as o(n) = o_min + (o_max - o_min) / n, so that the n o(n) of a
//! sender is a line over n. (That it falls between the two is in the paper; this form is not, as
//! the paper's function of n was not available.) A round of fan-out with n peers is then
//!
//! ```text
//! R(n) = R(1) + (n - 1) o_min + max(0, n - f) g        R(1) = 2 (L + 2 o_max)
//! ```
//!
//! so rounds over n determine o_min, f and g, but L and o_max separately only with o from bursts.

use measure::stats::fit::{Fit, Unfit};
use measure::stats::shape::Estimate;

use super::combine::residual;
use super::dissemination::rounds;

/// A fit to rounds over n.
#[derive(Debug)]
pub(super) struct LogfP {
    /// R(1) by the model, in ns.
    pub(super) single: Estimate,
    /// o_min, in ns.
    pub(super) overhead_min: Estimate,
    /// f, in messages, and g, in ns; absent if no n is so large that messages wait for a gap.
    pub(super) gap: Option<(Estimate, Estimate)>,
}

impl LogfP {
    /// Fits the parameters to halves of rounds over n, in ns.
    pub(super) fn of(halves: &[(u64, Estimate)]) -> Result<Self, Unfit> {
        let rounds: Vec<(f64, Estimate)> =
            halves.iter().map(|(n, half)| (*n as f64, half.map(|ns| 2.0 * ns))).collect();
        let first = rounds[0];
        let last = rounds[rounds.len() - 1];
        let slope = ((last.1.value - first.1.value) / (last.0 - first.0)).max(first.1.value * 1e-3);
        let fit = |start: &[f64]| {
            Fit::least_squares(start, |at| {
                rounds.iter().map(|(n, measured)| residual(round(at, *n), *measured)).collect()
            })
        };
        let straight = fit(&[first.1.value, slope])?;
        // The sum has a minimum between any two n; the smallest minimum counts.
        let within = rounds.windows(2).skip(1);
        let bent = within.filter_map(|pair| {
            fit(&[first.1.value, slope / 2.0, f64::midpoint(pair[0].0, pair[1].0), slope]).ok()
        });
        let bent = bent.min_by(|a, b| a.sum.total_cmp(&b.sum)).filter(|fit| {
            let [free, gap] = [fit.parameters[2], fit.parameters[3]];
            gap.low > 0.0 && free.low > first.0 && free.high < last.0
        });
        let best = bent.unwrap_or(straight);
        let gap = best.parameters.get(2).copied().zip(best.parameters.get(3).copied());
        Ok(Self { single: best.parameters[0], overhead_min: best.parameters[1], gap })
    }

    /// Half of a round with n peers, in ns.
    pub(super) fn half(&self, n: u64) -> f64 {
        let mut values = vec![self.single.value, self.overhead_min.value];
        if let Some((free, gap)) = self.gap {
            values.extend([free.value, gap.value]);
        }
        round(&values, n as f64) / 2.0
    }

    /// A barrier of some ranks by dissemination in n ways, in ns. Each of its rounds takes as long
    /// as a round of fan-out without the way back.
    pub(super) fn barrier(&self, ranks: u64, ways: u64) -> f64 {
        rounds(ranks, ways).map(|ways| 2.0 * self.half(ways) - self.half(1)).sum()
    }
}

/// R(n) from R(1), o_min and, if present, f and g.
fn round(at: &[f64], n: f64) -> f64 {
    let waiting = if let [_, _, free, gap] = at { (n - free).max(0.0) * gap } else { 0.0 };
    at[0] + (n - 1.0) * at[1] + waiting
}

#[cfg(test)]
mod tests;
