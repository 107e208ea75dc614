//! Files go from rank 0 to rank 1, over verbs or TCP (Subramoni et al. 2009).
//!
//! # Invariants
//!
//! * A repetition is a whole transfer: from the first block that is sent until the receiver has
//!   reported that every file has its name. The set-up of the connection is timed separately.

mod axes;
mod check;
pub(crate) mod choices;
mod table;

use measure::record::{Direction, Status, Throughput};
use serde_json::json;

use crate::axis::AxisList;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::{PointError, out_of_order};
use crate::pattern::command::Command;
use crate::pattern::defaults::Defaults;
use crate::pattern::outcome::{Merged, Outcome, Told};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::point::{Carrier, Length, PointSpec};
use crate::topology::Topology;
use crate::transfer::{self, DIRECT, EndTold};

/// The pattern.
pub(crate) struct Transfers;

impl Told for EndTold {}

impl Pattern for Transfers {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::NONE,
        shown: &table::SHOWN,
        axes: axes::OWN,
        only_axes: Some(axes::ONLY),
        keeps_files: true,
        stands_in: Some(transfer::prepare),
        command: Command { is_of_plans: true, ..Command::new("transfer", "Transfer files") },
        ..Row::named("transfer")
    };
    type Told = EndTold;

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults {
            length: Length::Iterations(1),
            tx_depth: axes::DEPTH,
            size_bytes: axes::FILE_BYTES,
            axes: axes::usual(),
            ..Defaults::default()
        }
    }

    fn topology(_spec: &PointSpec) -> Topology {
        Topology { ranks: 2, parts: Vec::new(), together: Vec::new() }
    }

    /// Never called: the code that moves the files replaces the endpoints.
    fn run<E: DrivenEndpoint>(_rank: Rank<'_, E>) -> Result<(Outcome, Option<EndTold>), PointError> {
        Err(out_of_order("transfer files"))
    }

    fn merge(spec: &PointSpec, _outcomes: &mut Vec<Outcome>, told: Vec<Option<EndTold>>) -> Merged {
        if told.is_empty() {
            // The transfer was not run, and the point has the reason.
            return Merged::default();
        }
        let Ok([Some(source), Some(sink)]) = <[Option<EndTold>; 2]>::try_from(told) else {
            let error = "a rank has not reported the result of its transfer".to_owned();
            return Merged::without_numbers(Status::Failed { error });
        };
        let own = Some(json!({ "source": source, "sink": sink }));
        let notes = [&source, &sink].into_iter().find_map(|end| end.notes.get(DIRECT));
        if let Some(reason) = notes.filter(|_| spec.is_measurement()) {
            // The files went another way than the plan says: such numbers must not have its name.
            let status = Status::NotMeasured { reason: reason.clone() };
            return Merged { own, ..Merged::without_numbers(status) };
        }
        let failures = source.counts.failures.iter().chain(&sink.counts.failures);
        let failed = source.counts.failed + sink.counts.failed;
        let of_all =
            if failed > 1 { format!("{failed} files did not arrive, the first: ") } else { String::new() };
        let status =
            failures.into_iter().next().map(|first| Status::Failed { error: format!("{of_all}{first}") });
        let seconds = source.wall_ns / 1e9;
        let per_s = |count: u64| count as f64 / seconds;
        // If all files were there already, nothing was transferred.
        let throughput =
            (seconds > 0.0 && (spec.is_measurement() || sink.counts.bytes > 0)).then(|| Throughput {
                bytes_per_s: per_s(sink.counts.bytes),
                messages_per_s: per_s(sink.counts.files),
                direction: Direction::Uni,
            });
        Merged { status, throughput, own, ..Merged::default() }
    }
}
