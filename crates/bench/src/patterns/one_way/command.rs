//! `rdmascope one-way`.

use crate::axis;
use crate::pattern::command::{Command, NO_LIBRARY, Subject};
use crate::point::Operation;

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} one-way latency",
    // Immediate data carries the number of a message.
    subjects: &[
        Subject::verbs("send", Operation::SendImm, "Send with immediate data, which numbers messages"),
        Subject::verbs(
            "write",
            Operation::WriteImm,
            "RDMA Write with immediate data, which consumes a receive at the target",
        ),
    ],
    over: NO_LIBRARY,
    takes_duration: false,
    without: |_, _| &[axis::QUEUE_PAIRS.row, axis::SGE.row],
    examples: "
  rdmascope one-way send --local       32 B over RC, one message at a time
  rdmascope one-way send --local -c UC -I 64 --burst all -Q 64
                                       one burst, inline, every 64th signalled
  rdmascope one-way send --local --poll hybrid --pause 1ms
                                       poll for receives, sleep for sends
  rdmascope one-way write --local --stamp sent
                                       timed from the fetch of the message
  rdmascope one-way send --listen 0.0.0.0
                                       on node7: waits, and prints the key
  rdmascope one-way send node7 --key KEY -a
                                       on another host, with a bound of clocks",
    ..Command::new("one-way", "Measure messages one way, with stamps of both ranks")
};
