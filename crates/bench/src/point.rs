//! One point of a plan, resolved: what both ranks are told before they set it up.

mod carrier;
mod choice;
pub(crate) mod tool;

use measure::conditions::Wanted;
use measure::record::Axes;
use serde::{Deserialize, Serialize};
use verbs::LinkModel;

use crate::topology::Topology;

pub use crate::endpoint::calls::Step;
pub use crate::pattern::registry::PatternId as Pattern;
pub use crate::patterns::open_loop::layout::Load;
pub use crate::patterns::pipeline::{Filling, Pipeline, Signal, Sink, Timer, VALUES_MAX};
pub use carrier::{Carrier, Family, LinkLayer, Protocol, SocketSettings};
pub(crate) use choice::choice;
pub use choice::{Choice, Variant};
pub use tool::Tool;

/// Everything that a rank must know to measure a point. The plan resolves to a list of these.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PointSpec {
    /// Number of the point in the run, from 0.
    pub id: u64,
    /// Name of the experiment in the plan.
    pub experiment: String,
    /// Which repetition of the same combination of axes, from 0.
    pub repetition: u32,
    /// What is done with the endpoints.
    pub pattern: Pattern,
    /// Which program measures it; absent for this one.
    pub tool: Option<Tool>,
    /// The messages, and how they are carried.
    pub message: MessageSpec,
    /// The n of 1:n: ranks that the first one talks to. 1 for every pattern of pairs.
    pub peers: u32,
    /// Pairs of ranks that do the same at the same time. 1 for every other pattern.
    pub pairs: u32,
    /// What pairs do.
    pub traffic: Traffic,
    /// Messages that are due in a second; absent where each waits for something else.
    pub rate_hz: Option<u64>,
    /// What the generator of a pipeline does; absent for every other pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// Ranks that load the device meanwhile. 0 for every pattern but `OpenLoop`.
    pub loaders: u32,
    /// Where their load goes.
    pub load: Load,
    /// Payload of a message of theirs, in bytes; at least 1.
    pub load_bytes: u64,
    /// Which ranks are connected beside those that talk to each other.
    pub mesh: Mesh,
    /// How it is learnt that bytes have come.
    pub notify: Notify,
    /// Which way a stream flows; `Uni` for every other pattern.
    pub direction: Flow,
    /// What the link is to be like; absent where it is taken as it is.
    #[serde(with = "link_text")]
    pub link: Option<LinkModel>,
    /// What is asked of the machine while it is measured.
    #[serde(default, skip_serializing_if = "Wanted::is_as_is")]
    pub conditions: Wanted,
    /// Messages that are posted without waiting for the peer, one way or in a round of `Prtt`; absent for all of them.
    pub burst: Option<u32>,
    /// Least time from one post to the next, in ns; of `Prtt` from the end of one to the begin of the next.
    pub pause_ns: u64,
    /// Which instant a message carries.
    pub stamp: Stamp,
    /// The call that is timed by itself; absent for every pattern but `Overhead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Calls between two stamps; 1 for every pattern but `Overhead`.
    pub batch: u32,
    /// How long to measure.
    pub length: Length,
    /// Messages before the first that counts.
    pub warmup: u64,
    /// Whether every sample is kept in the record (up to [`RAW_SAMPLES_MAX`]); a histogram otherwise.
    pub keep_samples: bool,
    /// Thresholds, in ns, for which the share of samples above is reported.
    pub share_above_ns: Vec<u64>,
    /// How long the whole point may take before it has failed, in seconds.
    pub timeout_s: f64,
    /// Values of every axis, as the record shows them.
    pub axes: Axes,
}

