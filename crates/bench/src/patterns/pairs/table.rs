//! The tables of pairs: the latency or throughput of all pairs together, and the fairness.
//!
//! A row has the number of pairs and the size, so that a reader can follow either.

use measure::presentation::{Presentation, Traffic};
use measure::quantity::{At, latency};
use measure::record::{Axes, Direction, Latency, Point};
use measure::table::common::{BANDWIDTH, MPPS, OF_LINK, PLAIN3, SAMPLES, SIZE, US3};
use measure::table::{Cell, Column, Note, Table, View, with_axes};

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["pairs", "size_bytes"],
    label: &["{pairs|1} pairs, {size_bytes} B"],
    table: |point| {
        let latency = point.latency.as_ref().map(|_| &LATENCIES);
        point.throughput.as_ref().map(|_| &STREAMS).or(latency)
    },
    traffic: flows,
    quantities: &[latency("start_skew.*", start_skew, "{}")],
    ..Presentation::PLAIN
};

const COUNT: Column =
    Column::new("#pairs", Cell::Text(|view| Some(with_axes("{pairs|1}", &view.point.axes)))).wide(6);
const FAIRNESS: Column = Column::new("fairness", Cell::Number("fairness.jain", PLAIN3));

static LATENCIES: Table = Table {
    title: "latency {kind}, of the messages of all pairs",
    says_direction: false,
    columns: &[
        COUNT,
        SIZE,
        SAMPLES,
        Column::new("min[us]", Cell::Statistic("min_ns", US3)).wide(9).extra(),
        Column::new("typ.[us]", Cell::Statistic("p50_ns", US3)).wide(9),
        Column::new("mean[us]", Cell::Statistic("mean_ns", US3)).wide(9).extra(),
        Column::new("max[us]", Cell::Statistic("max_ns", US3)).wide(9),
        Column::new("skew[us]", Cell::Number("start_skew.p50_ns", US3)).usual(),
        FAIRNESS,
    ],
    notes: &[Note::Always(NOTES)],
    ..Table::PLAIN
};

static STREAMS: Table = Table {
    title: "throughput of all pairs, one way, while all pairs send",
    says_direction: false,
    columns: &[
        COUNT,
        SIZE,
        Column::new("BW[{unit}]", Cell::Number("throughput.bytes_per_s", BANDWIDTH)).wide(12),
        Column::new("MsgRate[Mpps]", Cell::Number("throughput.messages_per_s", MPPS)).extra(),
        Column::new("pair[{unit}]", Cell::Text(range)).wide(20).usual(),
        FAIRNESS,
        OF_LINK,
    ],
    notes: &[Note::Always(NOTES)],
    ..Table::PLAIN
};

/// The smallest and the largest throughput of a pair, where there are several.
fn range(view: &View<'_>) -> Option<String> {
    let one = view.bandwidth.one();
    let own = || view.point.ends.iter().filter_map(|end| Some(end.throughput.as_ref()?.bytes_per_s / one));
    let (least, most) = own().reduce(f64::min).zip(own().reduce(f64::max)).filter(|_| own().count() > 1)?;
    Some(format!("{least:.3}..{most:.3}"))
}

const NOTES: &str = "
 pairs start each message, or their streams, together; skew: from the first to the last start of a message
 fairness: Jain's index (Jain, Chiu and Hawe 1984) of the pairs' throughputs, or of the inverse of their mean latencies: \
   1 if all pairs got the same, 1 / #pairs if one pair got all
 BW: of all pairs together; pair: the smallest and the largest throughput of a pair
";

/// Messages flow from each even rank to the next rank.
fn flows(axes: &Axes, direction: Direction) -> Option<Traffic> {
    let pairs: u32 =
        axes.get("pairs")?.as_u64()?.try_into().ok().filter(|_| direction == Direction::Pairs)?;
    Some(Traffic::of(axes, (0..pairs).map(|pair| (2 * pair, 2 * pair + 1)).collect()))
}

fn start_skew<'a>(point: &'a Point, _: At<'_>) -> Option<&'a Latency> {
    point.ends.iter().find_map(|end| end.start_skew.as_ref())
}
