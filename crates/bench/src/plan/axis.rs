//! The axes of an experiment: what is varied, and through which values.

mod codec;

use measure::conditions::IpoibMode;
use serde_json::Value;

use self::codec::{
    Choice, ChoiceOr, Codec, Count, Flag, Link, NumberOr, Pause, Rate, Reader, SignalRate, Size, Text,
    TextOr, Whole,
};
use super::text::Node;
use crate::Error;
use crate::point::{
    Carrier, Family, Filling, Flow, LinkLayer, Load, Memory, Mesh, Notify, Operation, Poll, Protocol,
    QueuePoll, Service, Setup, Signal, Sink, Stamp, Step, Timer, Tool, Traffic,
};

/// One definition of each axis: its values, its name, and how a plan writes them.
macro_rules! axes {
    ($($(#[$doc:meta])* $variant:ident($value:ty) = $name:literal, $codec:expr;)*) => {
        /// One axis and its values, in the order in which they are measured.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Axis {
            $($(#[$doc])* $variant(Vec<$value>),)*
        }

        impl Axis {
            /// Every axis, by the name that plans, records and exports share.
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            /// Its name in plans, records and exports.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Its values as a record shows them.
            pub fn values(&self) -> Vec<Value> {
                match self {
                    $(Self::$variant(values) => values.iter().map(|value| $codec.json(value)).collect(),)*
                }
            }

            /// The axis `name` from what a plan sets it to; `None` if no axis has that name.
            pub(super) fn read(name: &str, node: &Node, place: &str, table: &str) -> Result<Option<Self>, Error> {
                let reader = Reader { name, node, place, table };
                Ok(Some(match name {
                    $($name => Self::$variant($codec.read(&reader)?),)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

axes! {
    /// Calls between two stamps; `None`, in a plan `"step"`, is as many as suit the step.
    Batch(Option<u32>) = "batch", NumberOr(BY_STEP);
    /// Buffers that messages are sent from in turn, and as many that they arrive in; `None`, in a plan `"page"`, is as many
    /// as fit in a page, at least one.
    Buffers(Option<u32>) = "buffers", NumberOr(PAGE);
    /// Messages that are posted without waiting for the peer, n of a parametrised round trip; `None`, in a plan `"all"`, is all
    /// of the point.
    Burst(Option<u32>) = "burst", NumberOr(ALL);
    /// How long the kernel polls the adapter before a receiver sleeps, in microseconds; `None`, in a plan `"off"`, is as the
    /// kernel has it.
    BusyPollUs(Option<u32>) = "busy_poll_us", NumberOr(OFF);
    /// TCP's congestion control; `None`, in a plan `"system"`, is the one of the system.
    Congestion(Option<String>) = "congestion", TextOr(SYSTEM);
    /// Which way a stream flows.
    Direction(Flow) = "direction", Choice::new();
    /// What carries the messages. Axes that are not for it are no part of its points.
    Endpoint(Carrier) = "endpoint", Choice::new();
    /// Under which conditions it is measured, by a name that the plan defines or that is built in.
    Environment(String) = "environment", Text;
    /// The version of IP.
    Family(Family) = "family", Choice::new();
    /// Whether the payload is copied into the work request at post time. Never assumed: it is off unless a plan asks
    /// for it, because a limit that differs between devices would silently put a step into the curve.
    Inline(bool) = "inline", Flag;
    /// Up to which length samples of a pipeline are copied into the work request at post time, in bytes; 0 is never.
    InlineMaxBytes(u32) = "inline_max_bytes", Whole;
    /// Mode of the IPoIB interfaces that messages take; `None`, in a plan `"found"`, is any link, as it is found.
    IpoibMode(Option<IpoibMode>) = "ipoib_mode", ChoiceOr::new(AS_IT_IS);
    /// What the link is to be like, where a device can imitate one (see [`verbs::LinkModel`]); `None`, in a plan `"none"`,
    /// leaves it as it is.
    Link(Option<String>) = "link", Link;
    /// What messages must go over; `None`, in a plan `"any"`, is whatever is there.
    LinkLayer(Option<LinkLayer>) = "link_layer", ChoiceOr::new(ANY);
    /// Where the load of other ranks goes.
    Load(Load) = "load", Choice::new();
    /// Payload of their messages in bytes.
    LoadBytes(u64) = "load_bytes", Size;
    /// Ranks that load the device meanwhile; in a plan as `peers`, and 0 for none.
    Loaders(u32) = "loaders", Count;
    /// Whose memory messages come from and go to.
    Memory(Memory) = "memory", Choice::new();
    /// Which ranks are connected beside those that talk to each other.
    Mesh(Mesh) = "mesh", Choice::new();
    /// Path MTU in bytes; `None`, in a plan `"active"`, is the largest that both ports have.
    MtuBytes(Option<u32>) = "mtu_bytes", NumberOr(ACTIVE);
    /// Whether TCP sends small segments at once.
    NoDelay(bool) = "no_delay", Flag;
    /// How it is learnt that bytes have come; `None`, in a plan `"usual"`, is by a completion where there is one.
    Notify(Option<Notify>) = "notify", ChoiceOr::new(USUAL);
    /// Whether datagrams of a list go through the stack as one.
    Offload(bool) = "offload", Flag;
    /// Operation that carries the message.
    Operation(Operation) = "operation", Choice::new();
    /// RDMA Reads or atomics of a queue pair under way; `None`, in a plan `"max"`, is what both devices allow.
    OutstandingReads(Option<u32>) = "outstanding_reads", NumberOr(MAX);
    /// Pairs of ranks that do the same at the same time; in a plan as `peers`.
    Pairs(u32) = "pairs", Count;
    /// Least time from one post to the next, or d of a parametrised round trip: from the end of a post; in nanoseconds. In a
    /// plan a number of them or a duration such as `"5.5us"`.
    PauseNs(u64) = "pause_ns", Pause;
    /// The n of 1:n; in a plan a number, a list of them or a range such as `"1..16"`, which is every one of them.
    Peers(u32) = "peers", Count;
    /// How a completion is waited for.
    Poll(Poll) = "poll", Choice::new();
    /// Sends that the device is told of at once.
    PostList(u32) = "post_list", Whole;
    /// What sockets of a message library are to each other.
    Protocol(Protocol) = "protocol", Choice::new();
    /// Queue pairs that messages take in turn.
    QueuePairs(u32) = "queue_pairs", Whole;
    /// Messages that are due in a second; in a plan a number of them or a text such as `"10k"`.
    RateHz(u64) = "rate_hz", Rate;
    /// Where samples are kept at both ends.
    Sink(Sink) = "sink", Choice::new();
    /// Receive-queue depth.
    RxDepth(u32) = "rx_depth", Whole;
    /// Receives that are kept posted; `None`, in a plan `"depth"`, is as many as the queue holds.
    RxFill(Option<u32>) = "rx_fill", NumberOr(DEPTH);
    /// When these are posted.
    RxFilled(Filling) = "rx_filled", Choice::new();
    /// How the completion of a send is waited for; `None`, in a plan `"poll"`, is as `poll` says.
    SendPoll(Option<QueuePoll>) = "send_poll", ChoiceOr::new(SAME);
    /// Transport service.
    Service(Service) = "service", Choice::new();
    /// How queue pairs are connected.
    Setup(Setup) = "setup", Choice::new();
    /// Elements that a message is gathered from and scattered to.
    Sge(u32) = "sge", Whole;
    /// What the values of samples are.
    Signal(Signal) = "signal", Choice::new();
    /// Every how many sends one asks for a completion; `None`, in a plan `"half"`, is half of the send queue's depth.
    SignalInterval(Option<u32>) = "signal_interval", NumberOr(HALF);
    /// Signal rate of the link.
    SignalRate(String) = "signal_rate", SignalRate;
    /// Payload of a message in bytes.
    SizeBytes(u64) = "size_bytes", Size;
    /// Send and receive buffer of a socket, in bytes; `None`, in a plan `"auto"`, is as the kernel makes and grows it.
    SocketBufferBytes(Option<u32>) = "socket_buffer_bytes", NumberOr(AUTO);
    /// Which instant the message itself carries.
    Stamp(Stamp) = "stamp", Choice::new();
    /// The call that is timed by itself.
    Step(Step) = "step", Choice::new();
    /// Connections that messages take in turn.
    Streams(u32) = "streams", Whole;
    /// What tells when the next sample is due.
    Timer(Timer) = "timer", Choice::new();
    /// Who measures; `None`, in a plan `"rdmascope"`, is this program.
    Tool(Option<Tool>) = "tool", ChoiceOr::new(OURS);
    /// What several pairs do.
    Traffic(Traffic) = "traffic", Choice::new();
    /// Send-queue depth.
    TxDepth(u32) = "tx_depth", Whole;
    /// Values of a sample; in a plan as `peers`.
    Values(u32) = "values", Count;
    /// Whether the kernel refers to what is sent instead of copying it.
    ZeroCopy(bool) = "zero_copy", Flag;
}

impl Axis {
    /// Whether it says something of messages that are carried so.
    pub(super) fn is_for(&self, carrier: Carrier) -> bool {
        match self {
            Self::Direction(_)
            | Self::Burst(_)
            | Self::Endpoint(_)
            | Self::Environment(_)
            | Self::Load(_)
            | Self::LoadBytes(_)
            | Self::Loaders(_)
            | Self::Mesh(_)
            | Self::Pairs(_)
            | Self::PauseNs(_)
            | Self::Peers(_)
            | Self::Poll(_)
            | Self::RateHz(_)
            | Self::Signal(_)
            | Self::Sink(_)
            | Self::SizeBytes(_)
            | Self::Timer(_)
            | Self::Traffic(_)
            | Self::Values(_) => true,
            Self::PostList(_) => carrier.is_verbs() || carrier.is_datagram(),
            Self::BusyPollUs(_) | Self::Family(_) | Self::IpoibMode(_) => carrier.is_internet(),
            Self::LinkLayer(_) => carrier.is_internet() || carrier.is_verbs(),
            Self::Congestion(_) | Self::ZeroCopy(_) => carrier == Carrier::Tcp,
            Self::NoDelay(_) => matches!(carrier, Carrier::Sctp | Carrier::Tcp),
            Self::Offload(_) => carrier == Carrier::Udp,
            Self::Protocol(_) => carrier.has_protocols(),
            Self::Tool(_) => matches!(carrier, Carrier::Tcp | Carrier::Udp),
            Self::SocketBufferBytes(_) | Self::Streams(_) => carrier.is_socket(),
            _ => carrier == Carrier::Verbs,
        }
    }
}

/// Whatever link there is.
pub(super) const ANY: &str = "any";
/// The mode of IPoIB, if it is that, as it is.
pub(super) const AS_IT_IS: &str = "found";
/// No model of a link.
pub(super) const NO_LINK: &str = "none";
/// The path MTU that the ports have.
const ACTIVE: &str = "active";
/// As many RDMA Reads or atomics as the devices allow.
const MAX: &str = "max";
/// As many buffers as fit in a page.
const PAGE: &str = "page";
/// By a completion where there is one.
pub(super) const USUAL: &str = "usual";
/// All messages of a point in one burst.
const ALL: &str = "all";
/// As many calls between two stamps as suit the step.
const BY_STEP: &str = "step";
/// As many receives as the queue holds.
const DEPTH: &str = "depth";
/// Half of the send queue's depth.
const HALF: &str = "half";
/// As `poll` says.
pub(super) const SAME: &str = "poll";
/// This program, and no other.
pub(super) const OURS: &str = "rdmascope";
/// As the kernel has it.
const OFF: &str = "off";
const AUTO: &str = "auto";
pub(super) const SYSTEM: &str = "system";
