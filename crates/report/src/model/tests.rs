//! The published tables, with some columns kept back, and synthetic tables with known parameters.

use measure::figure::{FigureKind, Reference, ReferenceTable, Unit};
use measure::random::Random;
use measure::record::LatencyKind;
use measure::record::{Device, Point};
use measure::stats;
use measure::stats::fit::Fit;
use measure::stats::shape::Estimate;
use serde_json::json;

use super::column::{Cell, Column, Packing};
use super::line::Line;
use super::packets::Packets;
use super::*;
use crate::known;
use crate::link::{Generation, Layer};

const RC: &str = include_str!("../../../../plans/reference/gamess-2016/table2_rc_send_latency_us.csv");
const UC: &str = include_str!("../../../../plans/reference/gamess-2016/table3_uc_send_latency_us.csv");
const UD: &str = include_str!("../../../../plans/reference/gamess-2016/table4_ud_send_latency_us.csv");

const PACKING: Packing = Packing { mtu: 4096, header_bytes: 26 };

/// softdev, as in a record.
fn device() -> Device {
    let attributes = json!({
        "link_layer": "Ethernet", "gid_type": "RoCE v2", "gid": "fe80::2f4", "kind": "user-space software",
    });
    let device = json!({ "rank": 0, "name": "softdev0", "provider": "softdev", "attributes": attributes });
    serde_json::from_value(device).unwrap()
}

fn figure(csv: &str) -> Figure {
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    let table = ReferenceTable {
        columns: row(csv.lines().next().unwrap()),
        rows: csv.lines().skip(1).map(row).collect(),
    };
    Figure {
        experiments: vec!["e".to_owned()],
        x: Some("size_bytes".to_owned()),
        y: Some("latency.p50_ns".to_owned()),
        unit: Some(Unit::Us),
        series: vec!["signal_rate".to_owned()],
        only: [("mtu_bytes".to_owned(), json!(4096))].into(),
        reference: Some(Reference {
            file: "t.csv".to_owned(),
            source: "a paper".to_owned(),
            derived: false,
            unit: Some(Unit::Us),
            table: Some(table),
        }),
        ..Figure::new(FigureKind::Table, "Table")
    }
}

/// The absolute errors of columns that the model was not fitted to, in rising order.
fn unseen(csv: &str) -> Vec<f64> {
    let table = published(&figure(csv), known(&[])).unwrap().unwrap();
    let [sdr, ddr, qdr, fdr] = &table.columns[..] else { panic!("{table:?}") };
    let model = Packets::of(&[sdr, fdr], PACKING).unwrap();
    assert_eq!((model.inline, model.fetched), (128, 256), "where the paper has its step");
    let error = |column: &Column, cell: &Cell| {
        (model.at(column.generation.unwrap(), cell.size) / cell.ns - 1.0).abs()
    };
    let mut errors: Vec<f64> = [ddr, qdr]
        .into_iter()
        .flat_map(|column| column.cells.iter().map(|cell| error(column, cell)).collect::<Vec<_>>())
        .collect();
    errors.sort_by(f64::total_cmp);
    errors
}

#[test]
fn two_columns_of_a_published_table_tell_the_others() {
    for (csv, cells) in [(RC, 44), (UC, 44), (UD, 22)] {
        let errors = unseen(csv);
        assert_eq!(errors.len(), cells);
        let median = f64::midpoint(errors[cells / 2 - 1], errors[cells / 2]);
        assert!(median < 0.05 && errors[cells - 1] < 0.1, "{errors:?}");
    }
}

