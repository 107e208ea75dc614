//! Tables and columns that several patterns have: perftest's layouts, and counters of hosts.

use crate::record::{Clocks, Direction, End, OneWay, Point};
use crate::table::{Cell, Column, Decimals, Print, Rows, Scale, Table, View, words};
use crate::text::{digits, plain};

/// Microseconds, to hundredths.
pub const US2: Print = Print { scale: Scale::By(1e3), decimals: Decimals::Fixed(2) };
/// Microseconds, to thousandths.
pub const US3: Print = Print { scale: Scale::By(1e3), decimals: Decimals::Fixed(3) };
/// Counts, and numbers in the base of records.
pub const WHOLE: Print = Print { scale: Scale::By(1.0), decimals: Decimals::Fixed(0) };
/// Numbers in the base of records, to tenths.
pub const PLAIN1: Print = Print { scale: Scale::By(1.0), decimals: Decimals::Fixed(1) };
/// Numbers in the base of records, to thousandths.
pub const PLAIN3: Print = Print { scale: Scale::By(1.0), decimals: Decimals::Fixed(3) };
/// Percent of a share, to three significant digits.
pub const PERCENT: Print =
    Print { scale: Scale::Percent, decimals: Decimals::Of(|percent| digits([percent].into_iter())) };
/// Bandwidths in the unit that the reader has chosen.
pub const BANDWIDTH: Print = Print { scale: Scale::Bandwidth, decimals: Decimals::Fixed(3) };
/// Millions of messages per second.
pub const MPPS: Print = Print { scale: Scale::By(1e6), decimals: Decimals::Fixed(6) };

/// Bytes of a message.
pub const SIZE: Column = Column::new("#bytes", Cell::Axis("size_bytes")).wide(8);
/// Messages that were measured.
pub const ITERATIONS: Column = Column::new("#iterations", Cell::Text(iterations)).usual();
/// The smallest latency.
pub const T_MIN: Column = Column::new("min[us]", Cell::Statistic("min_ns", US2)).usual();
/// The largest latency.
pub const T_MAX: Column = Column::new("max[us]", Cell::Statistic("max_ns", US2)).usual();
/// The median latency.
pub const T_TYPICAL: Column = Column::new("typ.[us]", Cell::Statistic("p50_ns", US2));
/// The mean latency, measured by rdmascope or another tool.
pub const T_AVG: Column = Column::new("mean[us]", Cell::Text(mean)).usual();
/// The standard deviation of the latency.
pub const T_STDEV: Column = Column::new("stdev[us]", Cell::Statistic("stddev_ns", US2));
/// The 99th percentile of the latency.
pub const T_99: Column = Column::new("99%[us]", Cell::Statistic("p99_ns", US2));
/// The 99.9th percentile of the latency.
pub const T_999: Column = Column::new("99.9%[us]", Cell::Statistic("p999_ns", US2));
/// Messages per second.
pub const MESSAGE_RATE: Column =
    Column::new("MsgRate[Mpps]", Cell::Number("throughput.messages_per_s", MPPS)).usual();
/// Messages that were lost.
pub const LOST: Column = Column::new("#lost", Cell::Number("counters.messages_lost", WHOLE)).wide(7);
/// The share of the link limit that was reached, where the limit is known.
pub const OF_LINK: Column = Column::new("link[%]", Cell::OfLink).wide(7).shown_where(|view| view.has_link);
/// The error bound of a latency between two hosts.
pub const BOUND: Column = Column::new("+-[ns]", Cell::Bound).wide(7).shown_where(has_two_clocks);
/// Samples of the latency.
pub const SAMPLES: Column = Column::new("#samples", Cell::Statistic("count", WHOLE)).wide(8).usual();

/// `ib_send_lat`'s columns, in its order.
pub static LATENCY: Table = Table {
    title: "latency {kind}",
    columns: &[SIZE, ITERATIONS, T_MIN, T_MAX, T_TYPICAL, T_AVG, T_STDEV.extra(), T_99, T_999],
    ..Table::PLAIN
};

/// `ib_send_bw`'s columns, for traffic in one direction.
pub static ONE_DIRECTION: Table = Table {
    title: "throughput one way",
    columns: &[
        SIZE,
        ITERATIONS,
        Column::new("BW[{unit}]", Cell::Number("throughput.bytes_per_s", BANDWIDTH)).wide(12),
        MESSAGE_RATE,
        LOST.shown_where(has_losses),
        OF_LINK,
    ],
    ..Table::PLAIN
};

/// The same for traffic in both directions.
pub static BOTH_DIRECTIONS: Table = Table {
    title: "throughput both ways at once",
    columns: &[
        SIZE,
        ITERATIONS,
        Column::new("one-way[{unit}]", Cell::Number("throughput.bytes_per_s", BANDWIDTH)).wide(14),
        Column::new("total[{unit}]", Cell::Number("throughput_total.bytes_per_s", BANDWIDTH)).wide(12),
        Column::new("one-way[Mpps]", Cell::Number("throughput.messages_per_s", MPPS)).extra(),
        Column::new("total[Mpps]", Cell::Number("throughput_total.messages_per_s", MPPS)),
        LOST.shown_where(has_losses),
        OF_LINK,
    ],
    ..Table::PLAIN
};

