//! A message forth and one back: perftest's columns, over sockets those that users of netperf and qperf look for.

use measure::quantity::cpu_ns_per_message;
use measure::record::Point;
use measure::table::{Cell, Column, Note, Presentation, Table, Traffic, View};

use measure::table::common::{
    CPU_TIME, ITERATIONS, SIZE, T_99, T_999, T_AVG, T_MAX, T_MIN, T_STDEV, T_TYPICAL, WHOLE, is_over_sockets,
    latency, meanwhile,
};

pub(super) static SHOWN: Presentation = Presentation {
    pattern: "ping-pong",
    test: Some("RR"),
    table,
    traffic: Traffic::between_two,
    own: &["transactions_per_s"],
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
        T_MIN,
        T_MAX,
        T_TYPICAL,
        T_AVG,
        T_STDEV,
        T_99,
        T_999,
        Column::new("trans/s", Cell::Number("transactions_per_s", WHOLE)),
        Column::new("CPU[us/trans]", Cell::Text(cpu)),
    ],
    gap: 2,
    below: |point| losses(point).into_iter().chain(meanwhile(point)).collect(),
    notes: &[Note::Always(CPU_TIME)],
    ..Table::PLAIN
};

/// The CPU time of both messages of a transaction.
fn cpu(view: &View<'_>) -> Option<String> {
    cpu_ns_per_message(view.point).map(|ns| format!("{:.2}", 2.0 * ns / 1e3))
}

fn losses(point: &Point) -> Option<String> {
    let lost = point.counters.get("messages_lost").filter(|lost| **lost > 0)?;
    Some(format!("     # {lost} messages were lost and asked for again: those transactions are no samples"))
}
