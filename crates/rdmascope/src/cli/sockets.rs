//! The flags of benchmarks over sockets.

use bench::axis;
use bench::plan::Settings;
use bench::point::{Carrier, Family, Poll};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use measure::conditions::{IpoibMode, Wanted};
use measure::units;

use super::one_way::Burst;
use super::{AllRanks, Amount, Site, SocketPlacement};

/// Below the help of each.
const EXAMPLES: &str = "\
Examples:
  rdmascope lat tcp --local            TCP_RR: half a round trip, transactions
  rdmascope lat udp --local --busy -s 64,1KiB
                                       ask again and again instead of sleeping
  rdmascope bw tcp --local -s 128KiB -D 5
                                       TCP_STREAM: throughput, CPU per byte
  rdmascope bw udp --local -s 1400 -l 32 --offload
                                       UDP_STREAM: what arrives, and what is lost
  rdmascope bw tcp --listen 0.0.0.0    on node7: waits, and prints the key
  rdmascope bw tcp node7 --key KEY -P 4
                                       on another host: four streams at once
  rdmascope lat tcp --hosts red,blue --via 'ip netns exec {host}'
                                       between two network namespaces";

/// What carries the messages.
#[derive(Debug, Subcommand)]
pub(crate) enum Sockets<F: Args> {
    /// TCP: TCP_RR and TCP_STREAM of the field's tools.
    #[command(after_help = EXAMPLES, aliases = ["tcp_rr", "tcp_stream", "TCP_RR", "TCP_STREAM"])]
    Tcp(F),
    /// UDP: UDP_RR and UDP_STREAM of the field's tools.
    #[command(after_help = EXAMPLES, aliases = ["udp_rr", "udp_stream", "UDP_RR", "UDP_STREAM"])]
    Udp(F),
    /// SCTP, where the kernel has it.
    #[command(after_help = EXAMPLES)]
    Sctp(F),
    /// Memory that both ranks have mapped, within a host: what no kernel and no device carries.
    #[command(after_help = EXAMPLES, aliases = ["shm", "shared-memory"])]
    Shmem(F),
    /// Unix sockets of type stream, within a host: the floor of sockets.
    #[command(after_help = EXAMPLES)]
    UnixStream(F),
    /// Unix sockets of type datagram, within a host.
    #[command(after_help = EXAMPLES)]
    UnixDatagram(F),
}

impl<F: Args> Sockets<F> {
    /// What carries the messages, and the flags.
    pub(crate) fn carrier(&self) -> (Carrier, &F) {
        match self {
            Self::Tcp(flags) => (Carrier::Tcp, flags),
            Self::Udp(flags) => (Carrier::Udp, flags),
            Self::Sctp(flags) => (Carrier::Sctp, flags),
            Self::Shmem(flags) => (Carrier::Shmem, flags),
            Self::UnixStream(flags) => (Carrier::UnixStream, flags),
            Self::UnixDatagram(flags) => (Carrier::UnixDatagram, flags),
        }
    }
}

fn ipoib_modes() -> impl TypedValueParser<Value = IpoibMode> {
    PossibleValuesParser::new(["connected", "datagram"]).map(|mode| match mode.as_str() {
        "connected" => IpoibMode::Connected,
        _ => IpoibMode::Datagram,
    })
}

/// What is sent, and how.
#[derive(Args, Debug)]
pub(crate) struct SocketMessages {
    #[command(flatten)]
    pub(crate) amount: Amount,
    /// Ask for messages again and again instead of sleeping in the kernel until one comes.
    #[arg(long)]
    pub(crate) busy: bool,
    /// IPv6 instead of IPv4.
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Send and receive buffers of both ends [default: as the kernel makes and grows them].
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub(crate) socket_buffer: Option<u64>,
    /// Whether small segments are sent at once [default: yes, but for streams].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) no_delay: Option<bool>,
    /// Let the kernel poll the adapter so many microseconds before a receiver sleeps (SO_BUSY_POLL).
    #[arg(long, value_name = "US")]
    pub(crate) busy_poll: Option<u32>,
    /// Congestion control of TCP, such as cubic or bbr [default: the system's].
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Take IPoIB interfaces only, in this mode, which root can set; it is set back afterwards.
    #[arg(long, value_name = "MODE", value_parser = ipoib_modes())]
    pub(crate) ipoib_mode: Option<IpoibMode>,
    /// Measure in this environment, and take it back afterwards [possible values: as_is, optimised, event, loaded].
    #[arg(long, value_name = "NAME", value_parser = Wanted::BUILT_IN, hide_possible_values = true)]
    pub(crate) environment: Option<String>,
}

