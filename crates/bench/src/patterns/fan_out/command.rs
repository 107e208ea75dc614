//! `rdmascope fan-out`.

use crate::axis;
use crate::pattern::command::{Command, NO_LIBRARY, Ranks, Subject};
use crate::point::Operation;

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} latency of one to n",
    counts: "rounds",
    ranks: Ranks::All,
    subjects: &[
        Subject::send("Send to n posted receives: half the time until all have answered"),
        Subject::write("RDMA Write to n ranks that poll their memory: half the time until all have answered"),
        Subject::read(
            "RDMA Read from n ranks at once, the whole time; then n ranks read from one, each timed",
        ),
        Subject::atomic("Atomic operation on eight bytes at n ranks, in the two stages of reads"),
        Subject::verbs(
            "multicast",
            Operation::Multicast,
            "One datagram to a group of n ranks: half the time until all have answered",
        ),
    ],
    over: NO_LIBRARY,
    given: &[("peers", "1..15")],
    without: |_, _| &[axis::QUEUE_PAIRS.row],
    examples: "
  rdmascope fan-out send               1 B over RC, to 1 up to 15 peers at once
  rdmascope fan-out send --peers 15 -s 1..1MiB -c UC
                                       over message size
  rdmascope fan-out write --peers 1,15 -s 1KiB
                                       the receivers poll their memory
  rdmascope fan-out read --notify memory
                                       one rank from n, then n ranks from one
  rdmascope fan-out multicast -s 1KiB  one packet out, n datagrams back
  rdmascope fan-out send --hosts n1,n2,n3,n4 --via 'ssh {host}' --peers 1..3
                                       a rank on each host
  rdmascope run hoefler-2006           the paper that has this benchmark",
    ..Command::new("fan-out", "Measure one to n, n to one: rounds in which n ranks answer one rank")
};
