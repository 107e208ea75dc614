//! The words of what all ranks do together: how they begin.

use crate::point::choice::choice;

choice! {
    /// How the ranks begin each call together.
    pub enum Start {
        /// After the barrier of the library, as the OSU and the Intel MPI Benchmarks do: its ranks
        /// leave it one after the other.
        Barrier = "barrier",
        /// At a common instant, which all know before: ranks of one clock.
        Instant = "instant",
        /// Right after the call before: ranks drift apart.
        None = "none",
        /// After a barrier of our own in shared memory, the same for every library: ranks of one
        /// host.
        OwnBarrier = "own_barrier",
    }
}
