//! Runs an application, and reads the metrics of a point from its output (Sur et al. 2007, section
//! 3.5; Subramoni et al. 2009).
//!
//! # In a plan
//!
//! ```toml
//! [[application]]
//! name = "sort"
//! command = ["sort", "--parallel={ranks}", "{input}"]
//! launcher = "none"                    # or "mpi", as for ranks of MPI; or a command template
//! files = { input = "words.txt" }      # copied into its directory; or { name = "words.txt", text = "..." }
//! environment = { LC_ALL = "C" }
//! ranks_allowed = [1, 2]               # or "any", "squares", "powers_of_two"
//! install = "apt-get install coreutils"
//! version_command = ["sort", "--version"]
//! [[application.metric]]
//! name = "time"
//! unit = "s"
//! pattern = '^real (?<value>\S+)$'     # must match once; a group (?<ranks>...) must equal the point's ranks
//! in = "stderr"                        # or "stdout", or a file that it writes
//! better = "less"                      # or "more"
//!
//! [[mode]]                             # for the axis: mode = ["plain", "large"]
//! name = "large"
//! environment = { MALLOC_TOP_PAD_ = "1000000" }
//!
//! [variables]                          # for placeholders: --set directory=/data
//! directory = ""
//!
//! [[experiment]]
//! name = "sorting"
//! pattern = "application"
//! repetitions = 3                      # whole runs, in turn with the other points
//! timeout = "300s"
//! [experiment.axes]
//! application = "sort"
//! ranks = [1, 2]
//! ```
//!
//! # Invariants
//!
//! * A repetition is a whole run of the program, from its start to its exit.

mod axes;
mod check;
mod table;

use measure::record::Status;

use self::axes::ONLY;
use crate::application::Ran;
use crate::axis::{self, AxisList};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::{PointError, out_of_order};
use crate::pattern::command::Command;
use crate::pattern::defaults::Defaults;
use crate::pattern::outcome::{Merged, Outcome};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::point::{Carrier, Length, PointSpec};
use crate::topology::Topology;

/// The pattern.
pub(crate) struct Programs;

impl Pattern for Programs {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::PROGRAMS,
        shown: &table::SHOWN,
        axes: &[axis::APPLICATION.row, axis::MODE.row, axis::RANKS.row],
        carrier: Carrier::Program,
        only_axes: Some(ONLY),
        command: Command { is_of_plans: true, ..Command::new("application", "Run an application") },
        ..Row::named("application")
    };
    type Told = Ran;

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults { length: Length::Iterations(1), axes: vec![axis::RANKS.value(1)], ..Defaults::default() }
    }

    /// One rank, which starts the program.
    fn topology(_spec: &PointSpec) -> Topology {
        Topology { ranks: 1, parts: Vec::new(), together: Vec::new() }
    }

    /// Never called: the program's runner replaces the endpoints.
    fn run<E: DrivenEndpoint>(_rank: Rank<'_, E>) -> Result<(Outcome, Option<Ran>), PointError> {
        Err(out_of_order("run a program"))
    }

    fn merge(spec: &PointSpec, _outcomes: &mut Vec<Outcome>, told: Vec<Option<Ran>>) -> Merged {
        let asked = spec.application.as_ref().map_or(&[][..], |spec| &spec.application.metric);
        if told.is_empty() {
            // The program was not run, and the point has the reason.
            return Merged::default();
        }
        let Some(mut ran) = told.into_iter().flatten().next() else {
            let error = "rank 0 has not reported the result of its program".to_owned();
            return Merged::without_numbers(Status::Failed { error });
        };
        // The unit and the direction of a metric are those of the plan, whatever the rank reports.
        for metric in asked {
            match ran.metrics.get_mut(&metric.name) {
                Some(found) => (found.unit, found.better) = (metric.unit.clone(), metric.better),
                None => _ = ran.failure.get_or_insert_with(|| format!("rank 0 reported no {}", metric.name)),
            }
        }
        ran.metrics.retain(|name, _| asked.iter().any(|metric| metric.name == *name));
        let status = ran.failure.clone().map(|error| Status::Failed { error });
        Merged { status, own: serde_json::to_value(ran).ok(), ..Merged::default() }
    }
}
