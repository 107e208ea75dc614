//! `rdmascope collective`.

use crate::pattern::command::{Command, JOINT, Ranks, Subject};
use crate::point::Carrier;

/// A collective operation over MPI, with the names that other benchmarks give to it.
const fn subject(
    name: &'static str,
    aliases: &'static [&'static str],
    given: &'static [(&'static str, &'static str)],
    about: &'static str,
) -> Subject {
    Subject { given, ..Subject::over(Carrier::Mpi, name, about).alias(aliases) }
}

/// A collective operation over verbs.
const fn over_verbs(
    name: &'static str,
    given: &'static [(&'static str, &'static str)],
    about: &'static str,
) -> Subject {
    Subject { given, ..Subject::over(Carrier::Verbs, name, about) }
}

pub(super) const COMMAND: Command = Command {
    takes_duration: false,
    without: JOINT,
    title: |_| "{subject}, timed on every rank",
    counts: "calls",
    ranks: Ranks::All,
    subjects: &[
        subject(
            "allgather",
            &["osu_allgather", "Allgather"],
            &[("collective", "allgather")],
            "Every rank gathers the blocks of all ranks",
        ),
        subject(
            "allreduce",
            &["osu_allreduce", "Allreduce"],
            &[("collective", "allreduce")],
            "Every rank gets the reduction of all ranks' vectors",
        ),
        subject(
            "alltoall",
            &["osu_alltoall", "Alltoall"],
            &[("collective", "alltoall")],
            "Each rank sends a different block to every other rank",
        ),
        subject(
            "barrier",
            &["osu_barrier", "Barrier"],
            &[("collective", "barrier"), ("size_bytes", "0")],
            "No rank continues before all ranks have called it",
        ),
        subject(
            "bcast",
            &["osu_bcast", "Bcast", "broadcast"],
            &[("collective", "bcast")],
            "Every rank gets the data of rank 0",
        ),
        subject(
            "gather",
            &["osu_gather", "Gather"],
            &[("collective", "gather")],
            "Rank 0 gathers a block from each rank",
        ),
        subject(
            "reduce",
            &["osu_reduce", "Reduce"],
            &[("collective", "reduce")],
            "Rank 0 gets the reduction of all ranks' vectors",
        ),
        subject(
            "reduce-scatter",
            &["reduce_scatter", "osu_reduce_scatter", "Reduce_scatter"],
            &[("collective", "reduce_scatter")],
            "Each rank gets a block of the reduction of all ranks' vectors, with a length for each block",
        ),
        subject(
            "reduce-scatter-block",
            &["reduce_scatter_block", "osu_reduce_scatter_block", "Reduce_scatter_block"],
            &[("collective", "reduce_scatter_block")],
            "Each rank gets a block of the reduction of all ranks' vectors, with one length for all blocks",
        ),
        subject(
            "scatter",
            &["osu_scatter", "Scatter"],
            &[("collective", "scatter")],
            "Each rank gets a block of the data of rank 0",
        ),
        subject(
            "allgatherv",
            &["osu_allgatherv", "Allgatherv"],
            &[("collective", "allgatherv")],
            "Every rank gathers the blocks of all ranks, with a length and an offset for each block",
        ),
        subject(
            "alltoallv",
            &["osu_alltoallv", "Alltoallv"],
            &[("collective", "alltoallv")],
            "Each rank sends a different block to every other rank, with a length and an offset for each block",
        ),
        subject(
            "gatherv",
            &["osu_gatherv", "Gatherv"],
            &[("collective", "gatherv")],
            "Rank 0 gathers a block from each rank, with a length and an offset for each block",
        ),
        subject(
            "scatterv",
            &["osu_scatterv", "Scatterv"],
            &[("collective", "scatterv")],
            "Each rank gets a block of the data of rank 0, with a length and an offset for each block",
        ),
        subject(
            "iallgather",
            &["osu_iallgather", "Iallgather"],
            &[("collective", "allgather"), ("collective_call", "overlapped")],
            "Every rank gathers the blocks of all ranks, overlapped with a computation",
        ),
        subject(
            "iallreduce",
            &["osu_iallreduce", "Iallreduce"],
            &[("collective", "allreduce"), ("collective_call", "overlapped")],
            "Every rank gets the reduction of all ranks' vectors, overlapped with a computation",
        ),
        subject(
            "ialltoall",
            &["osu_ialltoall", "Ialltoall"],
            &[("collective", "alltoall"), ("collective_call", "overlapped")],
            "Each rank sends a different block to every other rank, overlapped with a computation",
        ),
        subject(
            "ibarrier",
            &["osu_ibarrier", "Ibarrier"],
            &[("collective", "barrier"), ("collective_call", "overlapped"), ("size_bytes", "0")],
            "No rank continues before all ranks have called it, overlapped with a computation",
        ),
        subject(
            "ibcast",
            &["osu_ibcast", "Ibcast"],
            &[("collective", "bcast"), ("collective_call", "overlapped")],
            "Every rank gets the data of rank 0, overlapped with a computation",
        ),
        subject(
            "igather",
            &["osu_igather", "Igather"],
            &[("collective", "gather"), ("collective_call", "overlapped")],
            "Rank 0 gathers a block from each rank, overlapped with a computation",
        ),
        subject(
            "ireduce",
            &["osu_ireduce", "Ireduce"],
            &[("collective", "reduce"), ("collective_call", "overlapped")],
            "Rank 0 gets the reduction of all ranks' vectors, overlapped with a computation",
        ),
        subject(
            "ireduce-scatter",
            &["ireduce_scatter", "osu_ireduce_scatter", "Ireduce_scatter"],
            &[("collective", "reduce_scatter"), ("collective_call", "overlapped")],
            "Like reduce-scatter, overlapped with a computation",
        ),
        subject(
            "ireduce-scatter-block",
            &["ireduce_scatter_block", "osu_ireduce_scatter_block", "Ireduce_scatter_block"],
            &[("collective", "reduce_scatter_block"), ("collective_call", "overlapped")],
            "Like reduce-scatter-block, overlapped with a computation",
        ),
        subject(
            "iscatter",
            &["osu_iscatter", "Iscatter"],
            &[("collective", "scatter"), ("collective_call", "overlapped")],
            "Each rank gets a block of the data of rank 0, overlapped with a computation",
        ),
        over_verbs(
            "verbs-allgather",
            &[("collective", "allgather")],
            "Like allgather, but by RDMA Writes without MPI",
        ),
        over_verbs(
            "verbs-allreduce",
            &[("collective", "allreduce")],
            "Like allreduce, but by RDMA Writes without MPI",
        ),
        over_verbs(
            "verbs-barrier",
            &[("collective", "barrier"), ("size_bytes", "0")],
            "Like barrier, but by RDMA Writes without MPI: an n-way dissemination",
        ),
    ],
    examples: "
  rdmascope collective allreduce       8 B of floats, 2 ranks, after MPI's barrier
  rdmascope collective allgather --ranks 2,4 -s 1..64KiB
                                       over message size
  rdmascope collective barrier --ranks 4 --mpi 'srun --mpi=pmix -n {ranks}'
                                       ranks started by the site's launcher
  rdmascope collective bcast --start instant,barrier,none
                                       how the way of starting changes the times
  rdmascope collective iallreduce -s 8..64KiB --mpi-tests 4
                                       overlap, with 4 calls of MPI_Test
  rdmascope collective allreduce --collective-call blocking,nonblocking
                                       blocking and nonblocking
  rdmascope collective reduce --inject rank=1,before=100us
                                       how a late rank delays the others
  rdmascope collective verbs-barrier --ranks 4 --ways 1,2,3
                                       n-way dissemination over RDMA Writes
  rdmascope collective verbs-allreduce --ranks 4 --algorithm recursive_doubling,ring
                                       over RDMA Writes",
    ..Command::new(
        "collective",
        "Measure collective operations of MPI or over verbs, each call timed on every rank",
    )
};
