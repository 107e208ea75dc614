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
