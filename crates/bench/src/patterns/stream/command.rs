//! `rdmascope bw`.

use crate::pattern::command::{Command, NO_LIBRARY, Subject};

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} throughput",
    subjects: &[
        Subject::send("Send to posted receives, within a window of outstanding messages"),
        Subject::write("RDMA Write, which the receiver does not notice"),
        Subject::read("RDMA Read, with as many outstanding as the devices allow"),
        Subject::atomic("Atomic operations on eight bytes"),
        Subject::mpi_put("MPI_Put: windows of 64, each completed by one call"),
        Subject::mpi_get("MPI_Get: windows of 64, each completed by one call"),
    ],
    over: NO_LIBRARY,
    examples: "
  rdmascope bw send --local            64 KiB over RC, both ranks here
  rdmascope bw send --local -b         both directions at once
  rdmascope bw send --local -c UD -s 1KiB -t 64 -Q 16
  rdmascope bw write --local -q 4 -l 16
                                       four queue pairs, lists of sixteen
  rdmascope bw tcp --local -s 128KiB -D 5
                                       TCP_STREAM: throughput, CPU per byte
  rdmascope bw udp --local -s 1400 -l 32 --offload
                                       UDP_STREAM: received and lost datagrams
  rdmascope bw tcp node7 --key KEY -P 4
                                       on another host: four streams at once
  rdmascope bw mpi-get --tx-depth 16,64
                                       windows of MPI_Get, each with a flush
  rdmascope bw read --listen 0.0.0.0   on node7: waits, and prints the key
  rdmascope bw read node7 --key KEY -a --report_gbits
                                       on another host: measures with node7",
    ..Command::new("bw", "Measure throughput, with flags that perftest's users know")
};
