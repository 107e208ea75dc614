//! The words of what all ranks do together: how they begin.

use crate::point::choice::choice;

choice! {
    /// How the ranks begin each call together.
    pub enum Start {
        /// After the barrier of the library, as the OSU and the Intel MPI Benchmarks do: its ranks
        /// leave it one after the other. Over verbs it is a dissemination.
        Barrier = "barrier",
        /// At a common instant, which all know before. Ranks of several clocks compare them by
        /// messages again and again, and the table says how far they may be apart.
        Instant = "instant",
        /// Right after the call before: ranks drift apart. Those of several clocks compare them
        /// about every second, however they begin.
        None = "none",
        /// After a barrier of our own, the same for every library: in memory that the ranks of a
        /// host share, by dissemination of empty messages between hosts.
        OwnBarrier = "own_barrier",
    }
}
