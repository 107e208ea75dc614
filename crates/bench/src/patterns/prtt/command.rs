//! `rdmascope prtt`.

use crate::axis;
use crate::pattern::command::{Command, NO_LIBRARY, Subject};
use crate::point::Operation;

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} parametrised round trips",
    counts: "round trips",
    subjects: &[
        Subject::send("Send to posted receives"),
        Subject::verbs("write", Operation::WriteImm, "RDMA Write with immediate data"),
    ],
    over: NO_LIBRARY,
    without: |_, _| &[axis::QUEUE_PAIRS.row, axis::SIGNAL_INTERVAL.row],
    examples: "
  rdmascope prtt send --local --burst 1,2,4,16 -s 1,1KiB
                                       PRTT(n, 0, s): gives LogGP's g and G
  rdmascope prtt send --local --burst 16 --pause 20us
                                       PRTT(n, d, s): gives LogGP's o
  rdmascope run models                 all measurements of the models",
    ..Command::new("prtt", "Measure bursts that one message answers: PRTT(n, d, s) of LogGP")
};
