//! What is done with endpoints, and what is timed: a room for each pattern, and a line of the list
//! below.

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

/// The list of patterns: the name that code has for each, and its type.
macro_rules! patterns {
    ($($(#[$doc:meta])* $id:ident: $room:ident::$pattern:ident;)*) => {
        /// Their places in the list.
        enum Place {
            $($pattern),*
        }

        /// All of them.
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

        /// A rank's share of a point. Every pattern is compiled for each kind of endpoint that has
        /// what it needs.
        ///
        /// # Errors
        /// What the pattern says.
        pub(crate) fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<Outcome, PointError> {
            match rank.spec.pattern {
                $(PatternId::$id => run_as::<$room::$pattern, E>(rank),)*
                _ => Err(out_of_order("run")),
            }
        }
    };
}

patterns! {
    /// An application runs, and the numbers that it prints are read (S16, R10).
    APPLICATION: application::Programs;
    /// All ranks call a collective operation, and each times it (R8, R9).
    COLLECTIVE: collective::Collectives;
    /// A message goes to each of n ranks, one comes back from each, and every round is timed (H1 to
    /// H6).
    FAN_OUT: fan_out::FanOut;
    /// Each rank of a torus exchanges the sides of its block with its neighbours (S12 to S15).
    HALO: halo::Halo;
    /// Messages go from rank 0 to rank 1, and both ends stamp every one (V6 to V44).
    ONE_WAY: one_way::OneWay;
    /// Messages go forth at a set rate, each is answered and timed from when it was due, while
    /// other ranks load the device.
    OPEN_LOOP: open_loop::OpenLoop;
    /// One call of a program is timed by itself, in batches (H19).
    OVERHEAD: overhead::Overhead;
    /// Several pairs do the same at the same time, a process each (S2 to S11).
    PAIRS: pairs::Pairs;
    /// A message goes forth, one comes back, every one is timed at both ends (G18).
    PING_PONG: ping_pong::PingPong;
    /// Samples are generated at a set rate, and both ends stamp every one (V50 to V76).
    PIPELINE: pipeline::Samples;
    /// Some messages go forth, one comes back: the parametrised round trip PRTT(n, d, s) of LogGP.
    PRTT: prtt::Prtt;
    /// A flood with a bounded outstanding window; both ends compute throughput (G17).
    STREAM: stream::Stream;
    /// Files go from rank 0 to rank 1, whole trees of them or many that are alike (R11, R12).
    TRANSFER: transfer::Transfers;
}

#[cfg(test)]
mod tests;
