//! Rows of messages over sockets, with what users of netperf, qperf and iperf3 look for: transactions per second, the throughput
//! of both ends, what was lost, and what it costs the CPUs.

use measure::record::{Axes, Direction, End, LatencyKind, Point};

use super::plain;
use super::row::latency_cells;
use crate::unit::Scale;
use crate::value;
use measure::quantity::cpu_ns_per_message;

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shown {
    /// A request and its response.
    Transactions(LatencyKind),
    /// A flood one way, of what may lose messages or not.
    Stream { is_lossy: bool },
}

impl Shown {
    /// What is shown of a point over sockets; none of other points, or of such as other tables show.
    pub(super) fn of(point: &Point) -> Option<Self> {
        let endpoint = point.axes.get("endpoint").filter(|endpoint| *endpoint != "verbs")?;
        match (point.pattern.as_str(), &point.latency, &point.throughput) {
            ("ping-pong", Some(latency), _) => Some(Self::Transactions(latency.kind)),
            ("ping-pong", None, _) if point.reported.is_some() => {
                Some(Self::Transactions(LatencyKind::RttHalf))
            }
            ("stream", _, Some(throughput)) if throughput.direction == Direction::Uni => {
                Some(Self::Stream { is_lossy: endpoint == "udp" })
            }
            _ => None,
        }
    }
}

/// The names of the columns, but for size and number of messages.
pub(super) fn columns(shown: Shown, unit: &str) -> Vec<String> {
    match shown {
        Shown::Transactions(_) => {
            let times = super::row::LATENCY_COLUMNS[2..].iter().copied();
            times.chain(["trans/s", "CPU[us/trans]"]).map(str::to_owned).collect()
        }
        Shown::Stream { is_lossy } => {
            let rates =
                [format!("BW sent[{unit}]"), format!("BW received[{unit}]"), "MsgRate[Mpps]".to_owned()];
            let losses =
                ["#lost", "#twice", "#late"].iter().filter(|_| is_lossy).map(|name| (*name).to_owned());
            let costs = ["CPU sent[ns/KiB]", "CPU received[ns/KiB]"].map(str::to_owned);
            rates.into_iter().chain(losses).chain(costs).collect()
        }
    }
}

/// The cells of a point under them.
pub(super) fn cells(point: &Point, shown: Shown, bandwidth: Scale) -> Vec<String> {
    match shown {
        Shown::Transactions(_) => {
            let rate = value::number(point, "transactions_per_s").map(|rate| format!("{rate:.0}"));
            let cost = cpu_ns_per_message(point).map(|ns| format!("{:.2}", 2.0 * ns / 1e3));
            latency_cells(point).into_iter().chain([rate, cost].map(or_none)).collect()
        }
        Shown::Stream { is_lossy } => stream(point, is_lossy, bandwidth),
    }
}

fn stream(point: &Point, is_lossy: bool, bandwidth: Scale) -> Vec<String> {
    let throughput = |rank: usize| point.ends.get(rank)?.throughput.as_ref();
    let bytes = |rank: usize| throughput(rank).map(|t| format!("{:.3}", bandwidth.apply(t.bytes_per_s)));
    let rate = point.throughput.as_ref().map(|t| format!("{:.6}", t.messages_per_s / 1e6));
    let counted = |name: &str| point.counters.get(name).map(u64::to_string);
    let losses = ["messages_lost", "messages_duplicate", "messages_reordered"].map(counted);
    let cost = |rank: usize| cost_ns_per_kib(point, point.ends.get(rank)?).map(|ns| format!("{ns:.1}"));
    let rates = [bytes(0), bytes(1), rate].into_iter();
    rates.chain(losses.into_iter().filter(|_| is_lossy)).chain([cost(0), cost(1)]).map(or_none).collect()
}

