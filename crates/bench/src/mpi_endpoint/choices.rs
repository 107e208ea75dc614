//! The choices of points over MPI: the calls, the transport, and the placement of ranks.

use crate::point::choice::choice;

choice! {
    /// The MPI calls that send and receive a message.
    pub enum MpiCall {
        /// MPI_Send and MPI_Recv, as in osu_latency.
        Blocking = "blocking",
        /// MPI_Isend and MPI_Irecv, each completed by MPI_Test.
        Nonblocking = "nonblocking",
        /// As nonblocking, with requests that are created once (MPI_Send_init) and started for each
        /// message (MPI_Start).
        Persistent = "persistent",
    }
}

choice! {
    /// The MPI operation that moves a message between two ranks.
    pub enum MpiOperation {
        /// MPI_Get from the window of the other rank.
        Get = "get",
        /// MPI_Put to the window of the other rank, which does not notice it.
        Put = "put",
        /// A send that the other rank receives, by the calls of `mpi_call`.
        Send = "send",
    }
}

impl MpiOperation {
    /// Returns whether only one rank calls the operation, apart from the calls that complete it.
    pub(crate) fn is_one_sided(self) -> bool {
        self != Self::Send
    }
}

choice! {
    /// The call that completes a put or a get, or a window of them in a stream.
    pub enum MpiSync {
        /// MPI_Win_fence by both ranks. A fence completes the operations before it and starts those
        /// after it; osu_put_latency calls one and a half fences for each put.
        Fence = "fence",
        /// MPI_Win_flush: data that was put is in the target's window, data that was got is here.
        /// The window stays locked, as in osu_put_latency.
        Flush = "flush",
        /// MPI_Win_flush_local: data that was got is here; data that was put may still be under
        /// way.
        FlushLocal = "flush_local",
        /// MPI_Win_lock (shared) before the operations, and MPI_Win_unlock after them.
        Lock = "lock",
        /// MPI_Win_lock_all before the operations, and MPI_Win_unlock_all after them.
        LockAll = "lock_all",
    }
}

choice! {
    /// How a launcher distributes the ranks over the hosts.
    pub enum MpiMap {
        /// One host is filled before the next.
        Block = "block",
        /// Each rank goes to the next host.
        Cyclic = "cyclic",
        /// The default of the launcher.
        Launcher = "launcher",
    }
}

choice! {
    /// The transport that MPI is told to use. The variables of Open MPI, of MPICH over UCX and over
    /// libfabric, and of Intel MPI are set alike.
    pub enum MpiTransport {
        /// The default of the MPI library.
        Default = "default",
        /// Shared memory between the ranks of a host.
        Shm = "shm",
        /// TCP.
        Tcp = "tcp",
        /// RDMA verbs.
        Verbs = "verbs",
    }
}
