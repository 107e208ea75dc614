//! LogGP (Alexandrov, Ionescu, Schauser and Scheiman 1995) from parametrised round trips on one
//! clock, by the procedure of Hoefler, Lichei and Rehm, "Low-Overhead LogGP Parameter Assessment
//! for Modern Interconnection Networks", 2007.
//!
//! ```text
//! PRTT(1, 0, s) = 2 (L + 2o + (s - 1) G)
//! PRTT(n, d, s) = PRTT(1, 0, s) + (n - 1) max(o + d, g + (s - 1) G)
//! ```
//!
//! So (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1) = g + (s - 1) G is a line over s, from which least
//! squares compute g and G. If d is at least PRTT(1, 0, s), (PRTT(n, d, s) - PRTT(1, 0, s)) /
//! (n - 1) - d = o(s). L is the rest of PRTT(1, 0, s) at the smallest size; the authors' own
//! program, netgauge, prints half of PRTT(1, 0, s) as L, overheads included. n is the largest that
//! was measured without pauses.

use measure::stats::fit::{Fit, Unfit};
use measure::stats::shape::Estimate;

use super::combine::{residual, sum};
use super::rounds::{Round, Rounds};

/// The fitted parameters.
#[derive(Debug)]
pub(super) struct LogGp {
    /// n of the bursts that were used.
    pub(super) messages: u64,
    /// The smallest size, which `overhead` and `latency` belong to.
    pub(super) size: u64,
    /// g, in ns.
    pub(super) gap: Estimate,
    /// G, in ns.
    pub(super) gap_per_byte: Estimate,
    /// L + 2o, in ns.
    pub(super) one_way: Estimate,
    /// o, in ns; absent if the pauses of all bursts were too short.
    pub(super) overhead: Option<Estimate>,
    /// L, in ns; absent without `overhead`.
    pub(super) latency: Option<Estimate>,
    /// Sizes in rising order.
    pub(super) sizes: Vec<OfSize>,
    /// The probability that numbers on one line are as far from it as these, or farther.
    pub(super) chance: f64,
}

/// The results for one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfSize {
    pub(super) size: u64,
    /// The time of each further message of a burst, in ns.
    pub(super) gap: Estimate,
    /// The d, in ns, that o was computed with, and o(s), in ns.
    pub(super) overhead: Option<(u64, Estimate)>,
}

/// Why LogGP has no parameters.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lack {
    #[error("a burst and a single message without pauses were measured at {0} sizes, and three are needed")]
    Sizes(usize),
    #[error("a burst of {messages} messages of {size} B takes no longer than one of them")]
    NoGap { messages: u64, size: u64 },
    #[error("{0}")]
    Unfit(#[from] Unfit),
}

impl LogGp {
    /// Fits the parameters to some round trips.
    pub(super) fn of(rounds: &Rounds) -> Result<Self, Lack> {
        let most = rounds.rounds.iter().filter(|round| round.messages > 1 && round.pause == 0);
        let messages = most.map(|round| round.messages).max().unwrap_or_default();
        let sizes = of_sizes(rounds, messages)?;
        if sizes.len() < LEAST_SIZES {
            return Err(Lack::Sizes(sizes.len()));
        }
        let (fit, gap, gap_per_byte) = line(&sizes)?;
        let first = sizes[0];
        let further = further_bytes(first.size);
        let single = rounds.at(1, 0, first.size).ok_or(Lack::Sizes(0))?;
        let latency = first.overhead.and_then(|(pause, _)| {
            let burst = rounds.at(messages, pause, first.size)?;
            // Half of the round minus 2o, with o in terms of measured numbers.
            let share = 2.0 / (messages - 1) as f64;
            let terms = [(0.5 + share, single), (-share, burst), (-further, gap_per_byte)];
            Some(sum(2.0 * pause as f64, &terms))
        });
        Ok(Self {
            messages,
            size: first.size,
            gap,
            gap_per_byte,
            one_way: sum(0.0, &[(0.5, single), (-further, gap_per_byte)]),
            overhead: first.overhead.map(|(_, overhead)| overhead),
            latency,
            sizes,
            chance: fit.chance(),
        })
    }

    /// The time of each further message of a burst without pauses, in ns.
    pub(super) fn gap_at(&self, size: u64) -> f64 {
        self.gap.value + self.gap_per_byte.value * further_bytes(size)
    }

    /// PRTT(n, d, s), in ns; `None` if o is needed and not known. With d = 0, a round of fan-out
    /// takes the same time: messages leave, and answers arrive, one gap after the other.
    pub(super) fn round(&self, messages: u64, pause: u64, size: u64) -> Option<f64> {
        let each = match (messages, pause, self.overhead) {
            (1, _, _) => 0.0,
            (_, pause, Some(overhead)) => (overhead.value + pause as f64).max(self.gap_at(size)),
            (_, 0, None) => self.gap_at(size),
            _ => return None,
        };
        let single = 2.0 * (self.one_way.value + further_bytes(size) * self.gap_per_byte.value);
        Some(single + (messages - 1) as f64 * each)
    }
}

/// The results of each size alone.
fn of_sizes(rounds: &Rounds, messages: u64) -> Result<Vec<OfSize>, Lack> {
    let further = messages.saturating_sub(1) as f64;
    let each =
        |burst, single, pause: u64| sum(-(pause as f64), &[(1.0 / further, burst), (-1.0 / further, single)]);
    let mut sizes = Vec::new();
    let bursts = rounds.rounds.iter().filter(|round| (round.messages, round.pause) == (messages, 0));
    for burst in bursts.filter(|_| messages > 1) {
        let size = burst.size;
        let Some(single) = rounds.at(1, 0, size) else { continue };
        let gap = each(burst.ns, single, 0);
        if gap.value <= 0.0 {
            return Err(Lack::NoGap { messages, size });
        }
        // The shortest pause that is long enough: the scatter of a round grows with the pause.
        let is_enough = |round: &&Round| {
            (round.messages, round.size) == (messages, size) && round.pause as f64 >= single.value
        };
        let paused = rounds.rounds.iter().filter(is_enough).min_by_key(|round| round.pause);
        let overhead = paused.map(|paused| (paused.pause, each(paused.ns, single, paused.pause)));
        sizes.push(OfSize { size, gap, overhead });
    }
    Ok(sizes)
}

/// g and G, with their fit.
fn line(sizes: &[OfSize]) -> Result<(Fit, Estimate, Estimate), Unfit> {
    let first = sizes[0];
    let last = sizes[sizes.len() - 1];
    let slope = (last.gap.value - first.gap.value) / (last.size - first.size).max(1) as f64;
    let start = [first.gap.value, slope.max(first.gap.value * 1e-6)];
    let fit = Fit::least_squares(&start, |at| {
        sizes.iter().map(|of| residual(at[0] + at[1] * further_bytes(of.size), of.gap)).collect()
    })?;
    let [gap, gap_per_byte] = [fit.parameters[0], fit.parameters[1]];
    Ok((fit, gap, gap_per_byte))
}

/// s - 1
fn further_bytes(size: u64) -> f64 {
    size.saturating_sub(1) as f64
}

/// A line through fewer sizes shows nothing.
const LEAST_SIZES: usize = 3;

#[cfg(test)]
mod tests;
