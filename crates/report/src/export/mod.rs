//! The numbers of runs for other programs: tidy tables, metrics and test results.
//!
//! `rows` makes the one table that all formats are made of: a row for each point and quantity.
//! [`schema`] describes its columns and those of the table of samples. Each format is a module that
//! writes these rows; it knows no quantity by its name.

mod csv;
mod exported;
mod fleet;
mod junit;
mod lines;
mod markdown;
mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod samples;
pub mod schema;
#[cfg(test)]
mod tests;

use std::io::Write;

use measure::presentation::Patterns;

use crate::Error;
pub use exported::Exported;
pub use openmetrics::can_be_label;
use rows::Table;

/// The form of what is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// The table as comma-separated values (RFC 4180).
    Csv,
    /// The table as JSON, an object for each row and line.
    Json,
    /// A table for people, a row for each point.
    Markdown,
    /// Metrics for Prometheus, as its textfile collector reads them.
    OpenMetrics,
    /// Points, expectations and the members of a fleet as results of tests.
    Junit,
    /// The table as Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Writes runs in a format. Without `quantities`, tables have every number of a point, and formats
/// for people and metrics have the usual ones. A quantity is a path, or the group that paths begin
/// with, such as `latency`.
///
/// # Errors
///
/// If the output cannot be written.
pub fn write(
    runs: &[Exported<'_>],
    patterns: Patterns,
    format: Format,
    quantities: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    match format {
        Format::Csv => csv::write(&Table::of(runs, patterns, quantities), out),
        Format::Json => lines::write(&Table::of(runs, patterns, quantities), out),
        Format::Markdown => markdown::write(runs, patterns, quantities, out),
        Format::OpenMetrics => openmetrics::write(runs, patterns, quantities, out),
        Format::Junit => junit::write(runs, patterns, out),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(&Table::of(runs, patterns, quantities), out),
    }
}

/// Writes the samples of runs: a row for each sample.
///
/// # Errors
///
/// If samples cannot be read, or the output cannot be written.
pub fn write_samples(runs: &[Exported<'_>], format: Format, out: &mut dyn Write) -> Result<(), Error> {
    match format {
        Format::Json => samples::write(runs, &mut |cells| lines::row(cells, out)),
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            let mut parquet = parquet::Parquet::new(&samples::COLUMNS.map(|column| parquet::typed(&column)))?;
            samples::write(runs, &mut |cells| parquet.row(cells))?;
            parquet.finish(out)
        }
        _ => {
            csv::head(&samples::COLUMNS.map(|column| column.name), out)?;
            samples::write(runs, &mut |cells| csv::row(cells, out))
        }
    }
}

/// Whether a run has samples, and not only histograms.
pub fn has_samples(run: &Exported<'_>) -> bool {
    run.points.iter().any(samples::has_any)
}

/// The formats that samples have.
pub const OF_SAMPLES: &[Format] = &[
    Format::Csv,
    Format::Json,
    #[cfg(feature = "parquet")]
    Format::Parquet,
];
