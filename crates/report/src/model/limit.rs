//! What a link can carry at best, beside what was measured on it: from its rate after the line code, the packets that a message
//! is cut into, and the headers of each. Flow control and gaps between packets are left out, and acknowledgements, as an adapter
//! may answer many packets at once: no measured number can be above this one.

use measure::figure::Unit;
use measure::record::{Device, Direction, Point};
use serde_json::Value;

use super::column::{MTU, RATE, experiments, layer, over_size, title};
use crate::error::Error;
use crate::grid::Grid;
use crate::link::{self, Layer};
use crate::unit;
use crate::value;

/// Throughputs over message size that went over one link.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) title: String,
    /// The link, e.g. `4X FDR`.
    pub(super) link: String,
    /// Its data bits in a second.
    pub(super) bits_per_s: u64,
    pub(super) layer: Layer,
    /// Whether both directions were used at once over a service that acknowledges.
    pub(super) is_shared: bool,
    pub(super) rows: Vec<Row>,
}

/// One size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) size: u64,
    /// Payload of one direction, in Gb/s.
    pub(super) measured: f64,
    /// The same, at best.
    pub(super) best: f64,
}

/// The throughputs of a run for which a link is known.
pub(super) fn measured(points: &[Point], devices: &[Device]) -> Result<Vec<Limits>, Error> {
    let mut all = Vec::new();
    for experiment in experiments(points, |point| point.throughput.is_some()) {
        let grid = Grid::new(&over_size(experiment, "throughput.bytes_per_s", Some(Unit::GbPerS)), points)?;
        for series in &grid.series {
            let mut limits: Option<Limits> = None;
            for (size, cell) in grid.xs.iter().zip(&series.cells) {
                let (Some(size), Some(number)) = (size.as_u64(), cell.number()) else { continue };
                let Some(point) = points.iter().find(|point| point.id == number.id) else { continue };
                let Some((name, bits_per_s, layer)) = of_point(point, devices) else { continue };
                let Some(taken) = taken(point, layer, size).filter(|_| size > 0) else { continue };
                let is_both =
                    point.throughput.as_ref().is_some_and(|known| known.direction != Direction::Uni);
                let is_acknowledged = point.axes.get("service").is_some_and(|service| service == "RC");
                let best = bits_per_s as f64 / 1e9 * size as f64 / taken as f64;
                let limits = limits.get_or_insert_with(|| Limits {
                    title: title(experiment, &series.key),
                    link: name,
                    bits_per_s,
                    layer,
                    is_shared: is_both && is_acknowledged,
                    rows: Vec::new(),
                });
                limits.rows.push(Row { size, measured: number.median, best });
            }
            all.extend(limits);
        }
    }
    Ok(all)
}

/// What a message of a point takes on its link, in bytes.
fn taken(point: &Point, layer: Layer, size: u64) -> Option<u64> {
    let axis = |name| point.axes.get(name).map(value::text).unwrap_or_default();
    let mtu = point.axes.get(MTU).and_then(Value::as_u64).filter(|mtu| *mtu > 0)?;
    layer.message_bytes(&axis("service"), &axis("operation"), mtu, size)
}

/// The link that a point went over, its data rate and what carried its packets, where all of it is known.
fn of_point(point: &Point, devices: &[Device]) -> Option<(String, u64, Layer)> {
    let device = devices.first()?;
    let named = point.axes.get(RATE).and_then(Value::as_str).filter(|name| *name != "native");
    // Headers or packets of its own are not those of any layer.
    if point.link_model.as_deref().is_some_and(|model| model.contains("header=") || model.contains("mtu=")) {
        return None;
    }
    let imitated = point.link_model.as_deref().and_then(|model| model.split(',').next()).map(str::to_owned);
    let is_adapter = device.attributes.get("kind").and_then(Value::as_str) == Some("hardware");
    let own = || device.attributes.get("link").filter(|_| is_adapter).map(value::text);
    let name = imitated.or_else(|| named.map(|name| format!("4X {name}"))).or_else(own)?;
    let bits_per_s = link::data_bits_per_s(&name)?;
    Some((name, bits_per_s, layer(point, devices)?))
}

/// The throughputs in print.
pub(super) fn text(limits: &Limits) -> String {
    let mut out = format!(
        "{}\nmeasured, beside what {} carries at best: {} Gb/s, {} B around each packet's payload\n\n",
        crate::terminal::plain(&limits.title),
        crate::terminal::plain(&limits.link),
        link::gbps(limits.bits_per_s),
        limits.layer.header_bytes(),
    );
    out += &format!(" {:>9} {:>16} {:>14} {:>8}\n", "bytes", "measured [Gb/s]", "at best [Gb/s]", "share");
    for row in &limits.rows {
        let share = format!("{:.1} %", 100.0 * row.measured / row.best);
        out += &format!(" {:>9} {:>16.3} {:>14.3} {share:>8}\n", row.size, row.measured, row.best);
    }
    let best = limits.rows.iter().max_by(|a, b| (a.measured / a.best).total_cmp(&(b.measured / b.best)));
    if let Some(row) = best {
        let share = 100.0 * row.measured / row.best;
        out += &format!(" Nearest to the link at {}: {share:.1} %.\n", unit::size(row.size));
    }
    if limits.is_shared {
        out += " Each direction carries the acknowledgements of the other, too; they are not counted.\n";
    }
    out
}
