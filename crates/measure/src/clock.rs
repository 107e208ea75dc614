//! The clock of the hot loops: a tick counter that takes a few nanoseconds to read, and its rate.
//!
//! On x86_64 the ticks are those of the time stamp counter, read by a plain `rdtsc`, if the
//! processor says that the counter is invariant (CPUID 8000_0007h, EDX bit 8; AMD APM vol. 3,
//! appendix E.4.7, and Intel SDM vol. 3B, section "Invariant TSC") and the kernel has not found it
//! unstable. Otherwise they are the nanoseconds of `CLOCK_MONOTONIC`. `rdtsc` is not serialised on
//! purpose: a fence would cost more than the order is worth. [`StampCost::measure`] measures the
//! cost of a stamp, and the record holds it.
//!
//! The rate is relative to `CLOCK_MONOTONIC`, hence to the system's notion of a second. A simulated
//! clock ([`Clock::simulated`]) reads the virtual time of a simulation instead.
//!
//! # Invariants
//!
//! * A stamp is no part of the interval that it times: the stamp of a receive is taken while the
//!   answer is under way.

mod calibration;
mod counter;
mod deadline;
mod domain;
mod monotonic;
mod offset;
mod overhead;
mod skew;
#[cfg(test)]
mod tests;
mod tsc;

pub use counter::{Clock, ClockKind, Ticks};
pub use deadline::Deadline;
pub use domain::Domain;
pub use offset::{Elapsed, Exchange, Interval, Nominal, Offset, Reason, holds_one_clock};
pub use overhead::StampCost;
pub use skew::Skew;
