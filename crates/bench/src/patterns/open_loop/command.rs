//! `rdmascope open-loop`.

use crate::axis;
use crate::pattern::command::{Command, NO_LIBRARY, Ranks, Subject};
use crate::point::{Carrier, Operation};

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} response times at a set rate",
    ranks: Ranks::All,
    subjects: &[
        Subject::send("Send to a posted receive, and an answer"),
        Subject::verbs("write", Operation::WriteImm, "RDMA Write with immediate data, and an answer"),
        Subject::read("RDMA Read"),
        Subject::atomic("Atomic operation on eight bytes"),
    ],
    over: NO_LIBRARY,
    without: |carrier, operation| match (carrier, operation) {
        (Carrier::Mpi | Carrier::Shmem, _) => &[axis::LOADERS.row, axis::LOAD.row, axis::LOAD_BYTES.row],
        (_, Some(operation)) if operation.is_fetch() => {
            &[axis::POLL.row, axis::QUEUE_PAIRS.row, axis::SIGNAL_INTERVAL.row]
        }
        _ => &[axis::QUEUE_PAIRS.row, axis::SIGNAL_INTERVAL.row],
    },
    examples: "
  rdmascope open-loop send             2 B, 10,000 per second for a second
  rdmascope open-loop send --rate 1k,10k,100k,1M
                                       up to rates that the device cannot carry
  rdmascope open-loop send --loaders 0,1,4 --load incast
                                       while others write to the answering rank
  rdmascope open-loop read --loaders 0..3 --load outcast --load-size 1MiB -D 5
                                       while others read from the sending rank
  rdmascope open-loop send --loaders 2 --hosts n1,n2,n3,n4 --via 'ssh {host}'
                                       a rank on each host
  rdmascope run load                   latency over rate and load, with a report",
    ..Command::new(
        "open-loop",
        "Measure messages at a set rate, each from when it was due, while other ranks load the device",
    )
};
