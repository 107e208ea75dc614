//! Several pairs do the same at the same time, a process each (Sur et al. 2007, sections 3.1 to
//! 3.3).

pub(crate) mod check;
pub(crate) mod choices;
mod command;
mod loops;
mod rank;
mod settings;
mod table;

use measure::record::Direction;

use self::choices::Traffic;
use self::settings::Settings;
use crate::axis::{self, AxisList};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::{Defaults, SIZE_BYTES_STREAM, are_all, window};
use crate::pattern::flood::FloodProgress;
use crate::pattern::outcome::{Merged, Outcome, Told};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::together::Floods;
use crate::point::{Carrier, Length, MpiCall, PointSpec};
use crate::topology::{Flow, Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct Pairs;

impl Told for FloodProgress {}

impl Pattern for Pairs {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COUNTED,
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        can_be_cut: |_| true,
        ..Row::named("pairs")
    };
    /// The progress of a rank's stream.
    type Told = FloodProgress;

    fn defaults(given: &AxisList, carrier: Carrier) -> Defaults {
        let mut axes = Settings::usual();
        if !are_all(given, axis::TRAFFIC, |traffic| traffic == Traffic::Stream) {
            axes.push(axis::MPI_CALL.value(MpiCall::Blocking));
            return Defaults { axes, ..Defaults::default() };
        }
        axes.push(axis::MPI_CALL.value(MpiCall::Nonblocking));
        Defaults {
            length: Length::Duration(DURATION_S),
            size_bytes: SIZE_BYTES_STREAM,
            tx_depth: window(carrier),
            signal_interval: Some(SIGNAL_INTERVAL),
            axes,
            ..Defaults::default()
        }
    }

    /// Pairs have adjacent ranks. With a cyclic placement on two hosts, both ranks of a pair are
    /// therefore on different hosts (Sur et al. 2007, section 3.4).
    fn topology(spec: &PointSpec) -> Topology {
        let Settings { pairs, traffic } = Settings::of(spec);
        let usage = match traffic {
            Traffic::PingPong => Usage::ALTERNATING,
            // Completions show how many messages of a stream are done.
            Traffic::Stream => Usage { flow: Flow::Flood, is_one_way: true, ..Usage::ALTERNATING },
        };
        let ranks = pairs.saturating_mul(2);
        let links = Links::new(ranks, |rank| vec![rank ^ 1], |rank| rank.is_multiple_of(2));
        let together = (0..ranks).filter(|rank| links.begins(*rank)).collect();
        let main = PartSpec::main(&spec.message, usage, links);
        Topology { together, ..Topology::of_one(main) }
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<FloodProgress>), PointError> {
        rank::pairs(rank)
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<FloodProgress>>) -> Merged {
        let floods = Floods {
            who: "pairs",
            message_bytes: spec.message.size_bytes,
            direction: Direction::Pairs,
            passed: told.iter().map(Option::as_ref).collect(),
            timed: None,
            is_all: true,
        };
        floods.merge(&spec.share_above_ns, outcomes)
    }
}

/// Long enough that pairs which share CPUs run many times each.
const DURATION_S: f64 = 0.5;
/// Completions count the messages of a stream: this interval is short enough to follow it.
const SIGNAL_INTERVAL: u32 = 16;

#[cfg(test)]
mod tests;
