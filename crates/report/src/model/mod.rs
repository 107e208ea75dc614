//! Models of the latency of a message over its size: their parameters with intervals, their values
//! for cells that they were not fitted to, and their large errors.
//!
//! * `line`: Hockney's line, separately for each column;
//! * `packets`: packets through a pipeline, one model for all rates of a link;
//! * `loggp`: LogGP from parametrised round trips, with overheads that were measured directly;
//! * `logfp`: LogfP from rounds of fan-out, with the results of LogGP for them;
//! * `barriers`: barriers by dissemination in n ways, and the n that LogfP predicts;
//! * `limit`: link limits next to throughputs.
//!
//! All but the last are fitted by least squares of the logarithms, so that an error counts by its
//! share of the latency: a column covers four orders of magnitude, and users ask for each size by
//! how many percent the model is off.
//!
//! # Invariants
//!
//! * A model is fitted to a record alone. Its parameters have 95 % intervals, which hold for
//!   synthetic data with known parameters. The error of every point is printed, and each error of
//!   more than 10 % is listed.

mod barriers;
mod column;
mod combine;
mod dissemination;
mod fans;
mod limit;
mod line;
mod logfp;
mod logfp_text;
mod loggp;
mod loggp_text;
mod packets;
mod rounds;
mod text;

use measure::figure::Figure;

use crate::Points;
use crate::error::Error;
use column::{Table, measured, published};

/// Prints models of the latencies, bursts and throughputs of a run, and of the published latencies
/// of its figures, as tables for a terminal. `fitted` names the columns that the model of all rates
/// is fitted to; if it is empty, these are the slowest and the fastest column.
///
/// # Errors
///
/// If a figure is wrong, if there is nothing to fit a model to, or if `fitted` names a column that
/// no table has.
pub fn text(figures: &[Figure], run: Points<'_>, fitted: &[String]) -> Result<String, Error> {
    let limits = limit::measured(run)?;
    let mut tables: Vec<Table> = measured(run)?;
    for figure in figures {
        tables.extend(published(figure, run)?);
    }
    let rounds = rounds::measured(run.points);
    let fans = fans::measured(run.points);
    let barriers = barriers::measured(run.points);
    let has_none = rounds.is_empty() && fans.is_empty() && barriers.is_empty();
    if tables.is_empty() && limits.is_empty() && has_none {
        return Err(Error::NothingToModel);
    }
    for name in fitted {
        let has = |table: &Table| table.columns.iter().any(|column| column.label.eq_ignore_ascii_case(name));
        if !tables.iter().any(has) {
            let mut known: Vec<String> =
                tables.iter().flat_map(|table| &table.columns).map(|column| column.label.clone()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(Error::NoSuchColumn { name: name.clone(), known: known.join(", ") });
        }
    }
    let tables = tables.iter().map(|table| text::table(table, fitted));
    let barriers = barriers.iter().map(|barriers| barriers::text(barriers, &fans));
    let fans = fans.iter().map(|fan| logfp_text::fan(fan, &rounds));
    let rounds = rounds.iter().map(loggp_text::rounds);
    Ok(tables
        .chain(rounds)
        .chain(fans)
        .chain(barriers)
        .chain(limits.iter().map(limit::text))
        .collect::<Vec<_>>()
        .join("\n"))
}

#[cfg(test)]
mod tests;
