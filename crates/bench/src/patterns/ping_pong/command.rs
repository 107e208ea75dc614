//! `rdmascope lat`.

use crate::pattern::command::{Command, NO_LIBRARY, Subject};

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject} latency",
    subjects: &[
        Subject::send("Send to a posted receive: half the round trip of a ping-pong"),
        Subject::write("RDMA Write: half the round trip of a ping-pong whose ranks poll their memory"),
        Subject::read("RDMA Read: the whole round trip"),
        Subject::atomic("Atomic operation on eight bytes: the whole round trip"),
        Subject::mpi_put("MPI_Put and the call that completes it, by default MPI_Win_flush"),
        Subject::mpi_get("MPI_Get and the call that completes it, by default MPI_Win_flush"),
    ],
    over: NO_LIBRARY,
    examples: "
  rdmascope lat send --local           2 B over RC, 1000 messages, on this host
  rdmascope lat send --local -s 4KiB -n 100000 -c UC
  rdmascope lat send --local -a -I 64  all sizes, up to 64 B inline
  rdmascope lat send --local -e -D 10  sleep for completions, for ten seconds
  rdmascope lat write --local -a       the target polls its memory: ib_write_lat
  rdmascope lat write --local --imm    the target waits for a completion
  rdmascope lat read --local -s 4KiB   the whole round trip: ib_read_lat
  rdmascope lat atomic --local -A CMP_AND_SWAP
  rdmascope lat tcp --local            TCP_RR: half a round trip, transactions
  rdmascope lat udp --local --busy -s 64,1KiB
                                       poll the socket instead of sleeping
  rdmascope lat mpi -s 8..4KiB         MPI_Send and MPI_Recv, as osu_latency
  rdmascope lat mpi-put --mpi-sync flush,fence
                                       MPI_Put until it is complete
  rdmascope lat send --listen 0.0.0.0  on node7: waits, and prints the key
  rdmascope lat send node7 --key KEY -a -c UC
                                       on another host: measures with node7",
    ..Command::new("lat", "Measure latency, with flags that perftest's users know")
};
