//! Samples at a fixed rate: how late each arrived, and which never did.

use measure::record::{LatencyKind, Point, Sunk};
use measure::table::{Cell, Column, Note, Presentation, Table};
use measure::text::plain;

use measure::table::common::{PERCENT, PLAIN1, SAMPLES, US2, WHOLE, meanwhile};

pub(super) static SHOWN: Presentation = Presentation {
    pattern: "pipeline",
    row_axes: &["rate_hz", "size_bytes", "values"],
    label: &["{rate_hz}/s, {values} values"],
    table: |point| point.latency.as_ref().map(|_| &STEPS),
    ..Presentation::PLAIN
};

static STEPS: Table = Table {
    title: "latency {kind}",
    columns: &[
        Column::new("rate[/s]", Cell::Axis("rate_hz")).wide(8),
        Column::new("values", Cell::Axis("values")).wide(6),
        SAMPLES.wide(8),
        Column::new("10%[us]", Cell::Statistic("p10_ns", US2)).wide(8),
        Column::new("typ.[us]", Cell::Statistic("p50_ns", US2)).wide(8),
        Column::new("90%[us]", Cell::Statistic("p90_ns", US2)).wide(8),
        Column::new("99.9%[us]", Cell::Statistic("p999_ns", US2)).wide(9),
        Column::new("max[us]", Cell::Statistic("max_ns", US2)).wide(9),
        Column::new("{>above}", Cell::Above).wide(7),
        Column::new("got[/s]", Cell::Number("pipeline.achieved_hz", PLAIN1)).wide(9),
        Column::new("missed[%]", Cell::Number("pipeline.missed_share", PERCENT)).wide(9),
        Column::new("alone[%]", Cell::Number("pipeline.alone_share", PERCENT)).wide(8),
        Column::new("#unsent", Cell::Number("counters.messages_not_transmitted", WHOLE)).wide(7),
        Column::new("#lost", Cell::Number("counters.messages_lost", WHOLE)).wide(6),
    ],
    below: |point| sinks(point).chain(meanwhile(point)).collect(),
    notes: &[Note::Where(is_from_due, FROM_DUE), Note::Always(FATES)],
    ..Table::PLAIN
};

/// What the files of samples were, in lines that begin with `#`.
fn sinks(point: &Point) -> impl Iterator<Item = String> {
    let all = point.pipeline.iter().flat_map(|found| &found.sinks);
    all.map(|sunk| {
        let Sunk { rank, format, samples, bytes, write_ns, handing_over_ns, path, .. } = sunk;
        let rate = *bytes as f64 * 1e3 / (*write_ns).max(1) as f64;
        let place = path.as_ref().map_or("removed".to_owned(), |path| format!("in {}", plain(path)));
        let (format, megabytes) = (plain(format), *bytes as f64 / 1e6);
        let what = format!("{samples} samples as {format}, {megabytes:.1} MB at {rate:.0} MB/s");
        format!("     # rank {rank}: {what}, each handed over in {handing_over_ns:.0} ns; {place}")
    })
}

/// Whether samples were timed from when they were due: what has been logged elsewhere is from when it was generated.
fn is_from_due(point: &Point) -> bool {
    point.latency.as_ref().is_some_and(|latency| latency.kind == LatencyKind::Arrival)
}

const FROM_DUE: &str = "
 each sample is timed from when its step was due, however late it was generated, to its arrival
";
const FATES: &str = "
 got: samples generated in a second, by CLOCK_MONOTONIC; missed: steps for which the generator was not there; alone: what
   the timer misses by itself, with no samples to make, on the same CPU for up to 0.25 s before and after
 unsent: samples for which the node had no room, or that it took before the first that arrived; lost: after that one
";
