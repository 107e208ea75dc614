use bench::PATTERNS;
use std::collections::BTreeMap;

use measure::figure::{FigureKind, Reference, ReferenceTable, Unit};
use measure::record::{LatencyKind, Throughput};
use serde_json::json;

use super::*;
use crate::known;

fn point(service: &str, size: u64, repetition: u32, gbps: f64) -> Point {
    let throughput =
        Throughput { bytes_per_s: gbps * 1.25e8, messages_per_s: 1.0, direction: Direction::Uni };
    Point {
        id: u64::from(repetition) * 100 + size,
        experiment: "e".to_owned(),
        pattern: "stream".to_owned(),
        axes: BTreeMap::from([
            ("service".to_owned(), json!(service)),
            ("size_bytes".to_owned(), json!(size)),
        ]),
        status: Status::Measured,
        repetition,
        launch: None,
        fleet: None,
        link_model: None,
        conditions: Vec::new(),
        iterations: None,
        latency: None,
        kinds: Vec::new(),
        one_way: None,
        pipeline: None,
        reported: None,
        cost: None,
        own: BTreeMap::new(),
        throughput: Some(throughput),
        fairness: None,
        throughput_total: None,
        ends: Vec::new(),
        calibration: None,
        oversubscribed: None,
        cut: false,
        unstable: None,
        counters: BTreeMap::from([("rnr_waits".to_owned(), 3)]),
        wall_ns: 0,
    }
}

fn new(figure: &Figure, points: &[Point]) -> Result<SeriesTable, Error> {
    SeriesTable::new(figure, known(points))
}

fn number(point: &Point, path: &str) -> Option<f64> {
    PATTERNS.find_at(point, path)?.number(point)
}

fn figure(series: &[&str]) -> Figure {
    Figure {
        experiments: vec!["e".to_owned()],
        x: Some("size_bytes".to_owned()),
        y: Some("throughput.bytes_per_s".to_owned()),
        unit: Some(Unit::GbPerS),
        series: series.iter().map(|s| (*s).to_owned()).collect(),
        ..Figure::new(FigureKind::Table, "t")
    }
}

fn labels(series_table: &SeriesTable) -> Vec<&str> {
    series_table.series.iter().map(|s| s.label.as_str()).collect()
}

#[test]
fn repetitions_of_one_launch_are_counted_as_launches() {
    let mut points: Vec<Point> = (0..3).map(|r| point("RC", 4, r, 10.0)).collect();
    let fold = |points: &[Point]| {
        let series_table = new(&figure(&["service"]), points).unwrap();
        let number = series_table.series[0].cells[0].number().unwrap();
        (number.repetitions, number.are_launches)
    };
    assert_eq!(fold(&points), (3, false));
    for (point, launch) in points.iter_mut().zip([0, 0, 1]) {
        point.launch = Some(launch);
    }
    assert_eq!(fold(&points), (2, true));
}

#[test]
fn repetitions_fold_to_their_median_with_the_spread_apart() {
    let points: Vec<Point> = [10.0, 14.0, 11.0].iter().zip(0..).map(|(g, r)| point("RC", 4, r, *g)).collect();
    let series_table = new(&figure(&["service"]), &points).unwrap();
    let number = series_table.series[0].cells[0].number().unwrap();
    assert_eq!((number.median, number.runs, number.repetitions, number.id), (11.0, [10.0, 14.0], 3, 204));
    assert_eq!(number.quantiles, None, "a throughput has no percentiles");
    assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(Vec::new()), None);
}

