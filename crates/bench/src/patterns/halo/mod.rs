//! Halo exchange: each rank of a torus has a block of values and exchanges the values on its four
//! sides with its neighbours (Sur et al. 2007, section 3.4).
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]
//! name = "halo"
//! pattern = "halo"
//! iterations = 1000
//! [experiment.axes]
//! endpoint = ["verbs", "mpi"]          # verbs: RDMA Writes into the neighbours' memory
//! grid = ["4x1", "4x2"]                # rows and columns of ranks
//! halo_method = ["nonblocking", "put"] # of MPI
//! side_values = [0, 1, 16, 256, 1024]  # values of 8 B on a side
//! ```

mod check;
pub(crate) mod choices;
mod command;
mod settings;
mod table;

use measure::record::Axes;

use self::settings::Settings;
use crate::axis::{self, AxisList};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::collectives::{HaloSpec, Joint};
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
pub(crate) struct Halo;

impl Pattern for Halo {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COLLECTIVES,
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        size_bytes: Some(size_bytes),
        can_be_cut: |_| true,
        ..Row::named("halo")
    };
    type Told = CallStamps;

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        let mut axes = Settings::usual();
        axes.push(axis::SIDE_VALUES.value(SIDE_VALUES));
        Defaults { axes, made: &[axis::SIZE_BYTES.row], ..joint::defaults() }
    }

    fn topology(spec: &PointSpec) -> Topology {
        let Settings { grid, start, .. } = Settings::of(spec);
        joint::topology(spec, grid.ranks(), start, joint(spec))
    }

    fn run<E: DrivenEndpoint>(mut rank: Rank<'_, E>) -> Result<(Outcome, Option<CallStamps>), PointError> {
        let spec = rank.spec;
        let Settings { grid, start, inject, .. } = Settings::of(spec);
        let share = Share {
            spec,
            rank: rank.rank,
            ranks: grid.ranks(),
            rank_clock: rank.rank_clock,
            has_one_clock: rank.has_one_clock(),
            barrier: rank.barrier(),
            joint: joint(spec),
            start,
            injection: inject,
            overlap: None,
        };
        let visited = rank.main()?.visit_collectives(share);
        visited.ok_or_else(|| out_of_order("run"))?.map_err(PointError::from)
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<CallStamps>>) -> Merged {
        merge(spec, outcomes, told)
    }
}

/// What the ranks of a point exchange.
fn joint(spec: &PointSpec) -> Joint {
    let Settings { grid, halo_method, .. } = Settings::of(spec);
    Joint::Halo(HaloSpec { grid, method: halo_method, side_bytes: spec.message.size() })
}

/// The bytes of a side.
fn size_bytes(axes: &Axes) -> u64 {
    VALUE_BYTES * axis::SIDE_VALUES.at(axes).map_or(0, u64::from)
}

/// The default: some cache lines.
const SIDE_VALUES: u32 = 64;
/// A value in double precision.
const VALUE_BYTES: u64 = 8;
