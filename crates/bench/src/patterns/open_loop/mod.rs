//! Messages go forth at a set rate, each is answered and timed from when it was due, while other ranks load the device.
//!
//! # Invariants
//!
//! * A message of a set rate is timed from when it is due, so that a stalled sender is not
//!   forgiven. A point whose rate was not held is unstable. A point that takes more than twice its
//!   time is not measured: its quantiles would be those of the waiting time.

pub(crate) mod layout;
mod rank;
mod schedule;

use measure::record::Direction;
use serde::{Deserialize, Serialize};

use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::End;
use crate::fault::PointError;
use crate::pattern::flood::{Passed, Window};
use crate::pattern::outcome::{self, Merged, Outcome, timed_alone};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::together::Floods;
use crate::point::PointSpec;
use crate::topology::Topology;

/// The pattern.
pub(crate) struct OpenLoop;

/// What a rank tells.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    /// When its messages were timed, to count what others did meanwhile.
    timed: Option<Window>,
    /// How its load went.
    passed: Option<Passed>,
}

impl outcome::Told for Told {}

impl Pattern for OpenLoop {
    const ROW: Row = Row { name: "open-loop", needs: Capabilities::COUNTED };
    type Told = Told;

    fn topology(spec: &PointSpec) -> Topology {
        layout::topology(spec)
    }

    fn run<E: End>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Told>), PointError> {
        rank::open_loop(rank)
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<Told>>) -> Merged {
        let asks = outcomes.iter().find(|outcome| !outcome.kinds.is_empty());
        let kinds = asks.map(|asks| {
            let first = asks.latency.clone().map(timed_alone);
            first.into_iter().chain(asks.kinds.iter().cloned()).collect()
        });
        let timed = told.iter().flatten().find_map(|told| told.timed.as_ref());
        let load = Floods {
            who: "loaders",
            message_bytes: spec.load_bytes,
            direction: Direction::Load,
            passed: told.iter().map(|told| told.as_ref()?.passed.as_ref()).collect(),
            timed,
            is_all: false,
        };
        Merged { kinds: kinds.unwrap_or_default(), ..load.merge(&spec.share_above_ns, outcomes) }
    }
}

#[cfg(test)]
mod tests;
