//! The kinds of latency, a row each. Records, samples and reports read from the rows all that
//! differs between kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Cost;

/// The part of the timed interval that a kind of latency is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// Half of the timed interval: the round trips of a ping-pong.
    Half,
    /// The timed interval.
    Whole,
}

impl Scale {
    /// The scale of a kind of latency, where round trips or intervals are timed as a whole.
    pub fn of(kind: LatencyKind) -> Self {
        kind.scale()
    }

    /// The binary logarithm of the divisor.
    #[inline(always)]
    pub(crate) fn shift(self) -> u32 {
        match self {
            Self::Half => 1,
            Self::Whole => 0,
        }
    }
}

/// Makes the enum of kinds from rows: documentation for the schema, variant, name in records,
/// scale, and the meaning that reports print.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:ident, $scale:ident, $meaning:literal;)+) => {
        /// The kind of a latency: the interval that it measures.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum LatencyKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl LatencyKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Its name in records.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($name)),+ }
            }

            /// The interval that it measures, in words.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$kind => $meaning),+ }
            }

            /// The part of the timed interval that it is.
            pub fn scale(self) -> Scale {
                match self { $(Self::$kind => Scale::$scale),+ }
            }
        }
    };
}

kinds! {
    /// From when a sample was due, at a set rate, to its arrival: its one-way latency and its
    /// lateness.
    Arrival = arrival, Whole, "from when a sample was due to its arrival";
    /// A batch of calls of one verb between two stamps: [`Cost::calls`] of them.
    Call = call, Whole, "a batch of calls of one verb between two stamps";
    /// From the post of one work request to its completion, t_comp - t_subm.
    Completion = completion, Whole, "from posting a work request to its completion, t_comp - t_subm";
    /// The time in which one rank fetches from n other ranks: from before the first post to the
    /// last completion.
    Fan = fan, Whole, "a fetch from n ranks at once, from the first post to the last completion";
    /// Half the time of a 1:n n:1 round, in which one rank sends to n others and each answers: from
    /// before the first post to the last arrival.
    FanHalf = fan_half, Half, "half the time of a 1:n n:1 round, from the first post to the last arrival";
    /// From when the first rank started a call that all ranks make together to when the last rank
    /// ended it.
    FirstLast = first_last, Whole, "from the first rank's start of a call to the last rank's end";
    /// From when the last rank started such a call to when the last rank ended it.
    LastLast = last_last, Whole, "from the last rank's start of a call to the last rank's end";
    /// From when a message was due, at a set rate, to when it was posted.
    Lateness = lateness, Whole, "from when a message was due to when it was posted";
    /// A put or a get of MPI and the call that completes it, from the end of the one before. It
    /// includes the cost of a stamp.
    OneSided = one_sided, Whole, "a put or a get of MPI and the call that completes it";
    /// From posting to arrival on one clock, t_recv - t_subm.
    OneWay = one_way, Whole, "from posting to arrival on one clock, t_recv - t_subm";
    /// From the adapter's fetch to arrival on one clock, t_recv - t_send.
    OneWaySend = one_way_send, Whole, "from the adapter's fetch to arrival on one clock, t_recv - t_send";
    /// A rank's own time in a call that all ranks make together.
    Own = own, Whole, "a rank's own time in a call that all ranks make together";
    /// The parametrised round trip PRTT(n, d, s) of LogGP: from before the first of n posts, which
    /// are d apart, to the answer to the last message.
    Prtt = prtt, Whole,
        "from the first post of a burst to the answer to its last message, PRTT(n, d, s)";
    /// From when a message was due, at a set rate, to its answer: its lateness and a round trip.
    Response = response, Whole, "from when a message was due to its answer";
    /// A round trip.
    Rtt = rtt, Whole, "a round trip";
    /// Half a round trip.
    RttHalf = rtt_half, Half, "half a round trip";
    /// The longest of the ranks' own times in a call that all ranks make together.
    Slowest = slowest, Whole, "the slowest rank's own time in a call that all ranks make together";
    /// The time between the first and the last start of ranks of one host that start together.
    StartSkew = start_skew, Whole, "from the first to the last start of ranks that start together";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_one_name_in_rows_and_records() {
        for kind in LatencyKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