/// The time of a CPU that an end spent on so many bytes of payload, in ns.
fn cost_ns_per_kib(point: &Point, end: &End) -> Option<f64> {
    let (cpu, size) = (end.cpu?, point.axes.get("size_bytes")?.as_f64()?);
    let bytes = cpu.messages? as f64 * size;
    (bytes > 0.0).then(|| (cpu.user_ns + cpu.system_ns) as f64 * 1024.0 / bytes)
}

fn or_none(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// What carries the messages, by the name that the field has for the test; none for verbs.
pub(super) fn test(axes: &Axes, pattern: &str) -> Option<String> {
    let endpoint = axes.get("endpoint").filter(|endpoint| *endpoint != "verbs").map(value::text)?;
    let own = [
        ("iceoryx2", "iceoryx2"),
        ("nanomsg", "nanomsg"),
        ("nng", "NNG"),
        ("shmem", "shared memory"),
        ("zeromq", "ZeroMQ"),
    ];
    if let Some((_, name)) = own.iter().find(|(word, _)| endpoint == *word) {
        return Some((*name).to_owned());
    }
    let name = endpoint.to_uppercase();
    Some(match pattern {
        "ping-pong" => format!("{name}_RR"),
        "stream" => format!("{name}_STREAM"),
        _ => name,
    })
}

/// What hosts dropped or sent again meanwhile, below a row: at which rank, and by the kernel's name.
pub(super) fn meanwhile(point: &Point) -> String {
    let is_trouble = |name: &str| {
        let interface =
            name.starts_with("interface.") && (name.ends_with("_dropped") || name.ends_with("_errors"));
        interface || TROUBLE.contains(&name)
    };
    let of = |end: &End| {
        let all = end.host.iter().filter(|(name, count)| **count > 0 && is_trouble(name));
        let all: Vec<String> = all.map(|(name, count)| format!("{} {count}", plain(name))).collect();
        (!all.is_empty()).then(|| format!("rank {}: {}", end.rank, all.join(", ")))
    };
    let mut ends: Vec<String> = point.ends.iter().filter_map(of).collect();
    // Ranks of one host count the same.
    ends.truncate(2);
    let mut lines = if ends.is_empty() {
        String::new()
    } else {
        format!("     # counted meanwhile at {}\n", ends.join("; "))
    };
    let count = |name: &str| point.counters.get(name).copied().unwrap_or_default();
    if let (lent @ 1.., copied @ 1..) = (count("sends_lent"), count("sends_copied_anyway")) {
        let line =
            format!("     # of {lent} sends without a copy the kernel has copied {copied} all the same\n");
        lines.push_str(&line);
    }
    lines
}

/// Counters of protocols that say that something was lost on a host.
const TROUBLE: [&str; 8] = [
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Tcp.InErrs",
    "Tcp.RetransSegs",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp6.RcvbufErrors",
    "Udp6.SndbufErrors",
];

/// What became of messages that a request/response lost, below its row.
pub(super) fn losses(point: &Point, shown: Shown) -> String {
    match (shown, point.counters.get("messages_lost")) {
        (Shown::Stream { .. }, _) | (_, None | Some(0)) => String::new(),
        (Shown::Transactions(_), Some(lost)) => format!(
            "     # {lost} messages were lost and asked for again: those transactions are no samples\n"
        ),
    }
}

/// What the columns mean, and what numbers of other programs differ in, said once below the tables.
pub(super) fn notes(point: &Point) -> &'static [&'static str] {
    let is = |axis: &str, value: &str| point.axes.get(axis).is_some_and(|known| known == value);
    let is_ours = point.pattern == "stream" && point.reported.is_none();
    if is_ours && is("endpoint", "tcp") && is("poll", "event") { &[NOTES, WOKEN] } else { &[NOTES] }
}

const NOTES: &str = "
 CPU: time of the measuring threads in user space and in the kernel; what interrupts do on their own is not in it
";
const WOKEN: &str = "
 TCP: whoever receives is woken for 1 MiB at a time where its buffer holds some (SO_RCVLOWAT), which iperf3, netperf and qperf do
   not ask for; over loopback that alone may double the throughput
";