#[test]
fn each_series_less_the_one_before_is_what_it_adds() {
    let gbps = [("RC", 10.0), ("UC", 14.0), ("UC", 16.0), ("UD", 13.0)];
    let mut points: Vec<Point> = gbps.iter().zip(0..).map(|((s, g), r)| point(s, 4, r, *g)).collect();
    let figure = Figure { difference: true, ..figure(&["service"]) };
    let series_table = new(&figure, &points).unwrap();
    assert_eq!(labels(&series_table), ["RC", "UC - RC", "UD - UC"]);
    let medians: Vec<f64> = series_table.numbers().map(|number| number.median).collect();
    assert_eq!(medians, [10.0, 5.0, -2.0]);
    let runs: Vec<[f64; 2]> = series_table.numbers().map(|number| number.runs).collect();
    assert_eq!(runs, [[10.0, 10.0], [4.0, 6.0], [-3.0, -1.0]]);
    for point in &mut points[1..3] {
        point.status = Status::NotMeasured { reason: "no UC".to_owned() };
    }
    let series_table = new(&figure, &points).unwrap();
    let without = Cell::NotMeasured("no UC".to_owned());
    assert_eq!((&series_table.series[1].cells[0], &series_table.series[2].cells[0]), (&without, &without));
}

#[test]
fn each_series_less_the_first_is_how_far_it_is_above() {
    let points: Vec<Point> =
        [("RC", 10.0), ("UC", 14.0), ("UD", 13.0)].iter().map(|(s, g)| point(s, 4, 0, *g)).collect();
    let figure = Figure { above_first: true, ..figure(&["service"]) };
    let series_table = new(&figure, &points).unwrap();
    assert_eq!(labels(&series_table), ["UC - RC", "UD - RC"]);
    assert_eq!(series_table.numbers().map(|number| number.median).collect::<Vec<_>>(), [4.0, 3.0]);
    assert!(new(&figure, &[]).unwrap().series.is_empty());
}

#[test]
fn each_series_is_a_multiple_of_the_one_that_it_is_relative_to() {
    let mut points = Vec::new();
    let inline =
        [("RC", false, 10.0), ("RC", true, 5.0), ("RC", true, 6.0), ("UC", false, 4.0), ("UC", true, 8.0)];
    for ((service, is_inline, gbps), id) in inline.into_iter().zip(0..) {
        let mut one = Point { id, ..point(service, 4, 0, gbps) };
        one.axes.insert("inline".to_owned(), json!(is_inline));
        points.push(one);
    }
    let to = [("inline".to_owned(), json!(false))].into();
    let mut figure = Figure { relative_to: to, ..figure(&["service", "inline"]) };
    let series_table = new(&figure, &points).unwrap();
    let medians: Vec<f64> = series_table.numbers().map(|number| number.median).collect();
    assert_eq!(medians, [1.0, 0.55, 1.0, 2.0]);
    let runs: Vec<[f64; 2]> = series_table.numbers().map(|number| number.runs).collect();
    assert_eq!(runs[1], [0.5, 0.6]);
    assert_eq!(series_table.scale.label, "");
    assert!(series_table.what.ends_with(", relative to inline false"), "{}", series_table.what);
    figure.relative_to = [("inline".to_owned(), json!("none"))].into();
    let without = new(&figure, &points).unwrap();
    let reason = "no number with inline none was measured here to divide by".to_owned();
    assert_eq!(without.series[0].cells[0], Cell::NotMeasured(reason));
}

#[test]
fn points_that_differ_in_an_unnamed_axis_are_never_folded() {
    let mut points = vec![point("RC", 4, 0, 10.0), point("UC", 4, 0, 20.0)];
    assert_eq!(labels(&new(&figure(&[]), &points).unwrap()), ["RC", "UC"]);
    points[1].axes = points[0].axes.clone();
    points[1].axes.insert("inline".to_owned(), json!(true));
    points[0].axes.insert("inline".to_owned(), json!(false));
    let series_table = new(&figure(&["service"]), &points).unwrap();
    assert_eq!(labels(&series_table), ["RC inline false", "RC inline true"]);
    points[1] = Point { experiment: "f".to_owned(), ..points[0].clone() };
    let both = Figure { experiments: vec!["e".to_owned(), "f".to_owned()], ..figure(&["service"]) };
    assert_eq!(labels(&new(&both, &points).unwrap()), ["RC e", "RC f"]);
}

