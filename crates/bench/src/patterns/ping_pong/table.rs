//! The tables of round trips: perftest's columns, and over sockets the columns of netperf and
//! qperf.

use measure::presentation::{Presentation, Traffic};
use measure::quantity::{cpu_ns_per_message, lost, number};
use measure::record::{LatencyKind, Point};
use measure::table::common::{
    CPU_TIME, ITERATIONS, SIZE, T_99, T_999, T_AVG, T_MAX, T_MIN, T_STDEV, T_TYPICAL, WHOLE, is_over_sockets,
    latency, meanwhile,
};
use measure::table::{Cell, Column, Note, Table, View};
use measure::units::Dimension;

pub(super) static SHOWN: Presentation = Presentation {
    test: Some("RR"),
    table,
    traffic: Traffic::between_two,
    quantities: &[number(
        "transactions_per_s",
        Dimension::Number,
        |p, _| per_second(p),
        "transactions per second",
    )
    .offered()],
    ..Presentation::PLAIN
};

fn table(point: &Point) -> Option<&'static Table> {
    let is_timed = point.latency.is_some() || point.reported.is_some();
    match point.kinds.is_empty() {
        _ if is_over_sockets(point) && is_timed => Some(&TRANSACTIONS),
        true => latency(point),
        false => None,
    }
}

static TRANSACTIONS: Table = Table {
    title: "latency {kind}",
    columns: &[
        SIZE,
        ITERATIONS,
        T_MIN.extra(),
        T_MAX,
        T_TYPICAL,
        T_AVG.extra(),
        T_STDEV.extra(),
        T_99,
        T_999,
        Column::new("trans/s", Cell::Number("transactions_per_s", WHOLE)),
        Column::new("CPU[us]", Cell::Text(cpu)),
    ],
    below: |point| losses(point).into_iter().chain(meanwhile(point)).collect(),
    notes: &[Note::Always(CPU_TIME), Note::Always(PER_TRANSACTION)],
    ..Table::PLAIN
};

const PER_TRANSACTION: &str =
    "\n CPU[us]: CPU time of both ranks for each transaction, which is a message out and one back\n";

/// The CPU time of both messages of a transaction.
fn cpu(view: &View<'_>) -> Option<String> {
    cpu_ns_per_message(view.point).map(|ns| format!("{:.2}", 2.0 * ns / 1e3))
}

fn losses(point: &Point) -> Option<String> {
    let lost = point.counters.get("messages_lost").filter(|lost| **lost > 0)?;
    Some(format!("     # {lost} messages were lost and repeated: these transactions are no samples"))
}

/// Transactions per second, each a message out and one back: the inverse of the mean time of a
/// transaction. Where messages were lost, the number of undisturbed transactions, divided by the
/// whole time: the others waited for a repetition.
fn per_second(point: &Point) -> Option<f64> {
    if let Some(reported) = &point.reported {
        return Some(1e9 / (2.0 * reported.mean_ns?)).filter(|rate| rate.is_finite());
    }
    let latency = point.latency.as_ref()?;
    if lost(point) > 0 {
        let wall_ns = point.ends.first()?.cpu?.wall_ns;
        return Some(latency.count as f64 * 1e9 / wall_ns as f64).filter(|rate| rate.is_finite());
    }
    let halves = match latency.kind {
        LatencyKind::RttHalf => 2.0,
        LatencyKind::Rtt => 1.0,
        _ => return None,
    };
    Some(1e9 / (halves * latency.mean_ns)).filter(|rate| rate.is_finite())
}
