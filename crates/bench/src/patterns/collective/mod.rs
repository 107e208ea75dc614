//! Collective operations, with each call timed on every rank (Subramoni et al. 2009).
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]
//! name = "allreduce"
//! pattern = "collective"
//! iterations = 1000
//! [experiment.axes]
//! endpoint = "mpi"
//! collective = ["allreduce", "allgather"]
//! collective_call = ["blocking", "overlapped"]
//! ranks = [2, 4]
//! start = ["barrier", "instant"]
//! size_bytes = "8..1MiB"
//!
//! [[experiment]]
//! name = "barrier"
//! pattern = "collective"
//! [experiment.axes]
//! endpoint = ["verbs", "mpi"]
//! collective = "barrier"
//! size_bytes = 0
//! ranks = [2, 4, 8]
//! ways = [1, 2, 3, 4]                  # of a dissemination over verbs
//! ```

mod check;
mod command;
mod settings;
mod table;

use self::settings::Settings;
use crate::axis::AxisList;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::collectives::{CollectiveCall, CollectiveSpec, Joint};
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::{PointError, out_of_order};
use crate::pattern::defaults::Defaults;
use crate::pattern::joint::{self, CallStamps, Share, merge};
use crate::pattern::outcome::{Merged, Outcome};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::point::{Carrier, PointSpec};
use crate::topology::Topology;

/// The pattern.
pub(crate) struct Collectives;

impl Pattern for Collectives {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COLLECTIVES,
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        can_be_cut: |_| true,
        ..Row::named("collective")
    };
    type Told = CallStamps;

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults { size_bytes: SIZE_BYTES, axes: Settings::usual(), ..joint::defaults() }
    }

    fn topology(spec: &PointSpec) -> Topology {
        let Settings { ranks, start, .. } = Settings::of(spec);
        joint::topology(spec, ranks, start, joint(spec))
    }

    fn run<E: DrivenEndpoint>(mut rank: Rank<'_, E>) -> Result<(Outcome, Option<CallStamps>), PointError> {
        let spec = rank.spec;
        let settings = Settings::of(spec);
        let share = Share {
            spec,
            rank: rank.rank,
            ranks: settings.ranks,
            rank_clock: rank.rank_clock,
            has_one_clock: rank.has_one_clock(),
            barrier: rank.barrier(),
            joint: joint(spec),
            start: settings.start,
            injection: settings.inject,
            overlap: (settings.collective_call == CollectiveCall::Overlapped).then_some(settings.mpi_tests),
        };
        let visited = rank.main()?.visit_collectives(share);
        visited.ok_or_else(|| out_of_order("run"))?.map_err(PointError::from)
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<CallStamps>>) -> Merged {
        merge(spec, outcomes, told)
    }
}

/// What the ranks of a point call.
fn joint(spec: &PointSpec) -> Joint {
    let settings = Settings::of(spec);
    Joint::Collective(CollectiveSpec {
        operation: settings.collective,
        call: settings.collective_call,
        blocks: settings.blocks,
        size_bytes: spec.message.size(),
        element: settings.datatype,
        reduction: settings.op,
        algorithm: settings.algorithm,
        ways: settings.ways,
    })
}

/// Two elements of 4 B, as in the first rows of the OSU and the Intel MPI Benchmarks.
const SIZE_BYTES: u64 = 8;
