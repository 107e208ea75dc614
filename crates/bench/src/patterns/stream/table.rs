//! The table of streams: perftest's columns, and over sockets the columns of netperf and iperf3:
//! the throughput of both ranks, losses, and the CPU time.

use measure::presentation::{Presentation, Traffic};
use measure::record::{Direction, Point};
use measure::table::common::{
    BANDWIDTH, CPU_TIME, ITERATIONS, LOST, MESSAGE_RATE, SIZE, WHOLE, is_over_sockets, meanwhile,
};
use measure::table::{Cell, Column, Note, Table, View};

pub(super) static SHOWN: Presentation = Presentation {
    test: Some("STREAM"),
    table: |point| {
        let is_uni = point.throughput.as_ref().is_some_and(|t| t.direction == Direction::Uni);
        (is_uni && is_over_sockets(point)).then_some(&BOTH_ENDS)
    },
    traffic: Traffic::between_two,
    ..Presentation::PLAIN
};

static BOTH_ENDS: Table = Table {
    title: "throughput one way",
    columns: &[
        SIZE,
        ITERATIONS.extra(),
        Column::new("sent[{unit}]", Cell::Number("ends.0.throughput.bytes_per_s", BANDWIDTH)).wide(11),
        Column::new("recv[{unit}]", Cell::Number("ends.1.throughput.bytes_per_s", BANDWIDTH)).wide(11),
        MESSAGE_RATE.extra(),
        LOST.shown_where(is_lossy),
        Column::new("#duplicate", Cell::Number("counters.messages_duplicate", WHOLE))
            .extra()
            .shown_where(is_lossy),
        Column::new("#reordered", Cell::Number("counters.messages_reordered", WHOLE))
            .extra()
            .shown_where(is_lossy),
        Column::new("CPU-sent[ns/KiB]", Cell::Text(|view| cpu(view.point, 0))).usual(),
        Column::new("CPU-recv[ns/KiB]", Cell::Text(|view| cpu(view.point, 1))).usual(),
    ],
    below: meanwhile,
    notes: &[Note::Always(CPU_TIME), Note::Where(is_woken, WOKEN)],
    ..Table::PLAIN
};

fn is_lossy(view: &View<'_>) -> bool {
    view.point.axes.get("endpoint").is_some_and(|endpoint| endpoint == "udp")
}

/// The CPU time of a rank per KiB of payload, in ns.
fn cpu(point: &Point, end: usize) -> Option<String> {
    let cpu = point.ends.get(end)?.cpu?;
    let bytes = cpu.messages? as f64 * point.axes.get("size_bytes")?.as_f64()?;
    (bytes > 0.0).then(|| format!("{:.1}", (cpu.user_ns + cpu.system_ns) as f64 * 1024.0 / bytes))
}

/// Whether the receiver is woken for more than one message, unlike in other programs.
fn is_woken(point: &Point) -> bool {
    let is = |axis: &str, value: &str| point.axes.get(axis).is_some_and(|known| known == value);
    point.reported.is_none() && is("endpoint", "tcp") && is("poll", "event")
}

const WOKEN: &str = "
 TCP: the receiver is woken for 1 MiB at a time if its buffer holds that much (SO_RCVLOWAT), which iperf3, netperf and qperf do \
   not request; over loopback this alone may double the throughput
";
