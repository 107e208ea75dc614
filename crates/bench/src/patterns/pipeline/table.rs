//! The table of samples at a fixed rate: how late each sample arrived, and how many did not.

use measure::presentation::Presentation;
use measure::quantity::{Interval, number};
use measure::record::{LatencyKind, Point, SinkReport, steps};
use measure::table::common::{BOUND, PERCENT, PLAIN1, SAMPLES, US2, WHOLE, meanwhile};
use measure::table::{Cell, Column, Note, Table};
use measure::text::plain;
use measure::units::Dimension::{Number, Share};

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["rate_hz", "size_bytes", "values"],
    label: &["{rate_hz}/s, {values} values"],
    table: |point| point.latency.as_ref().map(|_| &STEPS),
    quantities: &[
        number("pipeline.missed_share", Share, |p, _| missed(p), "the share of steps that were missed")
            .with_interval(of_steps)
            .offered(),
        number(
            "pipeline.achieved_hz",
            Number,
            |p, _| Some(p.pipeline.as_ref()?.achieved_hz),
            "samples generated per second",
        ),
        number(
            "pipeline.alone_share",
            Share,
            |p, _| alone(p),
            "the share of steps that the timer alone misses",
        )
        .with_interval(of_timer),
        number(
            "pipeline.busy_share",
            Share,
            |p, _| busy(p),
            "the share of steps that were missed while the generator worked, and did not only wait",
        )
        .with_interval(of_steps),
        number("pipeline.lost_share", Share, |p, _| lost(p), "the share of steps whose samples were lost")
            .with_interval(of_steps),
    ],
    ..Presentation::PLAIN
};

static STEPS: Table = Table {
    title: "latency {kind}",
    columns: &[
        Column::new("rate[/s]", Cell::Axis("rate_hz")).wide(8),
        Column::new("values", Cell::Axis("values")).wide(6),
        SAMPLES,
        Column::new("10%[us]", Cell::Statistic("p10_ns", US2)).wide(8).extra(),
        Column::new("typ.[us]", Cell::Statistic("p50_ns", US2)).wide(8),
        Column::new("90%[us]", Cell::Statistic("p90_ns", US2)).wide(8).extra(),
        Column::new("99.9%[us]", Cell::Statistic("p999_ns", US2)).wide(9).usual(),
        Column::new("max[us]", Cell::Statistic("max_ns", US2)).wide(8).extra(),
        Column::new("{>above}", Cell::Above).wide(8).usual(),
        Column::new("generated[/s]", Cell::Number("pipeline.achieved_hz", PLAIN1)).wide(13).extra(),
        Column::new("missed[%]", Cell::Number("pipeline.missed_share", PERCENT)).wide(9),
        Column::new("timer[%]", Cell::Number("pipeline.alone_share", PERCENT)).wide(8).extra(),
        Column::new("#unsent", Cell::Number("counters.messages_not_transmitted", WHOLE)).wide(7).extra(),
        Column::new("#lost", Cell::Number("counters.messages_lost", WHOLE)).wide(6),
        BOUND,
    ],
    below: |point| sinks(point).chain(meanwhile(point)).collect(),
    notes: &[Note::Where(is_from_due, FROM_DUE), Note::Always(FATES)],
    ..Table::PLAIN
};

/// A line for each file of samples, which begins with `#`.
fn sinks(point: &Point) -> impl Iterator<Item = String> {
    let all = point.pipeline.iter().flat_map(|found| &found.sinks);
    all.map(|sink_report| {
        let SinkReport { rank, format, samples, bytes, write_ns, handing_over_ns, path, .. } = sink_report;
        let rate = *bytes as f64 * 1e3 / (*write_ns).max(1) as f64;
        let place = path.as_ref().map_or("removed".to_owned(), |path| format!("in {}", plain(path)));
        let format = plain(format);
        let megabytes = *bytes as f64 / 1e6;
        let what = format!("{samples} samples as {format}, {megabytes:.1} MB at {rate:.0} MB/s");
        format!("     # rank {rank}: {what}, each copied in {handing_over_ns:.0} ns; {place}")
    })
}

/// Whether samples were timed from when they were due. Samples of VILLASnode's logs are timed from
/// when they were generated.
fn is_from_due(point: &Point) -> bool {
    point.latency.as_ref().is_some_and(|latency| latency.kind == LatencyKind::Arrival)
}

const FROM_DUE: &str = "
 each sample is timed from when its step was due, however late it was generated, to its arrival
";
const FATES: &str = "
 generated: samples per second, by CLOCK_MONOTONIC; missed: steps that the generator was late for; timer: steps that the \
   timer misses on the same CPU without any other work, for up to 0.25 s before and after
 unsent: samples for which the endpoint had no room, or that were lost before the first arrived; lost: after that one
";

fn of_steps(point: &Point, share: f64) -> Interval {
    steps(&point.counters).map(|[steps, _]| Interval::of_share(share, steps)).unwrap_or_default()
}

fn of_timer(point: &Point, share: f64) -> Interval {
    let timer = point.pipeline.as_ref().map(|found| &found.timer);
    timer.map(|timer| Interval::of_share(share, timer.steps)).unwrap_or_default()
}

/// The share of a point's steps that `of` counts, given the number of missed steps.
fn share_of_steps(point: &Point, of: impl Fn(u64) -> Option<u64>) -> Option<f64> {
    let [steps, missed] = steps(&point.counters)?;
    Some(of(missed)? as f64 / steps.max(1) as f64)
}

fn missed(point: &Point) -> Option<f64> {
    share_of_steps(point, Some)
}

fn alone(point: &Point) -> Option<f64> {
    let timer = &point.pipeline.as_ref()?.timer;
    Some(timer.missed as f64 / timer.steps.max(1) as f64)
}

/// The share of steps that were missed while the generator worked: computed values, used its
/// endpoint or kept samples.
fn busy(point: &Point) -> Option<f64> {
    share_of_steps(point, |missed| Some(missed.saturating_sub(point.pipeline.as_ref()?.missed_waiting)))
}

fn lost(point: &Point) -> Option<f64> {
    share_of_steps(point, |_| point.counters.get("messages_lost").copied())
}
