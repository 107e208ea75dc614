//! Models of the latency of a message over its size: their parameters with intervals, what they say
//! of cells that they were not fitted to, and where they fail.
//!
//! * `line`: Hockney's line, each column for itself;
//! * `packets`: packets through a pipeline, one model for all rates of a link;
//! * `loggp`: LogGP from parametrised round trips, beside the overheads that were measured by
//!   themselves;
//! * `logfp`: LogfP from rounds of one to n, beside what LogGP says of them;
//! * `barriers`: barriers by dissemination in n ways, and the n that LogfP predicts;
//! * `limit`: what a link carries at best, from first principles, beside the throughputs.
//!
//! All but the last are fitted by least squares of the logarithms, so that an error counts by its
//! share of the latency: a column reaches over four orders of magnitude, and users ask of each size
//! how many percent the model is off.
//!
//! # Invariants
//!
//! * A model is fitted to a record alone. Its parameters have 95 % intervals, which hold on
//!   synthetic data with a known truth; the error of every point stands beside it, and each of more
//!   than 10 % is named.

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

/// What models say of the latencies, bursts and throughputs of a run, and of the published
/// latencies that its figures carry: tables for a terminal. `fitted` names the columns that the
/// model of all rates is fitted to, the slowest and the fastest where it is empty.
///
/// # Errors
///
/// If a figure is wrong in itself, if there is nothing that a model is fitted to, or `fitted` names
/// a column that no table has.
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
