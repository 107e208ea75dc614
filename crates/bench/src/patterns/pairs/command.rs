//! `rdmascope pairs`.

use crate::axis;
use crate::pattern::command::{Command, NO_LIBRARY, Ranks, Subject};
use crate::pattern::defaults::are_all;
use crate::point::{Carrier, Traffic};

pub(super) const COMMAND: Command = Command {
    title: |axes| match are_all(axes, axis::TRAFFIC, |traffic| traffic == Traffic::Stream) {
        true => "{subject} throughput of several pairs",
        false => "{subject} latency of several pairs",
    },
    ranks: Ranks::All,
    subjects: &[
        Subject::send("Send to a posted receive: half a round trip"),
        Subject::write("RDMA Write to a peer that polls its memory: half a round trip"),
        Subject::read("RDMA Read: the whole round trip"),
        Subject::atomic("Atomic operation on eight bytes: the whole round trip"),
    ],
    over: NO_LIBRARY,
    given: &[("pairs", "1,2,4,8")],
    without: |carrier, _| match carrier {
        // Only latencies of these sockets can be measured in pairs.
        Carrier::Sctp | Carrier::Udp => &[axis::QUEUE_PAIRS.row, axis::TRAFFIC.row],
        _ => &[axis::QUEUE_PAIRS.row],
    },
    examples: "
  rdmascope pairs write                2 B over RC, of 1, 2, 4 and 8 pairs
  rdmascope pairs read --pairs 1..4 -s 1..1KiB
                                       over message size
  rdmascope pairs write --stream -s 64KiB
                                       the throughput of all pairs together
  rdmascope pairs send --hosts n1,n2 --via 'ssh {host}'
                                       one rank of each pair on either host
  rdmascope run sur-2007               the paper that has this benchmark",
    ..Command::new("pairs", "Measure several pairs of ranks that exchange messages at the same time")
};
