//! The stamps of all ranks, converted to times by the clock of rank 0.

use measure::clock::{Nominal, Offset, holds_one_clock};

use super::clocks::of_rank;
use super::stamps::CallStamps;

/// Times in ns since rank 0 started its first call.
#[derive(Debug)]
pub(super) struct Times {
    /// By rank, the start and the end of each call.
    pub(super) calls: Vec<Vec<[f64; 2]>>,
    /// The largest error of a time between stamps of two ranks; 0 for one clock.
    pub(super) bound_ns: f64,
}

impl Times {
    /// Converts the stamps of all ranks.
    ///
    /// # Errors
    /// Why the clocks cannot be compared.
    pub(super) fn of(told: &[CallStamps]) -> Result<Self, String> {
        let Some(first) = told.first() else { return Ok(Self { calls: Vec::new(), bound_ns: 0.0 }) };
        let origin = first.begun.first().copied().unwrap_or(0);
        let mut calls = Vec::with_capacity(told.len());
        let mut bounds = Vec::with_capacity(told.len());
        for (rank, stamps) in told.iter().enumerate() {
            let (times, bound_ns) = of_one(told, (rank, stamps), origin)?;
            calls.push(times);
            bounds.push(bound_ns);
        }
        // A time may lie between the two ranks whose clocks are known worst.
        bounds.sort_unstable_by(f64::total_cmp);
        let bound_ns = bounds.iter().rev().take(2).sum();
        Ok(Self { calls, bound_ns })
    }
}

/// The time of each call of a rank by its own clock, in ns.
///
/// # Errors
/// Why there are none: the nominal rate of the clock is not possible.
pub(super) fn own(rank: usize, stamps: &CallStamps) -> Result<Vec<f64>, String> {
    if let Some(claim) = stamps.nominal.fault() {
        return Err(format!("the clock of rank {rank} is said to {claim}; calibrate it again"));
    }
    let ns_per_tick = 1e9 / stamps.nominal.tick_hz;
    let taken = |(begun, ended): (&u64, &u64)| ended.wrapping_sub(*begun).cast_signed() as f64 * ns_per_tick;
    Ok(stamps.begun.iter().zip(&stamps.ended).map(taken).collect())
}

/// Returns the times of a rank, and their largest error.
fn of_one(
    told: &[CallStamps],
    (rank, stamps): (usize, &CallStamps),
    origin: u64,
) -> Result<(Vec<[f64; 2]>, f64), String> {
    let first = &told[0];
    let both = stamps.begun.iter().zip(&stamps.ended);
    let exchanges = of_rank(rank, told.len(), &first.exchanged, &stamps.exchanged);
    // Hosts may claim one clock, but exchanges that refute it are decisive.
    let is_one = stamps.clock.shares_with(&first.clock) && holds_one_clock(&exchanges, 0);
    if rank == 0 || is_one {
        let ns_per_tick = 1e9 / first.nominal.tick_hz;
        let ns = |stamp: u64| stamp.wrapping_sub(origin).cast_signed() as f64 * ns_per_tick;
        return Ok((both.map(|(begun, ended)| [ns(*begun), ns(*ended)]).collect(), 0.0));
    }
    let [leading, own]: [Nominal; 2] = [first.nominal, stamps.nominal];
    let offset = Offset::of(&exchanges, leading, own)
        .map_err(|reason| reason.named("rank 0", &format!("rank {rank}")))?;
    let ns = |stamp: u64| offset.elapsed(origin, stamp).ns;
    let [Some(&since), Some(&until)] = [stamps.begun.first(), stamps.ended.last()] else {
        return Ok((Vec::new(), 0.0));
    };
    let times = both.map(|(begun, ended)| [ns(*begun), ns(*ended)]).collect();
    Ok((times, offset.bound_ns(since, until)))
}
