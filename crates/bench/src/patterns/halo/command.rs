//! `rdmascope halo`.

use crate::pattern::command::{Command, JOINT, Ranks, Subject};
use crate::point::Carrier;

/// A method of MPI.
const fn subject(
    name: &'static str,
    given: &'static [(&'static str, &'static str)],
    about: &'static str,
) -> Subject {
    Subject { given, ..Subject::over(Carrier::Mpi, name, about) }
}

pub(super) const COMMAND: Command = Command {
    takes_duration: false,
    without: JOINT,
    title: |_| "Halo exchange by {subject}",
    counts: "exchanges",
    ranks: Ranks::All,
    subjects: &[
        subject(
            "mpi",
            &[("halo_method", "[\"sendrecv\", \"nonblocking\", \"persistent\", \"neighbour\", \"put\"]")],
            "All of these methods in turn",
        ),
        subject("sendrecv", &[("halo_method", "sendrecv")], "MPI_Sendrecv in each of the four directions"),
        subject("nonblocking", &[("halo_method", "nonblocking")], "MPI_Irecv, MPI_Isend and MPI_Waitall"),
        subject(
            "persistent",
            &[("halo_method", "persistent")],
            "Persistent requests: MPI_Startall and MPI_Waitall",
        ),
        subject(
            "neighbour",
            &[("halo_method", "neighbour")],
            "MPI_Neighbor_alltoall on a Cartesian communicator",
        ),
        subject("put", &[("halo_method", "put")], "MPI_Put between two fences"),
        Subject::over(
            Carrier::Verbs,
            "verbs",
            "RDMA Writes into the memory of the neighbours, which poll a word at the end of each side",
        ),
    ],
    examples: "
  rdmascope halo mpi                   64 values a side, all methods in turn
  rdmascope halo nonblocking --grid 2x2 --values 0,1,16,256,1024
                                       over the values of a side
  rdmascope halo verbs --values 0,8,64,1024
                                       the same without MPI
  rdmascope halo mpi --grid 4x4 --mpi 'srun --mpi=pmix -n {ranks}'
                                       16 ranks, started by the site's launcher
  rdmascope run sur-2007               the paper that has this benchmark",
    ..Command::new("halo", "Measure the exchange of a block's sides between neighbours on a torus of ranks")
};
