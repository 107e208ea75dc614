//! Link limits, next to the throughputs over message size that were measured on the links.

use measure::figure::Unit;

use super::column::{experiments, over_size, title};
use crate::Points;
use crate::error::Error;
use crate::link_limit::Link;
use crate::series_table::SeriesTable;
use crate::unit;

/// Throughputs over message size on one link.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) title: String,
    pub(super) link: Link,
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
    /// The link limit, in Gb/s.
    pub(super) best: f64,
}

/// The throughputs of a run for which a link is known.
pub(super) fn measured(run: Points<'_>) -> Result<Vec<Limits>, Error> {
    let mut all = Vec::new();
    for experiment in experiments(run.points, |point| point.throughput.is_some()) {
        let figure = over_size(experiment, "throughput.bytes_per_s", Some(Unit::GbPerS));
        let series_table = SeriesTable::with_links(&figure, run)?;
        for series in &series_table.series {
            let mut limits: Option<Limits> = None;
            for (size, cell) in series_table.xs.iter().zip(&series.cells) {
                let (Some(size), Some(number)) = (size.as_u64(), cell.number()) else { continue };
                let Some(at_limit) = &number.at_limit else { continue };
                let limits = limits.get_or_insert_with(|| Limits {
                    title: title(experiment, &series.key),
                    link: at_limit.limit.link.clone(),
                    is_shared: at_limit.limit.is_shared,
                    rows: Vec::new(),
                });
                limits.rows.push(Row { size, measured: number.median, best: at_limit.number });
            }
            all.extend(limits);
        }
    }
    Ok(all)
}

/// Prints the throughputs.
pub(super) fn text(limits: &Limits) -> String {
    let mut out = format!(
        "{}\nmeasured, and the link limit ({})\n\n",
        measure::text::plain(&limits.title),
        measure::text::plain(&limits.link.to_string()),
    );
    out += &format!(" {:>9} {:>16} {:>14} {:>8}\n", "bytes", "measured [Gb/s]", "limit [Gb/s]", "share");
    for row in &limits.rows {
        let share = format!("{:.1} %", 100.0 * row.measured / row.best);
        out += &format!(" {:>9} {:>16.3} {:>14.3} {share:>8}\n", row.size, row.measured, row.best);
    }
    let best = limits.rows.iter().max_by(|a, b| (a.measured / a.best).total_cmp(&(b.measured / b.best)));
    if let Some(row) = best {
        let share = 100.0 * row.measured / row.best;
        out += &format!(" Nearest to the limit at {}: {share:.1} %.\n", unit::size(row.size));
    }
    if limits.is_shared {
        out += " Each direction also carries the acknowledgements of the other; they are not counted.\n";
    }
    out
}
