//! Why two clocks cannot be compared.

use thiserror::Error;

/// Why there is no [`super::Offset`]: words for a point that is not measured.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// There is nothing to go by.
    #[error("the two clocks were not compared: no messages were exchanged between them")]
    NoExchange,
    /// A clock showed less than before.
    #[error(
        "the two clocks cannot be compared: {whose} clock went back during exchange {exchange}; bind the processes to \
         CPUs, or use a clock that is the same on all CPUs"
    )]
    WentBack {
        /// `our` or `their`.
        whose: &'static str,
        /// Number of the exchange, from 1.
        exchange: usize,
    },
    /// Stamps too far apart for any measurement.
    #[error(
        "the two clocks cannot be compared: stamps of {whose} clock lie more than 2^60 ticks apart; all of them must \
         be of one clock and of one boot"
    )]
    TooFarApart {
        /// `our` or `their`.
        whose: &'static str,
    },
    /// A nominal rate or a limit that no clock has.
    #[error("the two clocks cannot be compared: {whose} clock is said to {claim}; calibrate it again")]
    Nominal {
        /// `our` or `their`.
        whose: &'static str,
        /// What is said of it.
        claim: String,
    },
    /// A constant rate fits, but not one that clocks have.
    #[error(
        "the two clocks cannot be compared: they drift by {least_ppm:.1} to {largest_ppm:.1} ppm and at most \
         {limit_ppm:.0} ppm are credible; wait until whatever slews one of them (chronyd, ntpd, adjtime) is done"
    )]
    Drift {
        /// Least drift that fits, in ppm.
        least_ppm: f64,
        /// Largest drift that fits, in ppm.
        largest_ppm: f64,
        /// Largest magnitude that the two nominal rates allow, in ppm.
        limit_ppm: f64,
    },
    /// No offset and constant rate fit all exchanges.
    #[error(
        "the two clocks cannot be compared: no offset with a constant rate fits the {exchanges} exchanges, so one of \
         them was set or changed its rate meanwhile; stop what sets the clocks (chronyd, ntpd, a migration of the \
         machine) and measure again"
    )]
    NotConstant {
        /// Number of exchanges.
        exchanges: usize,
    },
}
