//! The table of samples: a row for each message that was timed. `run` and `point` are keys into the
//! table of numbers.

use measure::record::Point;

use super::exported::{Cell, Exported};
use super::rows::Column;
use crate::Error;

/// The columns of samples, in their order.
pub(super) const COLUMNS: [Column; 6] = [
    Column::new("run", "string", "Name of the run's directory."),
    Column::new("point", "integer", "Number of the point in its run, from 0."),
    Column::new(
        "source",
        "string",
        "The rank that timed the sample, or the kind of latency of several ranks' stamps.",
    ),
    Column::new("kind", "string", "Kind of the latency, such as rtt_half."),
    Column::new(
        "sample",
        "integer",
        "Number of the sample, from 0, in the order in which messages were sent.",
    ),
    Column::new("latency_ns", "integer", "The latency, in ns."),
];

/// Writes the samples of runs, row by row.
pub(super) fn write(
    runs: &[Exported<'_>],
    row: &mut dyn FnMut(&[Cell<'_>]) -> Result<(), Error>,
) -> Result<(), Error> {
    for run in runs {
        for point in run.points {
            for (source, kind, path) in kept(point) {
                let samples_ns = run.samples.load(path).map_err(|why| {
                    let run = run.name.clone();
                    Error::Samples { run, path: path.to_owned(), why }
                })?;
                let [name, id] = [run.name.as_str().into(), point.id.into()];
                let mut cells = [name, id, source.into(), kind.into(), 0.into(), 0.into()];
                for (index, ns) in samples_ns.iter().enumerate() {
                    cells[4] = index.into();
                    cells[5] = (*ns).into();
                    let named: Vec<_> =
                        COLUMNS.iter().map(|column| column.name).zip(cells.iter().cloned()).collect();
                    row(&named)?;
                }
            }
        }
    }
    Ok(())
}

/// The samples that a point has: their source, their kind and their file.
fn kept(point: &Point) -> Vec<(String, &'static str, &str)> {
    let of_ends = point.ends.iter().filter_map(|end| {
        Some((end.rank.to_string(), end.latency.as_ref()?.kind.name(), end.samples.as_deref()?))
    });
    let of_kinds = point.kinds.iter().filter_map(|timed| {
        let kind = timed.latency.kind.name();
        Some((kind.to_owned(), kind, timed.samples.as_deref()?))
    });
    of_kinds.chain(of_ends).collect()
}

/// Whether a point has samples.
pub(super) fn has_any(point: &Point) -> bool {
    !kept(point).is_empty()
}