/// The messages of a point, and how an endpoint carries them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// What carries them.
    pub endpoint: Carrier,
    /// How, where sockets do.
    pub socket: SocketSettings,
    /// Transport service of the queue pairs.
    pub service: Service,
    /// Operation that carries a message.
    pub operation: Operation,
    /// Payload of a message, in bytes; at least 1.
    pub size_bytes: u64,
    /// How the completion of a receive is waited for.
    pub poll: QueuePoll,
    /// How the completion of a send is waited for.
    pub send_poll: QueuePoll,
    /// Whether the payload is copied into the work request at post time.
    pub inline: bool,
    /// Every how many sends one asks for a completion; at least 1.
    pub signal_interval: u32,
    /// Elements that a message is gathered from and scattered to; at least 1.
    pub sge: u32,
    /// Sends that the device is told of at once; at least 1.
    pub post_list: u32,
    /// Queue pairs that messages take in turn; at least 1.
    pub queue_pairs: u32,
    /// RDMA Reads or atomics that a queue pair has under way; absent for as many as both devices allow.
    pub outstanding_reads: Option<u8>,
    /// How the queue pairs are connected.
    pub setup: Setup,
    /// Path MTU: 256, 512, 1024, 2048 or 4096; absent for the largest that both ports have.
    pub mtu_bytes: Option<u32>,
    /// What messages must go over; absent where it is whatever is there.
    pub link_layer: Option<LinkLayer>,
    /// Whose memory messages come from and go to.
    pub memory: Memory,
    /// Buffers that messages are sent from and arrive in; absent for as many as fit in a page.
    pub buffers: Option<u32>,
    /// Send-queue depth: the bound on outstanding messages of a stream.
    pub tx_depth: u32,
    /// Receive-queue depth.
    pub rx_depth: u32,
    /// Receives that are kept posted; at most `rx_depth`.
    pub rx_fill: u32,
}

impl PointSpec {
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.topology().ranks
    }

    /// Its ranks, and how they use their endpoints.
    pub(crate) fn topology(&self) -> Topology {
        self.pattern.topology(self)
    }
}

/// A model of a link as its text.
mod link_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use verbs::LinkModel;

    #[allow(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(link: &Option<LinkModel>, to: S) -> Result<S::Ok, S::Error> {
        link.map(|link| link.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LinkModel>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Above this many samples of one end, a point keeps a histogram instead: 32 MiB of locked memory per end.
pub const RAW_SAMPLES_MAX: u64 = 4 << 20;

choice! {
    /// Transport service of a queue pair (IBTA vol. 1, section 9.2; names as in the papers).
    #[derive(Ord, PartialOrd)]
    pub enum Service {
        /// Reliable connection.
        Rc = "RC",
        /// Unreliable connection.
        Uc = "UC",
        /// Unreliable datagram.
        Ud = "UD",
    }
}

choice! {
    /// Operation that carries a message (IBTA vol. 1, section 9.4).
    pub enum Operation {
        /// Compare-and-swap of eight bytes.
        CompareSwap = "compare_swap",
        /// Fetch-and-add to eight bytes.
        FetchAdd = "fetch_add",
        /// Send to a group, answered by a Send from each of its members.
        Multicast = "multicast",
        /// RDMA Read.
        Read = "read",
        /// Send, consumed by a posted receive.
        Send = "send",
        /// Send with immediate data.
        SendImm = "send_imm",
        /// RDMA Write: the target sees its memory change and nothing else.
        Write = "write",
        /// RDMA Write with immediate data, which consumes a posted receive.
        WriteImm = "write_imm",
    }
}

impl Operation {
    /// Whether it brings the peer's bytes here instead of ours there.
    pub fn is_fetch(self) -> bool {
        matches!(self, Self::Read) || self.is_atomic()
    }

    /// Whether it is an atomic operation, always on eight bytes.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::CompareSwap | Self::FetchAdd)
    }

    /// Whether it consumes a receive at the target and completes there.
    pub fn arrives(self) -> bool {
        matches!(self, Self::Multicast | Self::Send | Self::SendImm | Self::WriteImm)
    }

    /// Whether the request carries immediate data.
    pub fn has_immediate(self) -> bool {
        matches!(self, Self::SendImm | Self::WriteImm)
    }

    /// Whether a service has it: RDMA Read and atomics need responses, datagrams have Send alone (IBTA vol. 1,
    /// section 9.4).
    pub fn exists_on(self, service: Service) -> bool {
        match service {
            Service::Rc => self != Self::Multicast,
            Service::Uc => !self.is_fetch() && self != Self::Multicast,
            Service::Ud => self.is_datagram(),
        }
    }

    /// Whether it may be a datagram: its payload goes to a posted receive.
    pub fn is_datagram(self) -> bool {
        matches!(self, Self::Multicast | Self::Send | Self::SendImm)
    }

    /// Why a service that does not have it does not.
    pub(crate) fn why_not(self, service: Service) -> &'static str {
        match service {
            _ if self == Self::Multicast => "only datagrams go to groups: use UD",
            Service::Ud => "datagrams have Send and Send with immediate only (IBTA vol. 1, section 9.4)",
            _ => "it needs a response, which only RC has",
        }
    }

    /// Its name as the specification has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CompareSwap => "compare-and-swap",
            Self::FetchAdd => "fetch-and-add",
            Self::Multicast => "multicast Send",
            Self::Read => "RDMA Read",
            Self::Send => "Send",
            Self::SendImm => "Send with immediate",
            Self::Write => "RDMA Write",
            Self::WriteImm => "RDMA Write with immediate",
        }
    }
}

