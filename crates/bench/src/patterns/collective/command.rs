//! `rdmascope collective`.

use crate::pattern::command::{Command, Ranks, Subject};
use crate::point::Carrier;

/// A collective operation over MPI, by the names that it has elsewhere too.
const fn subject(
    name: &'static str,
    aliases: &'static [&'static str],
    given: &'static [(&'static str, &'static str)],
    about: &'static str,
) -> Subject {
    Subject { given, ..Subject::over(Carrier::Mpi, name, about).alias(aliases) }
}

/// The same over verbs.
const fn over_verbs(
    name: &'static str,
    given: &'static [(&'static str, &'static str)],
    about: &'static str,
) -> Subject {
    Subject { given, ..Subject::over(Carrier::Verbs, name, about) }
}

pub(super) const COMMAND: Command = Command {
    title: |_| "{subject}, timed on every rank",
    counts: "calls",
    ranks: Ranks::All,
    subjects: &[
        subject(
            "allgather",
            &["osu_allgather", "Allgather"],
            &[("collective", "allgather")],
            "Each rank gives a block, and all get the blocks of all",
        ),
        subject(
            "allreduce",
            &["osu_allreduce", "Allreduce"],
            &[("collective", "allreduce")],
            "All get what reduces the vectors of all",
        ),
        subject(
            "alltoall",
            &["osu_alltoall", "Alltoall"],
            &[("collective", "alltoall")],
            "Each rank gives every other a block of its own",
        ),
        subject(
            "barrier",
            &["osu_barrier", "Barrier"],
            &[("collective", "barrier"), ("size_bytes", "0")],
            "No rank goes on before all have come",
        ),
        subject(
            "bcast",
            &["osu_bcast", "Bcast", "broadcast"],
            &[("collective", "bcast")],
            "All get what rank 0 has",
        ),
        subject(
            "gather",
            &["osu_gather", "Gather"],
            &[("collective", "gather")],
            "Rank 0 gets a block of each rank",
        ),
        subject(
            "reduce",
            &["osu_reduce", "Reduce"],
            &[("collective", "reduce")],
            "Rank 0 gets what reduces the vectors of all",
        ),
        subject(
            "reduce-scatter",
            &["reduce_scatter", "osu_reduce_scatter", "Reduce_scatter_block"],
            &[("collective", "reduce_scatter")],
            "Each rank gets a block of what reduces the vectors of all",
        ),
        subject(
            "scatter",
            &["osu_scatter", "Scatter"],
            &[("collective", "scatter")],
            "Each rank gets a block of what rank 0 has",
        ),
        subject(
            "allgatherv",
            &["osu_allgatherv", "Allgatherv"],
            &[("collective", "allgatherv")],
            "Each rank gives a block, and all get the blocks of all, with a length and a place for each block",
        ),
        subject(
            "alltoallv",
            &["osu_alltoallv", "Alltoallv"],
            &[("collective", "alltoallv")],
            "Each rank gives every other a block of its own, with a length and a place for each block",
        ),
        subject(
            "gatherv",
            &["osu_gatherv", "Gatherv"],
            &[("collective", "gatherv")],
            "Rank 0 gets a block of each rank, with a length and a place for each block",
        ),
        subject(
            "scatterv",
            &["osu_scatterv", "Scatterv"],
            &[("collective", "scatterv")],
            "Each rank gets a block of what rank 0 has, with a length and a place for each block",
        ),
        subject(
            "iallgather",
            &["osu_iallgather", "Iallgather"],
            &[("collective", "allgather"), ("collective_call", "overlapped")],
            "Each rank gives a block, and all get the blocks of all, while a calculation goes on",
        ),
        subject(
            "iallreduce",
            &["osu_iallreduce", "Iallreduce"],
            &[("collective", "allreduce"), ("collective_call", "overlapped")],
            "All get what reduces the vectors of all, while a calculation goes on",
        ),
        subject(
            "ialltoall",
            &["osu_ialltoall", "Ialltoall"],
            &[("collective", "alltoall"), ("collective_call", "overlapped")],
            "Each rank gives every other a block of its own, while a calculation goes on",
        ),
        subject(
            "ibarrier",
            &["osu_ibarrier", "Ibarrier"],
            &[("collective", "barrier"), ("collective_call", "overlapped"), ("size_bytes", "0")],
            "No rank goes on before all have come, while a calculation goes on",
        ),
        subject(
            "ibcast",
            &["osu_ibcast", "Ibcast"],
            &[("collective", "bcast"), ("collective_call", "overlapped")],
            "All get what rank 0 has, while a calculation goes on",
        ),
        subject(
            "igather",
            &["osu_igather", "Igather"],
            &[("collective", "gather"), ("collective_call", "overlapped")],
            "Rank 0 gets a block of each rank, while a calculation goes on",
        ),
        subject(
            "ireduce",
            &["osu_ireduce", "Ireduce"],
            &[("collective", "reduce"), ("collective_call", "overlapped")],
            "Rank 0 gets what reduces the vectors of all, while a calculation goes on",
        ),
        subject(
            "ireduce-scatter",
            &["ireduce_scatter", "osu_ireduce_scatter", "Ireduce_scatter_block", "osu_ireduce_scatter_block"],
            &[("collective", "reduce_scatter"), ("collective_call", "overlapped")],
            "Each rank gets a block of what reduces the vectors of all, while a calculation goes on",
        ),
        subject(
            "iscatter",
            &["osu_iscatter", "Iscatter"],
            &[("collective", "scatter"), ("collective_call", "overlapped")],
            "Each rank gets a block of what rank 0 has, while a calculation goes on",
        ),
        over_verbs(
            "verbs-allgather",
            &[("collective", "allgather")],
            "The same as allgather, by RDMA Writes of our own",
        ),
        over_verbs(
            "verbs-allreduce",
            &[("collective", "allreduce")],
            "The same as allreduce, by RDMA Writes of our own",
        ),
        over_verbs(
            "verbs-barrier",
            &[("collective", "barrier"), ("size_bytes", "0")],
            "The same as barrier, by RDMA Writes of our own: a dissemination in n ways",
        ),
    ],
    examples: "
  rdmascope collective allreduce       8 B of floats, 2 ranks, after MPI's barrier
  rdmascope collective allgather --ranks 2,4 -s 1..64KiB
                                       over message size
  rdmascope collective barrier --ranks 4 --mpi 'srun --mpi=pmix -n {ranks}'
                                       started by the site's own launcher
  rdmascope collective bcast --start instant,barrier,none
                                       how much of it is the way of starting
  rdmascope collective iallreduce -s 8..64KiB --mpi-tests 4
                                       how much of it a calculation hides, with 4 MPI_Test in that
  rdmascope collective allreduce --collective-call blocking,nonblocking
                                       MPI_Allreduce beside MPI_Iallreduce and MPI_Wait
  rdmascope collective reduce --inject rank=1,before=100us
                                       what a late rank does to the others
  rdmascope collective verbs-barrier --ranks 4 --ways 1,2,3
                                       the n-way dissemination of Hoefler et al. over RDMA Writes
  rdmascope collective verbs-allreduce --ranks 4 --algorithm recursive_doubling,ring
                                       over RDMA Writes",
    ..Command::new(
        "collective",
        "Measure collective operations of MPI or over verbs, each call timed on every rank",
    )
};
