//! The table of transfers: a line for each transfer, with the CPU time of both ranks.

use measure::presentation::Presentation;
use measure::quantity::number;
use measure::record::Point;
use measure::table::common::{BANDWIDTH, SIZE};
use measure::table::{Cell, Column, Decimals, Note, Print, Scale, Table, View};
use measure::units::Dimension;
use serde_json::Value;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &[
        "size_bytes",
        "files",
        "file_source",
        "file_sink",
        "block_bytes",
        "tx_depth",
        "queue_pairs",
        "streams",
        "registration_cache",
        "persistent_session",
        "checksum",
    ],
    table: |point| own(point).map(|_| &TRANSFERS),
    quantities: &[
        number(
            "transfer.wall_ns",
            Dimension::Time,
            |point, _| of(point, "source", "wall_ns"),
            "the time from the first block that was sent until all files had arrived",
        )
        .offered(),
        number(
            "transfer.session_ns",
            Dimension::Time,
            |point, _| Some(session(point, "source")?.max(session(point, "sink")?)),
            "the time to set up connections, at the rank that took longer",
        )
        .offered(),
        number(
            "transfer.first_file_ns",
            Dimension::Time,
            |point, _| of(point, "sink", "first_file_ns"),
            "the time from the first block that was sent until the first file had arrived",
        ),
        number(
            "transfer.cpu_ns_per_gib",
            Dimension::Time,
            |point, _| Some(cpu_per_gib(point, "source")? + cpu_per_gib(point, "sink")?),
            "the CPU time of both ranks per GiB",
        )
        .offered(),
        number(
            "transfer.source.cpu_ns_per_gib",
            Dimension::Time,
            |point, _| cpu_per_gib(point, "source"),
            "the CPU time of the sending rank per GiB",
        ),
        number(
            "transfer.sink.cpu_ns_per_gib",
            Dimension::Time,
            |point, _| cpu_per_gib(point, "sink"),
            "the CPU time of the receiving rank per GiB",
        ),
        number(
            "transfer.registering_ns",
            Dimension::Time,
            |point, _| {
                Some(link(point, "source", "registering_ns")? + link(point, "sink", "registering_ns")?)
            },
            "the time in which both ranks registered memory",
        ),
        number(
            "transfer.registrations",
            Dimension::Number,
            |point, _| {
                Some(
                    link(point, "source", "registration_misses")?
                        + link(point, "sink", "registration_misses")?,
                )
            },
            "the number of memory registrations of both ranks",
        ),
    ],
    ..Presentation::PLAIN
};

static TRANSFERS: Table = Table {
    title: "transfers",
    says_direction: false,
    columns: &[
        SIZE,
        Column::new("#files", Cell::Axis("files")).wide(7),
        Column::new("from", Cell::Axis("file_source")).wide(6),
        Column::new("to", Cell::Axis("file_sink")).wide(6),
        Column::new("depth", Cell::Axis("tx_depth")).wide(5).shown_where(is_over_verbs),
        Column::new("registers", Cell::Text(|view| registers(view.point))).wide(9).shown_where(is_over_verbs),
        Column::new("session", Cell::Text(|view| Some(session_of(view.point)))).wide(7).usual(),
        Column::new("BW[{unit}]", Cell::Number("throughput.bytes_per_s", BANDWIDTH)).wide(10),
        Column::new("files[1/s]", Cell::Number("throughput.messages_per_s", WHOLE)).wide(10).usual(),
        Column::new("CPU-from[s/GiB]", Cell::Number("transfer.source.cpu_ns_per_gib", SECONDS))
            .wide(15)
            .extra(),
        Column::new("CPU-to[s/GiB]", Cell::Number("transfer.sink.cpu_ns_per_gib", SECONDS)).wide(13).extra(),
        Column::new("setup[ms]", Cell::Number("transfer.session_ns", MILLISECONDS)).wide(9).extra(),
    ],
    notes: &[Note::Always(CPU)],
    ..Table::PLAIN
};

/// Whether all files share one connection, or each file has its own.
fn session_of(point: &Point) -> String {
    let persists = point.axes.get("persistent_session").and_then(Value::as_bool);
    if persists == Some(false) { "each" } else { "one" }.to_owned()
}

/// The time in which a rank set up all of its connections, later files included, in ns.
fn session(point: &Point, end: &str) -> Option<f64> {
    Some(of(point, end, "session_ns")? + link(point, end, "renewing_ns").unwrap_or(0.0))
}

const WHOLE: Print = Print { scale: Scale::By(1.0), decimals: Decimals::Fixed(0) };
const SECONDS: Print = Print { scale: Scale::By(1e9), decimals: Decimals::Fixed(3) };
const MILLISECONDS: Print = Print { scale: Scale::By(1e6), decimals: Decimals::Fixed(1) };

const CPU: &str = "
 CPU: CPU time of the whole process of each rank, in user space and in the kernel, while files were transferred
";

/// Whether blocks use registered memory, with several outstanding.
fn is_over_verbs(view: &View<'_>) -> bool {
    view.point.axes.contains_key("tx_depth")
}

/// How often memory is registered: once, or for each block.
fn registers(point: &Point) -> Option<String> {
    let is_kept = point.axes.get("registration_cache")?.as_bool()?;
    Some(if is_kept { "once" } else { "each" }.to_owned())
}

/// What the record has about the transfer.
fn own(point: &Point) -> Option<&Value> {
    point.own.get("transfer")
}

fn of(point: &Point, end: &str, name: &str) -> Option<f64> {
    own(point)?.get(end)?.get(name)?.as_f64()
}

fn link(point: &Point, end: &str, name: &str) -> Option<f64> {
    own(point)?.get(end)?.get("link")?.get(name)?.as_f64()
}

fn cpu_per_gib(point: &Point, end: &str) -> Option<f64> {
    let bytes = own(point)?.get("sink")?.get("counts")?.get("bytes")?.as_f64()?;
    let cpu_ns = of(point, end, "user_ns")? + of(point, end, "system_ns")?;
    (bytes > 0.0).then(|| cpu_ns * f64::from(1 << 30) / bytes)
}
