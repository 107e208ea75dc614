//! Messages go out at a set rate, each is answered and timed from when it was due, while other
//! ranks load the device.
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]                       # messages at a set rate, timed from when they are due: response, rtt, lateness
//! name = "loaded"
//! pattern = "open-loop"
//! duration = "1s"
//! [experiment.axes]
//! rate_hz = [1000, 100000]             # messages that are due per second
//! loaders = [0, 1, 4]                  # ranks that load the device
//! load = "incast"                      # to the answering rank; or "outcast": from the sending rank; or "beside"
//! load_bytes = "64KiB"
//! ```
//!
//! # Invariants
//!
//! * A message of a set rate is timed from when it was due, so that a stall of the sender counts. A
//!   point whose rate was not held is unstable. A point that takes more than twice its time is not
//!   measured: its percentiles would only show how long it ran.

pub(crate) mod check;
pub(crate) mod choices;
mod command;
mod layout;
mod rank;
mod schedule;
mod settings;
mod table;

use measure::record::Direction;

use self::rank::Told;
use self::settings::{LOAD, LOAD_BYTES, Settings};
use crate::axis::{self, AxisList};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::{DURATION_S, Defaults};
use crate::pattern::outcome::{Merged, Outcome, timed_alone};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::together::Floods;
use crate::point::{Carrier, Length, PointSpec};
use crate::topology::Topology;

/// The pattern.
pub(crate) struct OpenLoop;

impl Pattern for OpenLoop {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COUNTED,
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        can_be_cut: |_| true,
        ..Row::named("open-loop")
    };
    type Told = Told;

    /// Only points with loaders have the axes of the load.
    fn defaults(given: &AxisList, _carrier: Carrier) -> Defaults {
        let is_loaded = given.numbers(axis::LOADERS.row).any(|loaders| loaders > 0);
        let load = [axis::LOAD.value(LOAD), axis::LOAD_BYTES.value(LOAD_BYTES)];
        Defaults {
            length: Length::Duration(DURATION_S),
            tx_depth: DEPTH,
            rx_depth: DEPTH,
            axes: Settings::usual().into_iter().chain(load.into_iter().filter(|_| is_loaded)).collect(),
            ..Defaults::default()
        }
    }

    fn topology(spec: &PointSpec) -> Topology {
        layout::topology(spec)
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Told>), PointError> {
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
            message_bytes: Settings::of(spec).load_bytes,
            direction: Direction::Load,
            passed: told.iter().map(|told| told.as_ref()?.passed.as_ref()).collect(),
            timed,
            is_all: false,
        };
        Merged { kinds: kinds.unwrap_or_default(), ..load.merge(&spec.share_above_ns, outcomes) }
    }
}

/// Enough outstanding messages that a stall does not keep the next messages from being posted when
/// they are due.
const DEPTH: u32 = 2048;

#[cfg(test)]
mod tests;