/// A line for each kind of latency, followed by notes on lines that begin with `#`, which a program
/// can skip.
pub static KINDS: Table = Table {
    title: "every kind of latency of the same messages",
    says_direction: false,
    columns: &[
        Column::new("latency", Cell::Kind).left(14),
        SIZE,
        SAMPLES.extra(),
        Column::new("min[us]", Cell::Statistic("min_ns", US3)).wide(9).extra(),
        Column::new("10%[us]", Cell::Statistic("p10_ns", US3)).wide(9).extra(),
        Column::new("typ.[us]", Cell::Statistic("p50_ns", US3)).wide(9),
        Column::new("90%[us]", Cell::Statistic("p90_ns", US3)).wide(9).extra(),
        Column::new("99.9%[us]", Cell::Statistic("p999_ns", US3)).wide(9).usual(),
        Column::new("max[us]", Cell::Statistic("max_ns", US3)).wide(9),
        Column::new("{>above}", Cell::Above).wide(9).shown_where(|view| view.above_ns().is_some()),
        BOUND,
    ],
    rows: Rows::PerKind,
    below: |point| words::notes(point).iter().map(|note| format!(" # {}", plain(note))).collect(),
    ..Table::PLAIN
};

/// Chooses the table of a point by the numbers that it has.
pub fn table(point: &Point) -> Option<&'static Table> {
    if !point.kinds.is_empty() {
        return Some(&KINDS);
    }
    bandwidth(point).or(latency(point))
}

/// The table of a point that has a latency.
pub fn latency(point: &Point) -> Option<&'static Table> {
    point.latency.as_ref().map(|_| &LATENCY)
}

fn bandwidth(point: &Point) -> Option<&'static Table> {
    point.throughput.as_ref().map(|throughput| match throughput.direction {
        Direction::Load | Direction::Pairs | Direction::Uni => &ONE_DIRECTION,
        Direction::BiOne | Direction::BiTotal => &BOTH_DIRECTIONS,
    })
}

/// Whether the messages of a point may get lost and lost ones are counted.
fn has_losses(view: &View<'_>) -> bool {
    let axis = |name| view.point.axes.get(name);
    let may_lose = match axis("service") {
        Some(service) => service != "RC",
        None => axis("endpoint").is_some_and(|endpoint| endpoint == "udp"),
    };
    may_lose && view.point.counters.contains_key("messages_lost")
}

fn iterations(view: &View<'_>) -> Option<String> {
    let point = view.point;
    let count = point.iterations.or(point.latency.as_ref().map(|latency| latency.count));
    count.map(|count| count.to_string())
}

/// The mean, which may be all that another tool reports.
fn mean(view: &View<'_>) -> Option<String> {
    let point = view.point;
    let reported = || point.reported.as_ref().and_then(|reported| reported.mean_ns);
    let mean_ns = point.latency.as_ref().map(|latency| latency.mean_ns).or_else(reported)?;
    Some(format!("{:.2}", mean_ns / 1e3))
}

/// Whether latencies of a point compare the clocks of two hosts.
fn has_two_clocks(view: &View<'_>) -> bool {
    matches!(view.point.one_way, Some(OneWay { clocks: Clocks::Two { .. }, .. }))
}

/// Whether sockets or message libraries carry the messages of a point: neither verbs nor MPI, whose
/// users look for the columns of perftest and of the OSU benchmarks.
pub fn is_over_sockets(point: &Point) -> bool {
    point.axes.get("endpoint").is_some_and(|endpoint| endpoint != "verbs" && endpoint != "mpi")
}

/// Lines below a row about packets that hosts dropped or sent again, by rank and by the kernel's
/// names of the counters, and about zero-copy sends that the kernel copied.
pub fn meanwhile(point: &Point) -> Vec<String> {
    let is_trouble = |name: &str| {
        let interface =
            name.starts_with("interface.") && (name.ends_with("_dropped") || name.ends_with("_errors"));
        interface || TROUBLE.contains(&name)
    };
    let of = |end: &End| {
        let all = end.host.iter().filter(|(name, count)| **count > 0 && is_trouble(name));
        let all: Vec<String> = all.map(|(name, count)| format!("{} {count}", plain(name))).collect();
        (!all.is_empty()).then(|| (end.rank, all.join(", ")))
    };
    let mut ends: Vec<(u32, String)> = point.ends.iter().filter_map(of).take(2).collect();
    // A host counts, and not a rank: two ranks on one host report the same numbers.
    ends.dedup_by(|(_, other), (_, first)| other == first);
    let ends: Vec<String> = ends.iter().map(|(rank, counts)| format!("rank {rank}: {counts}")).collect();
    let counted = (!ends.is_empty()).then(|| format!("     # counted meanwhile at {}", ends.join("; ")));
    let count = |name: &str| point.counters.get(name).copied().unwrap_or_default();
    let copied = match (count("sends_lent"), count("sends_copied_anyway")) {
        (sends @ 1.., copied @ 1..) => {
            Some(format!("     # of {sends} zero-copy sends, the kernel copied {copied}"))
        }
        _ => None,
    };
    counted.into_iter().chain(copied).collect()
}

/// The kernel's counters of protocols that show losses on a host.
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

/// The meaning of the columns for CPU time.
pub const CPU_TIME: &str = "
 CPU: time of the measuring threads in user space and in the kernel; work of interrupts outside these threads is not included
";