#[test]
fn series_are_told_apart_by_experiment_and_by_kind_of_latency() {
    let points = [point("RC", 4, 0, 10.0), Point { experiment: "f".to_owned(), ..point("RC", 4, 0, 20.0) }];
    let both = Figure {
        experiments: vec!["e".to_owned(), "f".to_owned()],
        ..figure(&["service", "experiment", "latency"])
    };
    assert_eq!(labels(&new(&both, &points).unwrap()), ["RC e", "RC f"], "a throughput has no kind");
}

#[test]
fn an_axis_that_follows_x_does_not_split_a_series() {
    let mut points = vec![point("RC", 4, 0, 10.0), point("RC", 4096, 0, 20.0)];
    points[0].axes.insert("inline".to_owned(), json!(true));
    points[1].axes.insert("inline".to_owned(), json!(false));
    assert_eq!(labels(&new(&figure(&["service"]), &points).unwrap()), ["RC"]);
}

#[test]
fn a_cell_says_why_it_holds_no_number() {
    let reason = || Status::NotMeasured { reason: "no link".to_owned() };
    let mut points = vec![point("RC", 4, 0, 1.0), point("RC", 8, 0, 1.0), point("UC", 4, 0, 1.0)];
    points[0].status = reason();
    points[1].status = Status::Failed { error: "gone".to_owned() };
    points.push(Point { throughput: None, ..point("UC", 16, 0, 1.0) });
    let series_table = new(&figure(&["service"]), &points).unwrap();
    assert_eq!(
        series_table.series[0].cells[..2],
        [Cell::NotMeasured("no link".into()), Cell::Failed("gone".into())]
    );
    assert_eq!(series_table.series[1].cells[1], Cell::Absent);
    assert!(
        matches!(&series_table.series[1].cells[2], Cell::NotMeasured(why) if why.contains("throughput.bytes_per_s"))
    );
    assert!(!series_table.series[0].is_not_measured(), "a failed point keeps its column");
}

#[test]
fn doubts_stay_with_the_number() {
    let mut points = vec![point("RC", 4, 0, 1.0), point("RC", 4, 1, 1.1)];
    points[0].unstable = Some("moved".to_owned());
    points[1].status = Status::Failed { error: "gone".to_owned() };
    let series_table = new(&figure(&["service"]), &points).unwrap();
    let number = series_table.series[0].cells[0].number().unwrap();
    assert_eq!(number.doubts, ["repetition 1 unstable: moved", "repetition 2 failed: gone"]);
    assert_eq!(number.repetitions, 1);
}

/// Published numbers: the names of the columns, and two rows.
fn reference(table: [[&str; 3]; 3]) -> Reference {
    let [columns, rows @ ..] = table.map(|cells| cells.map(str::to_owned).to_vec());
    Reference {
        file: String::new(),
        source: "paper".to_owned(),
        derived: false,
        unit: None,
        table: Some(ReferenceTable { columns, rows: rows.into() }),
    }
}

#[test]
fn published_cells_keep_their_text_and_find_their_twin() {
    let reference = reference([
        ["size_bytes", "uc_gbps", "netperf_mbps"],
        ["4", "0.50", "NA"],
        ["1024", "50.61", "8000"],
    ]);
    let figure = Figure { reference: Some(reference), ..figure(&["service"]) };
    let series_table = new(&figure, &[point("RC", 4, 0, 1.0), point("UC", 4, 0, 1.0)]).unwrap();
    assert_eq!(series_table.xs, [json!(4), json!(1024)]);
    let [uc, netperf] = &series_table.published[..] else { panic!("{:?}", series_table.published) };
    assert_eq!((uc.label.as_str(), uc.twin, uc.cells[0].as_deref()), ("UC", Some(1), Some("0.50")));
    assert_eq!((netperf.twin, netperf.cells[0].as_deref()), (None, Some("NA")));
    assert_eq!(
        (netperf.number(0, series_table.scale), netperf.number(1, series_table.scale)),
        (None, Some(8.0))
    );
    assert_eq!(series_table.series[0].cells[1], Cell::Absent, "a published row beyond the run stays");
}

