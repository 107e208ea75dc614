//! The words of points that MPI carries: which calls, over what, and where ranks are placed.

use crate::point::choice::choice;

choice! {
    /// Which calls of MPI send and receive a message.
    pub enum MpiCall {
        /// MPI_Send and MPI_Recv, as osu_latency has them.
        Blocking = "blocking",
        /// MPI_Isend and MPI_Irecv, each asked for by MPI_Test.
        Nonblocking = "nonblocking",
        /// The same with requests that are made once (MPI_Send_init) and started for each message
        /// (MPI_Start).
        Persistent = "persistent",
    }
}

choice! {
    /// What carries a message of MPI between two ranks.
    pub enum MpiOperation {
        /// MPI_Get from the window of the other rank.
        Get = "get",
        /// MPI_Put to the window of the other rank, which learns nothing of it.
        Put = "put",
        /// A send that the other rank receives, by the calls that `mpi_call` names.
        Send = "send",
    }
}

impl MpiOperation {
    /// Whether it takes calls of one rank alone, apart from those that complete it.
    pub(crate) fn is_one_sided(self) -> bool {
        self != Self::Send
    }
}

choice! {
    /// Which call completes a put or a get, or a window of them in a flood.
    pub enum MpiSync {
        /// MPI_Win_fence by both ranks. One fence completes what came before it and begins what
        /// follows; osu_put_latency has one and a half for each put.
        Fence = "fence",
        /// MPI_Win_flush: what was put is in the target's window, what was got is here. The window
        /// is locked all the time, as that of osu_put_latency is.
        Flush = "flush",
        /// MPI_Win_flush_local: what was got is here; what was put may still be under way.
        FlushLocal = "flush_local",
        /// MPI_Win_lock (shared) before and MPI_Win_unlock after.
        Lock = "lock",
        /// MPI_Win_lock_all before and MPI_Win_unlock_all after.
        LockAll = "lock_all",
    }
}

choice! {
    /// On which hosts a launcher places the ranks.
    pub enum MpiMap {
        /// One host is filled before the next.
        Block = "block",
        /// Each rank goes to the next host.
        Cyclic = "cyclic",
        /// As the launcher does it unless told otherwise.
        Launcher = "launcher",
    }
}

choice! {
    /// What MPI is told to carry messages over. The variables of Open MPI, of MPICH over UCX and
    /// over libfabric, and of Intel MPI are set alike.
    pub enum MpiTransport {
        /// Whatever MPI takes.
        Default = "default",
        /// Memory that the ranks of a host share.
        Shm = "shm",
        /// TCP.
        Tcp = "tcp",
        /// RDMA verbs.
        Verbs = "verbs",
    }
}