impl SocketMessages {
    /// Settings of a plan with these; what is not given is left to the plan's defaults.
    pub(crate) fn settings(&self, carrier: Carrier) -> Settings {
        let buffer = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let given = [
            Some(axis::ENDPOINT.value(carrier)),
            self.busy.then(|| axis::POLL.value(Poll::Busy)),
            self.ipv6.then(|| axis::FAMILY.value(Family::Ipv6)),
            self.socket_buffer.map(|bytes| axis::SOCKET_BUFFER_BYTES.value(Some(buffer(bytes)))),
            self.no_delay.map(|no_delay| axis::NO_DELAY.value(no_delay)),
            self.busy_poll.map(|us| axis::BUSY_POLL_US.value(Some(us))),
            self.congestion.as_ref().map(|name| axis::CONGESTION.value(Some(name.clone()))),
            self.ipoib_mode.map(|mode| axis::IPOIB_MODE.value(Some(mode))),
            self.environment.as_ref().map(|name| axis::ENVIRONMENT.value(name.clone())),
        ];
        given.into_iter().flatten().fold(self.amount.settings(), Settings::axis)
    }
}

/// The two ends of a benchmark.
#[derive(Args, Debug)]
pub(crate) struct SocketFlags {
    #[command(flatten)]
    pub(crate) messages: SocketMessages,
    #[command(flatten)]
    pub(crate) site: Site<SocketPlacement>,
}

/// A benchmark whose ranks are all started by this command.
pub(crate) type SocketRanks = AllRanks<SocketMessages, SocketPlacement>;

/// A flood.
#[derive(Args, Debug)]
pub(crate) struct SocketBandwidth {
    /// Both directions at once.
    #[arg(short = 'b', long)]
    pub(crate) bidirectional: bool,
    /// Print 10^9 bit/s instead of 2^20 B/s.
    #[arg(long = "report_gbits", alias = "report-gbits")]
    pub(crate) report_gbits: bool,
    /// Streams of one thread, which messages take in turn.
    #[arg(short = 'P', long, value_name = "N")]
    pub(crate) streams: Option<u32>,
    /// Send N datagrams by one call.
    #[arg(short = 'l', long = "post_list", alias = "post-list", value_name = "N")]
    pub(crate) post_list: Option<u32>,
    /// Let the datagrams of a call go through the stack as one (UDP_SEGMENT, UDP_GRO).
    #[arg(long)]
    pub(crate) offload: bool,
    /// Let the kernel send from our memory instead of copying it first (TCP, MSG_ZEROCOPY).
    #[arg(long)]
    pub(crate) zero_copy: bool,
    #[command(flatten)]
    pub(crate) flags: SocketFlags,
}

impl SocketBandwidth {
    /// Adds these to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        let given = [
            self.streams.map(|streams| axis::STREAMS.value(streams)),
            self.post_list.map(|list| axis::POST_LIST.value(list)),
            self.offload.then(|| axis::OFFLOAD.value(true)),
            self.zero_copy.then(|| axis::ZERO_COPY.value(true)),
        ];
        given.into_iter().flatten().fold(settings, Settings::axis)
    }
}

/// Messages that are timed one way.
#[derive(Args, Debug)]
pub(crate) struct SocketOneWay {
    /// Messages that are sent without waiting for the receiver, or `all` [default: 1].
    #[arg(long, value_name = "N", value_parser = super::one_way::burst)]
    pub(crate) burst: Option<Burst>,
    /// Least time from one message to the next, such as 5.5us [default: 0].
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) pause: Option<std::time::Duration>,
    /// Messages before the first that counts; their latencies stand apart [default: a tenth].
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u64>,
    #[command(flatten)]
    pub(crate) flags: SocketFlags,
}
