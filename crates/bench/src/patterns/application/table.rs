//! The table of applications: a line for each run, with the metrics that the program reports.

use measure::presentation::Presentation;
use measure::quantity::{At, Counted, number};
use measure::record::Point;
use measure::table::{Cell, Column, Decimals, Print, Scale, Table};
use measure::text::plain;
use measure::units::Dimension;
use serde_json::Value;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["application", "ranks", "mode", "mpi_transport"],
    // For points of other versions of the program, which tables of latencies show.
    column_axes: &["size_bytes"],
    label: &["{application}", "{ranks} ranks"],
    table: |point| own(point).map(|_| &RUNS),
    quantities: &[
        number(
            "application.metrics.*",
            Dimension::Number,
            |point, at| metric(point, at)?.get("value")?.as_f64(),
            "{} as the program reports it",
        )
        .named(|point| {
            let metrics = own(point).and_then(|own| own.get("metrics")?.as_object());
            metrics.into_iter().flat_map(|metrics| metrics.keys().cloned()).collect()
        })
        .counted_in(|point, at| {
            let found = metric(point, at)?;
            let unit = plain(found.get("unit")?.as_str()?);
            Some(Counted { unit, better: serde_json::from_value(found.get("better")?.clone()).ok()? })
        }),
        number(
            "application.wall_ns",
            Dimension::Time,
            |point, _| used(point, "wall_ns"),
            "the time from the start of the program to its end",
        )
        .offered(),
        number(
            "application.cpu_ns",
            Dimension::Time,
            |point, _| Some(used(point, "user_ns")? + used(point, "system_ns")?),
            "the CPU time of the program and its launcher",
        )
        .offered(),
        number(
            "application.user_ns",
            Dimension::Time,
            |point, _| used(point, "user_ns"),
            "the CPU time of the program and its launcher in user space",
        ),
        number(
            "application.system_ns",
            Dimension::Time,
            |point, _| used(point, "system_ns"),
            "the CPU time of the program and its launcher in the kernel",
        ),
        number(
            "application.max_rss_bytes",
            Dimension::Number,
            |point, _| used(point, "max_rss_bytes"),
            "the largest resident set of a process of the program or its launcher, in bytes",
        ),
    ],
    ..Presentation::PLAIN
};

static RUNS: Table = Table {
    title: "programs, with the metrics that they report",
    says_direction: false,
    columns: &[
        Column::new("program", Cell::Axis("application")).left(16),
        Column::new("#ranks", Cell::Axis("ranks")).wide(6),
        Column::new("mode", Cell::Text(|view| Some(mode(view.point)))).wide(10),
        Column::new("wall[s]", Cell::Number("application.wall_ns", SECONDS)).wide(9),
        Column::new("CPU[s]", Cell::Number("application.cpu_ns", SECONDS)).wide(9),
        Column::new("RSS[MiB]", Cell::Number("application.max_rss_bytes", MEBIBYTES)).wide(9).extra(),
        Column::new("  metrics", Cell::Text(|view| Some(metrics(view.point)))).left(0),
    ],
    notes: &[],
    ..Table::PLAIN
};

const SECONDS: Print = Print { scale: Scale::By(1e9), decimals: Decimals::Fixed(3) };
const MEBIBYTES: Print = Print { scale: Scale::By((1 << 20) as f64), decimals: Decimals::Fixed(1) };

/// What the record has about the program.
fn own(point: &Point) -> Option<&Value> {
    point.own.get("application")
}

fn metric<'p>(point: &'p Point, at: At<'_>) -> Option<&'p Value> {
    own(point)?.get("metrics")?.get(at.name)
}

fn used(point: &Point, name: &str) -> Option<f64> {
    own(point)?.get("usage")?.get(name)?.as_f64()
}

/// The mode of a point: its named variables, or the transport of MPI.
fn mode(point: &Point) -> String {
    let axis = |name| point.axes.get(name).and_then(Value::as_str);
    axis("mode").or_else(|| axis("mpi_transport")).map_or_else(|| "plain".to_owned(), plain)
}

/// All metrics with their units.
fn metrics(point: &Point) -> String {
    let metrics = own(point).and_then(|own| own.get("metrics")?.as_object());
    let all = metrics.into_iter().flatten().filter_map(|(name, found)| {
        let value = found.get("value")?.as_f64()?;
        let unit = found.get("unit").and_then(Value::as_str).unwrap_or_default();
        Some(format!("{} {value} {}", plain(name), plain(unit)).trim_end().to_owned())
    });
    format!("  {}", all.collect::<Vec<_>>().join(", "))
}
