//! One to n, n to one (Hoefler et al. 2006): one rank exchanges messages with n others at once, and
//! every round is timed.

pub(crate) mod check;
pub(crate) mod choices;
mod command;
mod rank;
mod rounds;
mod settings;
mod table;

use measure::record::{Latency, LatencyKind, Timed};
use measure::samples::Samples;

use self::choices::{Mesh, Notify};
use self::settings::Settings;
use crate::axis::{self, AxisList};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::{Defaults, are_all};
use crate::pattern::outcome::{Merged, Outcome, timed_alone};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::point::{Carrier, Operation, PointSpec, Service};
use crate::topology::{Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct FanOut;

impl Pattern for FanOut {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COUNTED,
        has_groups: true,
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        can_be_cut: |_| true,
        ..Row::named("fan-out")
    };
    type Told = ();

    /// In a round, a queue pair has one outstanding message or, where one queue pair serves all
    /// peers, one for each: n queues as deep as a stream's would exceed the completion queues of
    /// some devices.
    fn defaults(given: &AxisList, _carrier: Carrier) -> Defaults {
        let depth = given.get(axis::PEERS).into_iter().fold(DEPTH, u32::max);
        let mut axes = Settings::usual();
        // Only datagrams go to multicast groups.
        if are_all(given, axis::OPERATION, |operation| operation == Operation::Multicast) {
            axes.push(axis::SERVICE.value(Service::Ud));
        }
        Defaults { tx_depth: depth, rx_depth: depth, size_bytes: SIZE_BYTES, axes, ..Defaults::default() }
    }

    fn topology(spec: &PointSpec) -> Topology {
        let Settings { peers, mesh, notify } = Settings::of(spec);
        let usage = Usage {
            has_rounds: true,
            has_place_each: !spec.message.operation.is_fetch(),
            polls_fetched: notify == Some(Notify::Memory),
            ..Usage::ALTERNATING
        };
        let links = Links::star(peers).with_full_mesh(mesh == Mesh::Full);
        Topology::of_one(PartSpec::main(&spec.message, usage, links))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<()>), PointError> {
        Ok((rank::fan_out(rank)?, None))
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, _told: Vec<Option<()>>) -> Merged {
        Merged { kinds: kinds(spec, outcomes), ..Merged::of(outcomes) }
    }
}

/// Where the leaves timed another kind of latency than the root: the root's latency, and the
/// leaves' merged one.
fn kinds(spec: &PointSpec, outcomes: &[Outcome]) -> Vec<Timed> {
    let kind = |outcome: &Outcome| outcome.latency.as_ref().map(|latency| latency.kind);
    let Some(first) = outcomes.first().and_then(|outcome| outcome.latency.clone()) else {
        return Vec::new();
    };
    let others = || outcomes.iter().filter(|outcome| kind(outcome).is_some_and(|kind| kind != first.kind));
    let of_others = |kind: LatencyKind| -> Option<Latency> {
        let all = others().flat_map(|outcome| outcome.samples.iter().copied()).collect();
        Samples::from_ns(all).latency(kind, &spec.share_above_ns)
    };
    let theirs = others().next().and_then(kind).and_then(of_others);
    let both = theirs.map(|theirs| vec![first, theirs]).unwrap_or_default();
    both.into_iter().map(timed_alone).collect()
}

/// More than the outstanding messages of a queue pair of a fan-out.
const DEPTH: u32 = 16;
/// The size in Hoefler et al. 2006, Figure 6, over the number of hosts.
const SIZE_BYTES: u64 = 1;