#[test]
fn what_is_printed_says_what_was_fitted_and_what_is_missed() {
    let text = text(&[figure(RC)], known(&[]), &[]).unwrap();
    for part in [
        "published: a paper",
        "one model for all rates, fitted to SDR and FDR\n (44 cells, 4X;",
        "link time relative to the data rate",
        "between 128 and 256 B",
        "     SDR      DDR*     QDR*     FDR",
        " unseen: 44 cells, half of them within 0.",
        " No cell is missed by more than 10 %.",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // Two slow links do not show what else a fast one waits for.
    let text = super::text(&[figure(RC)], known(&[]), &["SDR".to_owned(), "DDR".to_owned()]).unwrap();
    let (_, missed) = text.split_once(" Missed by more than 10 %:\n").unwrap_or_else(|| panic!("{text}"));
    assert!(missed.lines().all(|line| line.starts_with("   FDR ") && line.ends_with(" %")), "{text}");
    assert!(missed.contains("FDR 8 MiB: -1"), "{text}");
}

#[test]
fn there_is_no_model_of_what_does_not_determine_it() {
    let only = |column| -> Figure {
        let mut figure = figure(RC);
        let table = figure.reference.as_mut().unwrap().table.as_mut().unwrap();
        table.columns.drain(1..column);
        table.columns.truncate(2);
        for row in &mut table.rows {
            row.drain(1..column);
            row.truncate(2);
        }
        figure
    };
    let said = |figure: Figure, fitted: &[&str]| {
        let fitted: Vec<String> = fitted.iter().map(|name| (*name).to_owned()).collect();
        text(&[figure], known(&[]), &fitted).map_err(|error| error.to_string())
    };
    assert!(said(only(4), &[]).unwrap().contains("none,\n as it takes columns of two rates"));
    assert!(
        said(Figure { only: Default::default(), ..figure(RC) }, &[])
            .unwrap()
            .contains("as the path MTU is not known")
    );
    assert!(said(figure(RC), &["QDR"]).unwrap().contains("none,\n as it takes columns of two rates"));
    assert!(said(figure(RC), &["sdr", "qdr"]).unwrap().contains("fitted to SDR and QDR"));
    assert_eq!(
        said(figure(RC), &["HDR"]).unwrap_err(),
        "no table has a column 'HDR' to fit to; the columns are DDR, FDR, QDR, SDR"
    );
    let mut short = figure(UD);
    short.reference.as_mut().unwrap().table.as_mut().unwrap().rows.truncate(3);
    assert!(
        said(short, &[]).unwrap().contains("observations are too few for"),
        "eight cells, six parameters"
    );
    assert!(
        said(Figure { y: Some("throughput.bytes_per_s".to_owned()), unit: None, ..figure(RC) }, &[]).is_err()
    );
}

/// Latencies of all sizes of the published tables, computed by the model with errors of 1 %.
fn synthetic(truth: &Packets, rate: Generation, random: &mut Random) -> Column {
    let cell = |power| {
        let size = 1u64 << power;
        Cell { size, ns: truth.at(rate, size) * (0.01 * random.normal()).exp() }
    };
    Column { label: rate.name.to_owned(), generation: Some(rate), cells: (2..=23).map(cell).collect() }
}

/// Similar to those of Table 2.
const TRUTH: [f64; 7] = [810.0, 96.0, 1.0, 1.0, 725.0, 0.2, 0.17];

fn truth() -> Packets {
    let parameters = TRUTH.map(Estimate::exact).to_vec();
    Packets { packing: PACKING, inline: 128, fetched: 256, fit: Fit { parameters, sum: 0.0, degrees: 1 } }
}

#[test]
fn the_truth_lies_in_95_of_100_intervals_of_the_pipeline() {
    let mut random = Random(1);
    let mut inside = [0; 7];
    for _ in 0..1000 {
        let columns =
            ["SDR", "FDR"].map(|rate| synthetic(&truth(), Generation::named(rate).unwrap(), &mut random));
        let model = Packets::with(&[&columns[0], &columns[1]], PACKING, 128, 256).unwrap();
        for (index, (inside, truth)) in inside.iter_mut().zip(TRUTH).enumerate() {
            let found = model.fit.parameters[index];
            *inside += u32::from((found.low..=found.high).contains(&truth));
        }
    }
    assert!(inside.iter().all(|inside| (930..=970).contains(inside)), "{inside:?}");
}

#[test]
fn the_step_is_found_where_it_is() {
    let mut random = Random(2);
    for _ in 0..20 {
        let columns =
            ["SDR", "QDR"].map(|rate| synthetic(&truth(), Generation::named(rate).unwrap(), &mut random));
        let model = Packets::of(&[&columns[0], &columns[1]], PACKING).unwrap();
        assert_eq!((model.inline, model.fetched), (128, 256));
    }
}

#[test]
fn a_line_is_found_again() {
    let cells = (2..=23).map(|power| Cell { size: 1 << power, ns: 1000.0 + 0.25 * f64::from(1 << power) });
    let column = Column { label: "FDR".to_owned(), generation: None, cells: cells.collect() };
    let line = Line::of(&column).unwrap();
    assert!((line.start_ns.value - 1000.0).abs() < 1e-3 && (line.ns_per_byte.value - 0.25).abs() < 1e-9);
    assert!((line.half_size() - 4000.0).abs() < 0.1 && (line.at(400) - 1100.0).abs() < 1e-3);
}

#[test]
fn measured_columns_are_apart_by_all_but_the_rate() {
    let mut points = Vec::new();
    for (service, rate) in [("RC", "SDR"), ("RC", "FDR"), ("UC", "SDR"), ("UC", "native")] {
        for size in [64u64, 128, 256, 512] {
            let latency = stats::latency(LatencyKind::RttHalf, &[1000 + size; 10], &[]).unwrap();
            let point = json!({
                "id": points.len(), "experiment": "latency", "pattern": "ping-pong", "status": "measured", "repetition": 0,
                "axes": { "service": service, "signal_rate": rate, "mtu_bytes": 1024, "size_bytes": size },
                "latency": latency, "wall_ns": 0,
            });
            points.push(serde_json::from_value::<Point>(point).unwrap());
        }
    }
    let tables = measured(Points { devices: &[device()], ..known(&points) }).unwrap();
    let found: Vec<(&str, Option<Packing>, Vec<&str>)> = tables
        .iter()
        .map(|table| {
            let labels = table.columns.iter().map(|column| column.label.as_str()).collect();
            (table.title.as_str(), table.packing, labels)
        })
        .collect();
    let cut = Packing::of(1024, Layer::RoceV2Ipv6);
    assert_eq!(
        found,
        [
            ("latency: service RC", Some(cut), vec!["SDR", "FDR"]),
            ("latency: service UC", Some(cut), vec!["SDR", "native"]),
        ]
    );
    assert_eq!(tables[0].columns[0].cells[1], Cell { size: 128, ns: 1128.0 });
    let text = text(&[], Points { devices: &[device()], ..known(&points) }, &[]).unwrap();
    assert!(text.contains("measured\n") && text.contains(" native "), "{text}");
}

/// A point of a stream of about 4 KiB, with the rest of its record.
fn stream(id: u64, size: u64, gbps: f64, rest: serde_json::Value) -> Point {
    let mut point = json!({
        "id": id, "experiment": "bw", "pattern": "stream", "status": "measured", "repetition": 0, "wall_ns": 0,
        "axes": {
            "service": "RC", "operation": "send", "signal_rate": "SDR", "mtu_bytes": 4096, "size_bytes": size,
        },
        "throughput": { "bytes_per_s": gbps * 1.25e8, "messages_per_s": 1.0, "direction": "uni" },
    });
    for (key, value) in rest.as_object().unwrap() {
        match key.as_str() {
            "direction" => point["throughput"]["direction"] = value.clone(),
            "signal_rate" => point["axes"]["signal_rate"] = value.clone(),
            key => point[key] = value.clone(),
        }
    }
    serde_json::from_value(point).unwrap()
}

#[test]
fn a_throughput_stands_beside_what_its_link_carries() {
    let shaped = json!({ "link_model": "4X SDR" });
    let points = [stream(0, 4096, 7.0, shaped.clone()), stream(1, 1 << 20, 7.8, shaped)];
    let limits = limit::measured(Points { devices: &[device()], ..known(&points) }).unwrap();
    let [limits] = &limits[..] else { panic!("{limits:?}") };
    assert_eq!((limits.link.name.as_str(), limits.link.bits_per_s), ("4X SDR", 8_000_000_000));
    let best = |row: &limit::Row| row.best;
    assert!((best(&limits.rows[0]) - 8.0 * 4096.0 / 4178.0).abs() < 1e-9, "{limits:?}");
    assert!((best(&limits.rows[1]) - 8.0 * 4096.0 / 4178.0).abs() < 1e-9, "{limits:?}");
    let text = text(&[], Points { devices: &[device()], ..known(&points) }, &[]).unwrap();
    for part in [
        "and the link limit (4X SDR: 8.00 Gb/s, 82 B around each packet's payload)",
        " 89.3 %\n",
        "Nearest to the limit at 1 MiB: 99.5 %",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains("acknowledgements"), "{text}");
}

#[test]
fn what_acknowledgements_take_is_said() {
    let both = json!({ "link_model": "4X FDR", "direction": "bi_one" });
    let limits =
        limit::measured(Points { devices: &[device()], ..known(&[stream(0, 4096, 7.0, both)]) }).unwrap();
    assert!(limit::text(&limits[0]).contains("carries the acknowledgements of the other"));
    assert!(
        limit::measured(Points { devices: &[device()], ..known(&[stream(0, 4096, 7.0, json!({}))]) })
            .unwrap()
            .is_empty(),
        "memory has no link"
    );
}
