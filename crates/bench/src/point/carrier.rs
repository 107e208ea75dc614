//! What carries messages, and how sockets do.

use serde::{Deserialize, Serialize};

use super::choice::choice;

choice! {
    /// What carries the messages of a point: the axis `endpoint`.
    pub enum Carrier {
        /// iceoryx2, shared memory by a middleware, where the program is built with its feature
        /// `iceoryx2`.
        Iceoryx2 = "iceoryx2",
        /// MPI, as it is installed: ranks that a launcher such as mpirun starts.
        Mpi = "mpi",
        /// nanomsg, as it is installed.
        Nanomsg = "nanomsg",
        /// NNG, its successor, as it is installed.
        Nng = "nng",
        /// An application, which sends its own messages in its own way.
        Program = "program",
        /// SCTP, one-to-one style (RFC 6458, section 4).
        Sctp = "sctp",
        /// TCP: TCP_RR and TCP_STREAM of netperf and qperf.
        Tcp = "tcp",
        /// Memory that both ranks of a host have mapped: no system call, and no copy but in and
        /// out.
        Shmem = "shmem",
        /// UDP: UDP_RR and UDP_STREAM of netperf and qperf.
        Udp = "udp",
        /// Unix sockets of type datagram: every message arrives, and in order (unix(7)).
        UnixDatagram = "unix_datagram",
        /// Unix sockets of type stream.
        UnixStream = "unix_stream",
        /// A verbs device.
        Verbs = "verbs",
        /// ZeroMQ, as it is installed.
        Zeromq = "zeromq",
    }
}

impl Carrier {
    /// Whether it is sockets.
    pub fn is_socket(self) -> bool {
        self.is_internet() || matches!(self, Self::UnixDatagram | Self::UnixStream)
    }

    /// Whether it is a message library: over TCP, but for iceoryx2.
    pub fn is_library(self) -> bool {
        self == Self::Iceoryx2 || self.has_protocols()
    }

    /// Whether its sockets can be several things to each other.
    pub fn has_protocols(self) -> bool {
        matches!(self, Self::Nanomsg | Self::Nng | Self::Zeromq)
    }

    /// Whether it listens on ports.
    pub fn has_ports(self) -> bool {
        self.is_internet() || self.has_protocols()
    }

    /// Whether it is MPI, whose launcher starts the ranks.
    pub fn is_mpi(self) -> bool {
        self == Self::Mpi
    }

    /// Whether it is a program of somebody else, which is started in the place of ranks.
    pub fn is_program(self) -> bool {
        self == Self::Program
    }

    /// Whether it goes through a device.
    pub fn is_verbs(self) -> bool {
        self == Self::Verbs
    }

    /// Whether it carries Internet protocols.
    pub fn is_internet(self) -> bool {
        matches!(self, Self::Sctp | Self::Tcp | Self::Udp)
    }

    /// Whether a message is a datagram: it is sent by one call and received whole, or not at all.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Udp | Self::UnixDatagram)
    }

    /// Other names of its subject on the command line: those of netperf's tests, and what it is
    /// called elsewhere.
    pub(crate) fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Shmem => &["shm", "shared-memory"],
            Self::Tcp => &["tcp_rr", "tcp_stream", "TCP_RR", "TCP_STREAM"],
            Self::Udp => &["udp_rr", "udp_stream", "UDP_RR", "UDP_STREAM"],
            _ => &[],
        }
    }

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iceoryx2 => "iceoryx2",
            Self::Mpi => "MPI",
            Self::Nanomsg => "nanomsg",
            Self::Nng => "NNG",
            Self::Program => "a program",
            Self::Sctp => "SCTP",
            Self::Shmem => "shared memory",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::UnixDatagram => "Unix datagrams",
            Self::UnixStream => "Unix streams",
            Self::Verbs => "verbs",
            Self::Zeromq => "ZeroMQ",
        }
    }
}

choice! {
    /// What is below IP or the transport of InfiniBand (`ibv_query_port`(3); IBTA vol. 1, annex
    /// A17). With [`Carrier::Verbs`] and [`Carrier::Tcp`] the two make four modes: native
    /// InfiniBand, RDMA over Ethernet, TCP/IP over Ethernet, and IPoIB (R2 of the evaluations).
    pub enum LinkLayer {
        /// Ethernet.
        Ethernet = "ethernet",
        /// InfiniBand.
        Infiniband = "infiniband",
    }
}

impl LinkLayer {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Infiniband => "InfiniBand",
        }
    }
}

choice! {
    /// The version of IP.
    pub enum Family {
        /// IPv4.
        Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

/// How sockets carry messages. What is absent is as the kernel has it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SocketSettings {
    /// The version of IP, where it is that.
    pub family: Family,
    /// Connections that messages take in turn; at least 1.
    pub streams: u32,
    /// `SO_SNDBUF` and `SO_RCVBUF` of both ends, in bytes (socket(7)).
    pub buffer_bytes: Option<u64>,
    /// `TCP_NODELAY`: small segments do not wait for acknowledgements (tcp(7)).
    pub no_delay: bool,
    /// `SO_BUSY_POLL`, in microseconds: the kernel polls the adapter that long before it sleeps
    /// (socket(7)).
    pub busy_poll_us: Option<u32>,
    /// `UDP_SEGMENT` and `UDP_GRO`: datagrams of a list go through the stack as one (udp(7)).
    pub offload: bool,
    /// `MSG_ZEROCOPY`: the kernel refers to what is sent instead of copying it.
    pub zero_copy: bool,
    /// `TCP_CONGESTION`, by name (tcp(7)).
    pub congestion: Option<String>,
    /// `SO_MAX_PACING_RATE`: the most that a connection sends, in bit/s (socket(7)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bits_per_s: Option<u64>,
    /// What sockets of a message library are to each other.
    pub protocol: Protocol,
}

choice! {
    /// What sockets of a message library are to each other.
    pub enum Protocol {
        /// One at each end, which sends and receives: what finds no room is refused.
        Pair = "pair",
        /// One that publishes and one that subscribes, each way: what finds no room may be dropped.
        PubSub = "pub_sub",
    }
}

impl Default for SocketSettings {
    fn default() -> Self {
        Self {
            family: Family::Ipv4,
            streams: 1,
            buffer_bytes: None,
            no_delay: false,
            busy_poll_us: None,
            offload: false,
            zero_copy: false,
            congestion: None,
            pacing_bits_per_s: None,
            protocol: Protocol::PubSub,
        }
    }
}