choice! {
    /// What several pairs do at the same time.
    pub enum Traffic {
        /// A message goes forth and one comes back, each begun by all pairs of a host together.
        PingPong = "ping_pong",
        /// A flood with a bounded outstanding window, counted in the time that all pairs are at it.
        Stream = "stream",
    }
}

choice! {
    /// Which ranks of a point are connected.
    pub enum Mesh {
        /// Every rank with every other, although few of them talk: what a device must know costs it its caches.
        Full = "full",
        /// Those that talk to each other.
        Star = "star",
    }
}

choice! {
    /// How it is learnt that bytes have come.
    pub enum Notify {
        /// By a completion: of the receive, or of the operation that fetches them.
        Completion = "completion",
        /// By the last byte of the memory that they come to, which is polled: devices are relied on to write it last.
        Memory = "memory",
    }
}

choice! {
    /// How queue pairs are connected.
    pub enum Setup {
        /// The ranks tell each other their addresses over the control plane.
        Exchange = "exchange",
        /// By the communication manager of librdmacm.
        RdmaCm = "rdma_cm",
    }
}

choice! {
    /// Which way a stream flows.
    pub enum Flow {
        /// Both ways at once.
        Bi = "bi",
        /// From rank 0 to rank 1.
        Uni = "uni",
    }
}

choice! {
    /// Whose memory messages come from and go to.
    pub enum Memory {
        /// What the device gives where it gives any: softdev's is mapped by its peers. Else as `Process`.
        Device = "device",
        /// The process's own, as the field's tools have it.
        Process = "process",
    }
}

choice! {
    /// How completions are waited for.
    pub enum Poll {
        /// Polling the completion queues without a pause.
        Busy = "busy",
        /// Sleeping on the completion channel; armed again before the queue is polled, as perftest does.
        Event = "event",
        /// Sleeping on the completion channel; the queue is polled until it is empty before it is armed again, so that messages
        /// which come meanwhile need no sleep of their own (V12).
        EventRepoll = "event_repoll",
        /// Polling for receives, sleeping for sends (V18).
        Hybrid = "hybrid",
    }
}

impl Poll {
    /// How receives and sends are waited for.
    pub fn queues(self) -> (QueuePoll, QueuePoll) {
        match self {
            Self::Busy => (QueuePoll::Busy, QueuePoll::Busy),
            Self::Event => (QueuePoll::Event, QueuePoll::Event),
            Self::EventRepoll => (QueuePoll::EventRepoll, QueuePoll::EventRepoll),
            Self::Hybrid => (QueuePoll::Busy, QueuePoll::Event),
        }
    }
}

choice! {
    /// How the completions of one queue are waited for: see [`Poll`].
    pub enum QueuePoll {
        /// Polling without a pause.
        Busy = "busy",
        /// Sleeping, armed again before the queue is polled.
        Event = "event",
        /// Sleeping, armed again once the queue is empty.
        EventRepoll = "event_repoll",
    }
}

impl QueuePoll {
    /// Whether it sleeps.
    pub fn sleeps(self) -> bool {
        self != Self::Busy
    }
}

choice! {
    /// Which instant a message carries in its first eight bytes.
    pub enum Stamp {
        /// That at which the device fetched it, as well as can be: the sender writes the time again and again until the message
        /// is known to be sent (V24).
        Sent = "sent",
        /// None: that at which it was posted is kept by the sender.
        Submitted = "submitted",
    }
}

/// Bytes of a stamp in a message.
pub const STAMP_BYTES: u64 = 8;

/// How long to measure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// For a time, in seconds.
    Duration(f64),
    /// For a number of messages (in each direction).
    Iterations(u64),
}
