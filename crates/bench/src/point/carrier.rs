//! The endpoints that carry messages, and the settings of sockets.

use serde::{Deserialize, Serialize};

use super::choice::choice;

choice! {
    /// What carries the messages of a point: the axis `endpoint`.
    pub enum Carrier {
        /// iceoryx2, a middleware over shared memory, if rdmascope is built with the feature
        /// `iceoryx2`.
        Iceoryx2 = "iceoryx2",
        /// The installed MPI: a launcher such as mpirun starts the ranks.
        Mpi = "mpi",
        /// The installed nanomsg.
        Nanomsg = "nanomsg",
        /// The installed NNG, the successor of nanomsg.
        Nng = "nng",
        /// An application, which sends its own messages.
        Program = "program",
        /// SCTP, one-to-one style (RFC 6458, section 4).
        Sctp = "sctp",
        /// TCP: TCP_RR and TCP_STREAM of netperf and qperf.
        Tcp = "tcp",
        /// Memory that both ranks of a host have mapped: no system call, and one copy in and one
        /// out.
        Shmem = "shmem",
        /// UDP: UDP_RR and UDP_STREAM of netperf and qperf.
        Udp = "udp",
        /// Unix datagram sockets: every message arrives, and in order (unix(7)).
        UnixDatagram = "unix_datagram",
        /// Unix stream sockets.
        UnixStream = "unix_stream",
        /// An RDMA device, through libibverbs or rdmascope's software device.
        Verbs = "verbs",
        /// The installed ZeroMQ.
        Zeromq = "zeromq",
    }
}

impl Carrier {
    /// Whether sockets carry the messages.
    pub fn is_socket(self) -> bool {
        self.is_internet() || matches!(self, Self::UnixDatagram | Self::UnixStream)
    }

    /// Whether it is a message library. All but iceoryx2 use TCP.
    pub fn is_library(self) -> bool {
        self == Self::Iceoryx2 || self.has_protocols()
    }

    /// Whether its sockets have several protocols (see [`Protocol`]).
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

    /// Whether it is an application, which runs in place of ranks.
    pub fn is_program(self) -> bool {
        self == Self::Program
    }

    /// Whether it uses an RDMA device.
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

    /// Other names of its subject on the command line: names of netperf's tests, and other usual
    /// names.
    pub(crate) fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Shmem => &["shm", "shared-memory"],
            Self::Tcp => &["tcp_rr", "tcp_stream", "TCP_RR", "TCP_STREAM"],
            Self::Udp => &["udp_rr", "udp_stream", "UDP_RR", "UDP_STREAM"],
            _ => &[],
        }
    }

    /// Its name in sentences.
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
    /// The layer below IP or the InfiniBand transport (`ibv_query_port`(3); IBTA vol. 1, annex
    /// A17). With [`Carrier::Verbs`] and [`Carrier::Tcp`] the two make the four modes of Subramoni
    /// 2009: native InfiniBand, RDMA over Ethernet, TCP/IP over Ethernet, and IPoIB.
    pub enum LinkLayer {
        /// Ethernet.
        Ethernet = "ethernet",
        /// InfiniBand.
        Infiniband = "infiniband",
    }
}

impl LinkLayer {
    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Infiniband => "InfiniBand",
        }
    }
}

choice! {
    /// IP version.
    pub enum Family {
        /// IPv4.
        Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

/// How sockets carry messages. The kernel's setting holds for an absent value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SocketSettings {
    /// The IP version of sockets that use IP.
    pub family: Family,
    /// The number of connections, which messages take in turn; at least 1.
    pub streams: u32,
    /// `SO_SNDBUF` and `SO_RCVBUF` of both ranks, in bytes (socket(7)).
    pub buffer_bytes: Option<u64>,
    /// `TCP_NODELAY`: small segments do not wait for acknowledgements (tcp(7)).
    pub no_delay: bool,
    /// `SO_BUSY_POLL`, in microseconds: the kernel polls the adapter that long before it sleeps
    /// (socket(7)).
    pub busy_poll_us: Option<u32>,
    /// `UDP_SEGMENT` and `UDP_GRO`: datagrams of a list pass the network stack as one (udp(7)).
    pub offload: bool,
    /// `MSG_ZEROCOPY`: the kernel sends from the program's memory without a copy.
    pub zero_copy: bool,
    /// `TCP_CONGESTION`, by name (tcp(7)).
    pub congestion: Option<String>,
    /// `SO_MAX_PACING_RATE`: the largest sending rate of a connection, in bit/s (socket(7)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bits_per_s: Option<u64>,
    /// The protocol of the sockets of a message library.
    pub protocol: Protocol,
}

choice! {
    /// Protocol of the sockets of a message library.
    pub enum Protocol {
        /// Each rank has one socket, which sends and receives: a message is refused if the queue is
        /// full.
        Pair = "pair",
        /// Each rank has a socket that publishes and one that subscribes: a message may be dropped
        /// if the queue is full.
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
