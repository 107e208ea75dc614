//! `rdmascope overhead`.

use measure::figure::{Figure, FigureKind};

use crate::axis;
use crate::pattern::command::Command;

pub(super) const COMMAND: Command = Command {
    title: |_| "What calls cost",
    counts: "batches",
    // For large messages and regions, fewer batches are enough.
    given: &[("bytes_max", "1GiB")],
    takes_duration: false,
    without: |_, _| {
        &[
            axis::OUTSTANDING_READS.row,
            axis::POLL.row,
            axis::QUEUE_PAIRS.row,
            axis::SETUP.row,
            axis::SGE.row,
            axis::SIGNAL_INTERVAL.row,
        ]
    },
    figures: |experiments| vec![costs(experiments)],
    examples: "
  rdmascope overhead --local           the cost of every call, at 64 B
  rdmascope overhead --local -s 4..4KiB --step post_send,poll_send -c UD
  rdmascope overhead --local -s 4KiB..64MiB --step register_cold,register_warm
  rdmascope overhead --local -I 256 -s 4..256 --step post_send
                                       inline: the CPU copies the message
  rdmascope overhead --local --step connect_qp,rdma_cm_connect
                                       by hand and through RDMA CM
  rdmascope overhead --local --operation write --out calls
                                       with a record and a report
  rdmascope overhead --listen 0.0.0.0  on node7: waits, and prints the key
  rdmascope overhead node7 --key KEY   on another host: measures with node7",
    ..Command::new(
        "overhead",
        "Measure what each verbs call costs the CPU: posts, polls, registration, set-up",
    )
};

/// A row for each step, a column for each size.
fn costs(experiments: Vec<String>) -> Figure {
    Figure {
        caption: Some("The time of a batch, divided by its calls. It includes the stamp's share.".to_owned()),
        experiments,
        x: Some("step".to_owned()),
        y: Some("cost.ns".to_owned()),
        series: vec!["size_bytes".to_owned()],
        ..Figure::new(FigureKind::Table, "Cost of a call")
    }
}
