//! Messages go forth at a set rate, each is answered and timed from when it was due, while other ranks load the device.

mod layout;
pub(crate) mod load;
mod rank;
mod schedule;

use measure::record::Direction;

use self::rank::Told;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::End;
use crate::fault::PointError;
use crate::pattern::outcome::{Merged, Outcome, timed_alone};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::together::Floods;
use crate::point::PointSpec;
use crate::topology::Topology;

/// The pattern.
pub(crate) struct OpenLoop;

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