#[test]
fn published_rows_of_a_switch_are_those_that_were_measured() {
    let reference =
        reference([["inline", "event_repoll_gbps", "event_gbps"], ["false", "1", "2"], ["true", "3", "4"]]);
    let figure = Figure { reference: Some(reference), x: Some("inline".to_owned()), ..figure(&["poll"]) };
    let points: Vec<Point> = [("event", false), ("event", true), ("event_repoll", true)]
        .map(|(poll, inline)| {
            let mut point = point("RC", 4, 0, 1.0);
            point.axes.extend([("poll".to_owned(), json!(poll)), ("inline".to_owned(), json!(inline))]);
            point
        })
        .into();
    let series_table = new(&figure, &points).unwrap();
    assert_eq!(series_table.xs, [json!(false), json!(true)]);
    let [repoll, event] = &series_table.published[..] else { panic!("{:?}", series_table.published) };
    assert_eq!((repoll.twin, repoll.cells[1].as_deref()), (Some(1), Some("3")));
    assert_eq!((event.twin, event.cells[0].as_deref()), (Some(0), Some("2")), "it names no other poll");
}

#[test]
fn numbers_are_found_by_their_path() {
    let point = point("RC", 4, 0, 2.0);
    assert_eq!(number(&point, "throughput.bytes_per_s"), Some(2.5e8));
    assert_eq!(number(&point, "counters.rnr_waits"), Some(3.0));
    for path in ["latency.p50_ns", "throughput", "ends.0.latency.p50_ns", "ends.x", "nothing", ""] {
        assert_eq!(number(&point, path), None, "{path}");
    }
}

#[test]
fn a_round_has_a_reading_for_each_of_its_messages() {
    let samples: Vec<u64> = (0..1001).map(|i| 8000 + i).collect();
    let latency = measure::stats::latency(LatencyKind::FanHalf, &samples, &[]);
    let mut round = Point { latency, ..point("RC", 4, 0, 2.0) };
    assert_eq!(number(&round, "per_message.p50_ns"), None, "it is no round");
    round.pattern = "fan-out".to_owned();
    round.axes.insert("peers".to_owned(), json!(4));
    assert_eq!(number(&round, "per_message.p50_ns"), Some(2125.0));
    let of = |path: &str, round: &Point| PATTERNS.find_at(round, path).unwrap().measured(round).unwrap();
    let each = of("per_message.p50_ns", &round);
    let estimate = each.estimate;
    let count = each.samples;
    let whole = of("latency.p50_ns", &round).estimate;
    assert_eq!((estimate, count), (whole.map(|ns| ns / 4.0), Some(1001)));
    assert!(estimate.low < estimate.value && each.has_interval);
    // Its rate is computed from its median, with the same uncertainty.
    let other = measure::stats::latency(LatencyKind::RttHalf, &samples, &[]);
    let other = Point { latency: other, ..round.clone() };
    assert!(!of("throughput.bytes_per_s", &other).has_interval);
    let rate = of("throughput.bytes_per_s", &round).estimate;
    assert!(of("throughput.bytes_per_s", &round).has_interval);
    assert_eq!((rate.value, rate.low), (2.5e8, 2.5e8 * whole.value / whole.high));
    let figure = Figure { y: Some("per_message.p50_ns".to_owned()), unit: Some(Unit::Ns), ..figure(&[]) };
    let series_table = new(&figure, &[round]).unwrap();
    assert_eq!(series_table.numbers().map(|n| n.quantiles).collect::<Vec<_>>(), [Some([2025.0, 2225.0])]);
}

#[test]
fn a_figure_without_an_axis_is_refused_in_a_sentence() {
    let error = new(&Figure { x: None, ..figure(&[]) }, &[]).unwrap_err();
    assert_eq!(error.to_string(), "cannot draw the figure 't': a figure of this kind needs 'x'");
}
