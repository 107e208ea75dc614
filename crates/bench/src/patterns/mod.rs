//! The patterns: a module for each, and a line of the list below.

mod application;
mod collective;
pub(crate) mod fan_out;
pub(crate) mod halo;
mod id;
pub(crate) mod one_way;
pub(crate) mod open_loop;
pub(crate) mod overhead;
pub(crate) mod pairs;
pub(crate) mod ping_pong;
pub(crate) mod pipeline;
pub(crate) mod prtt;
pub(crate) mod stream;
pub(crate) mod transfer;

use measure::presentation::Patterns;

use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::{PointError, out_of_order};
use crate::pattern::id::PatternId;
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Entry, Pattern, run_as};

/// Defines the list of patterns: the identifier of each in code, and its type.
macro_rules! patterns {
    ($($(#[$doc:meta])* $id:ident: $room:ident::$pattern:ident;)*) => {
        /// The indices of the patterns in the list.
        enum Place {
            $($pattern),*
        }

        /// All patterns.
        static ENTRIES: &[&dyn Entry] = &[$(&$room::$pattern),*];

        /// What a report shows of each pattern.
        pub const PATTERNS: Patterns =
            Patterns::new(&[$((<$room::$pattern>::ROW.name, <$room::$pattern>::ROW.shown)),*]);

        impl PatternId {
            $(
                $(#[$doc])*
                pub const $id: Self = Self(Place::$pattern as u8);
            )*
        }

        /// Runs a rank's share of a point. Every pattern is compiled for each kind of endpoint that
        /// has the capabilities that the pattern needs.
        ///
        /// # Errors
        /// The errors of the pattern.
        pub(crate) fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<Outcome, PointError> {
            match rank.spec.pattern {
                $(PatternId::$id => run_as::<$room::$pattern, E>(rank),)*
                _ => Err(out_of_order("run")),
            }
        }
    };
}

patterns! {
    /// Runs an application and reads the metrics that it prints (Sur et al. 2007, section 3.5;
    /// Subramoni et al. 2009, NAS Parallel Benchmarks).
    APPLICATION: application::Programs;
    /// All ranks call a collective operation, and each rank times it (Subramoni et al. 2009).
    COLLECTIVE: collective::Collectives;
    /// Rank 0 sends a message to each of n ranks, each of them answers, and every round is timed
    /// (Hoefler et al. 2006).
    FAN_OUT: fan_out::FanOut;
    /// Each rank of a torus exchanges the sides of its block with its neighbours (Sur et al. 2007,
    /// section 3.4).
    HALO: halo::Halo;
    /// Messages go from rank 0 to rank 1, and both ranks stamp every one (Potter 2018).
    ONE_WAY: one_way::OneWay;
    /// Rank 0 sends messages at a set rate. Each is answered and timed from when it was due, while
    /// other ranks load the device.
    OPEN_LOOP: open_loop::OpenLoop;
    /// One verbs call is timed by itself, in batches (Hoefler et al. 2006, section 4.2).
    OVERHEAD: overhead::Overhead;
    /// Several pairs of processes do the same at the same time (Sur et al. 2007, sections 3.1 to
    /// 3.3).
    PAIRS: pairs::Pairs;
    /// A message goes out, one comes back, and both ranks time every one (Gamess and Ortiz-Zuazaga
    /// 2016, section V).
    PING_PONG: ping_pong::PingPong;
    /// Samples are generated at a set rate, and both ranks stamp every one (Potter 2018,
    /// VILLASnode).
    PIPELINE: pipeline::Samples;
    /// Several messages go out, one comes back: the parametrised round trip PRTT(n, d, s) of LogGP.
    PRTT: prtt::Prtt;
    /// Messages follow each other within a window, and both ranks compute throughput (Gamess and
    /// Ortiz-Zuazaga 2016, section V).
    STREAM: stream::Stream;
    /// Files go from rank 0 to rank 1: whole trees, or many equal files (Subramoni et al. 2009).
    TRANSFER: transfer::Transfers;
}

#[cfg(test)]
mod tests;
