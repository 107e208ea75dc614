//! The words for how ranks start collective calls.

use crate::point::choice::choice;

choice! {
    /// How the ranks start each call together.
    pub enum Start {
        /// After the library's barrier, as in the OSU and the Intel MPI Benchmarks: its ranks leave
        /// it one after the other. Over verbs it is a dissemination.
        Barrier = "barrier",
        /// At a common instant that all ranks know before. Ranks with different clocks compare them
        /// by messages repeatedly, and the table says how large the error may be.
        Instant = "instant",
        /// Right after the previous call: ranks drift apart. Ranks with different clocks compare
        /// them about every second, however they start.
        None = "none",
        /// After a barrier of rdmascope, the same for every library: in shared memory on one host,
        /// by dissemination of empty messages between hosts.
        OwnBarrier = "own_barrier",
    }
}
