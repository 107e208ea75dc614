//! `rdmascope one-way`.

use crate::axis;
use crate::pattern::command::{Command, NO_LIBRARY, Subject};
use crate::point::Operation;

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} one-way latency",
    // Immediate data says a message's number.
    subjects: &[
        Subject::verbs("send", Operation::SendImm, "Send with immediate data, which numbers messages"),
        Subject::verbs(
            "write",
            Operation::WriteImm,
            "RDMA Write with immediate data, which consumes a receive at the target",
        ),
    ],
    over: NO_LIBRARY,
    without: &[axis::QUEUE_PAIRS.row, axis::SGE.row],
    examples: "
  rdmascope one-way send --local       32 B over RC, every message by itself
  rdmascope one-way send --local -c UC -I 64 --burst all -Q 64
                                       a flood, inline and seldom signalled
  rdmascope one-way send --local --poll hybrid --pause 1ms
                                       poll for receives, sleep for sends
  rdmascope one-way write --local --stamp sent
                                       from the device's fetch of the message
  rdmascope one-way send --listen 0.0.0.0
                                       on node7: waits, and prints the key
  rdmascope one-way send node7 --key KEY -a
                                       on another host: with the clocks' bound",
    ..Command::new("one-way", "Measure messages one way, with stamps of both ends")
};
