//! Hockney's line: a message of n bytes takes t0 + n / r (Hockney 1994, Parallel Computing 20,
//! 389-398).
//!
//! The latencies of single messages show nothing more of LogP and LogGP: t0 is their L + 2o, and
//! 1 / r their G (Alexandrov, Ionescu, Schauser and Scheiman 1995). To separate L from o takes
//! measured overheads.

use measure::stats::fit::{Fit, Unfit};
use measure::stats::shape::Estimate;

use super::column::Column;

/// The line of a column.
#[derive(Debug)]
pub(super) struct Line {
    /// The time of no byte, in ns.
    pub(super) start_ns: Estimate,
    /// The time of each byte, in ns.
    pub(super) ns_per_byte: Estimate,
}

impl Line {
    /// The least-squares line of the latencies' logarithms.
    pub(super) fn of(column: &Column) -> Result<Self, Unfit> {
        let too_few = Unfit::TooFew { residuals: column.cells.len(), parameters: 2 };
        let (Some(first), Some(last)) = (column.cells.first(), column.cells.last()) else {
            return Err(too_few);
        };
        let slope = (last.ns - first.ns) / (last.size - first.size).max(1) as f64;
        let residuals = |at: &[f64]| {
            column.cells.iter().map(|cell| (at[0] + at[1] * cell.size as f64).ln() - cell.ns.ln()).collect()
        };
        // A falling column starts with a small slope of the wrong sign instead of none.
        let fit = Fit::least_squares(&[first.ns, slope.max(first.ns * 1e-6)], residuals)?;
        Ok(Self { start_ns: fit.parameters[0], ns_per_byte: fit.parameters[1] })
    }

    /// Its value for a size, in ns.
    pub(super) fn at(&self, size: u64) -> f64 {
        self.start_ns.value + self.ns_per_byte.value * size as f64
    }

    /// The size for which the bytes take half of the time (Hockney's n 1/2).
    pub(super) fn half_size(&self) -> f64 {
        self.start_ns.value / self.ns_per_byte.value
    }
}
