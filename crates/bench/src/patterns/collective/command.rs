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
    ],
    examples: "
  rdmascope collective allreduce       8 B of floats, 2 ranks, after MPI's barrier
  rdmascope collective allgather --ranks 2,4 -s 1..64KiB
                                       over message size
  rdmascope collective barrier --ranks 4 --mpi 'srun --mpi=pmix -n {ranks}'
                                       started by the site's own launcher
  rdmascope collective bcast --start instant,barrier,none
                                       how much of it is the way of starting
  rdmascope collective reduce --inject rank=1,before=100us
                                       what a late rank does to the others",
    ..Command::new("collective", "Measure collective operations of MPI, each call timed on every rank")
};
