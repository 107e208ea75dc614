//! Why two clocks cannot be compared.

use thiserror::Error;

/// Why there is no [`super::Offset`], in words for a point that is not measured.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// There were no exchanges.
    #[error("the two clocks were not compared: no messages were exchanged between them")]
    NoExchange,
    /// A clock went back.
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
        /// The claim about it.
        claim: String,
    },
    /// A constant rate fits, but it is not credible.
    #[error(
        "the two clocks cannot be compared: they drift by {least_ppm:.1} to {largest_ppm:.1} ppm and at most \
         {limit_ppm:.0} ppm are credible; wait until whatever slews one of them (chronyd, ntpd, adjtime) is done"
    )]
    Drift {
        /// Smallest drift that fits, in ppm.
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

impl Reason {
    /// The reason with names for the two clocks, such as "rank 0": of the local and the remote one.
    pub fn named(&self, ours: &str, theirs: &str) -> String {
        let words =
            self.to_string().replacen("the two clocks", &format!("the clocks of {ours} and {theirs}"), 1);
        words.replacen("our clock", &format!("the clock of {ours}"), 1).replacen(
            "their clock",
            &format!("the clock of {theirs}"),
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_have_names_are_called_by_them() {
        let said = |reason: Reason| reason.named("rank 0", "rank 3");
        assert_eq!(
            said(Reason::NoExchange),
            "the clocks of rank 0 and rank 3 were not compared: no messages were exchanged between them"
        );
        let back = said(Reason::WentBack { whose: "their", exchange: 2 });
        let expected = "the clocks of rank 0 and rank 3 cannot be compared: the clock of rank 3 went back during exchange 2;";
        assert!(back.starts_with(expected), "{back}");
        assert!(said(Reason::TooFarApart { whose: "our" }).contains("stamps of the clock of rank 0 lie"));
    }
}
