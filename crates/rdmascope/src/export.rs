//! `rdmascope export`: the numbers of runs for other programs.

mod names;

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use bench::PATTERNS;
use clap::{Args, ValueEnum};
use measure::expectation::path_of;
use measure::store::RunReader;
use report::export::{self, Exported, Format, OF_SAMPLES};

use crate::failure::{Usage, harmless};
use crate::report::output::Output;
use crate::stdout;

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope export runs/* > all.csv
  rdmascope export first-run --quantity p99 --quantity throughput
  rdmascope export first-run --samples --out samples.csv
  rdmascope export first-run --format markdown
                                       a table for a ticket
  rdmascope export first-run --format junit --out rdmascope.xml
  rdmascope export first-run --format openmetrics \\
    --out /var/lib/prometheus/node-exporter/rdmascope.prom";

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Directories of runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Form of the numbers.
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: FormatWord,
    /// Write a row for each sample instead, as csv, json or parquet.
    #[arg(long, conflicts_with = "quantity")]
    samples: bool,
    /// Only this number, such as latency.p99_ns or p99, or all of a group, such as latency.
    #[arg(long, value_name = "PATH")]
    quantity: Vec<String>,
    /// Label to add to all metrics, such as unit=nightly. Files of one textfile collector need
    /// different labels.
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// File to write, which is replaced as a whole [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The name of a format.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum FormatWord {
    /// A tidy table: a row for each point and quantity.
    Csv,
    /// The same table, as one JSON object on each line.
    Json,
    /// Metrics for Prometheus and node_exporter's textfile collector.
    Openmetrics,
    /// Points and expectations as results of tests, for CI.
    Junit,
    /// A table for people: a row for each point.
    Markdown,
    /// The tidy table with types, if the program is built with its feature `parquet`.
    Parquet,
}

impl FormatWord {
    fn format(self) -> Result<Format, Usage> {
        Ok(match self {
            Self::Csv => Format::Csv,
            Self::Json => Format::Json,
            Self::Openmetrics => Format::OpenMetrics,
            Self::Junit => Format::Junit,
            Self::Markdown => Format::Markdown,
            #[cfg(feature = "parquet")]
            Self::Parquet => Format::Parquet,
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => return Err(Usage(WITHOUT_PARQUET.to_owned())),
        })
    }
}

#[cfg(not(feature = "parquet"))]
const WITHOUT_PARQUET: &str = "this program is built without Parquet: build it with --features parquet, or export csv and \
    convert it with DuckDB: COPY (FROM 'numbers.csv') TO 'numbers.parquet'";

/// Writes the numbers or the samples of runs.
pub(crate) fn export(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let format = arguments.format.format()?;
    if arguments.samples && !OF_SAMPLES.contains(&format) {
        return Err(Usage(
            "--samples writes csv, json or parquet: leave --format out, or give one of them".to_owned(),
        )
        .into());
    }
    if format == Format::Junit && !arguments.quantity.is_empty() {
        let words =
            "--format junit has the results of points and expectations: leave --quantity out".to_owned();
        return Err(Usage(words).into());
    }
    if format != Format::OpenMetrics && !arguments.label.is_empty() {
        return Err(Usage("--label is for --format openmetrics: leave it out".to_owned()).into());
    }
    let names: Vec<&String> = arguments.label.iter().map(|(name, _)| name).collect();
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(Usage(format!("--label {} is given twice", twice.1)).into());
    }
    let quantities = arguments.quantity.iter().map(|path| known(path)).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<RunReader> =
        arguments.runs.iter().map(|run| RunReader::open(run)).collect::<Result<_, _>>()?;
    let samples: Vec<_> =
        runs.iter().map(|run| |path: &str| run.sample_file(path).map_err(|e| e.to_string())).collect();
    let names = names::names(&runs.iter().map(RunReader::dir).collect::<Vec<_>>())?;
    let exported: Vec<Exported<'_>> = (runs.iter().zip(&samples).zip(names))
        .map(|((run, samples), name)| Exported {
            name,
            run: run.run(),
            points: run.points(),
            samples,
            labels: &arguments.label,
        })
        .collect();
    for (run, shown) in
        exported.iter().zip(&arguments.runs).filter(|(run, _)| arguments.samples && !export::has_samples(run))
    {
        let shown = harmless(&shown.display().to_string());
        eprintln!(
            "rdmascope: the run {shown} has no samples: it kept histograms ({} points)",
            run.points.len()
        );
    }
    let write = |out: &mut dyn Write| match arguments.samples {
        true => export::write_samples(&exported, format, out),
        false => export::write(&exported, PATTERNS, format, &quantities, out),
    };
    match &arguments.out {
        Some(path) => Output::beside(&runs.iter().collect::<Vec<_>>(), path)?.write(|out| Ok(write(out)?))?,
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            write(&mut out).and_then(|()| Ok(out.flush()?)).map_err(stdout_error)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a label of metrics.
fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give a name and a value such as unit=nightly")?;
    match export::can_be_label(name) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("{name:?} cannot be the name of a label: give one such as unit=nightly")),
    }
}

/// Returns the error of standard output, which may be a closed pipe.
fn stdout_error(error: report::Error) -> anyhow::Error {
    match error {
        report::Error::Write(cause) => stdout::cannot_write(&cause).into(),
        other => other.into(),
    }
}

/// Returns the path of a quantity from its path or short name. Refuses an unknown one.
fn known(path: &str) -> anyhow::Result<String> {
    let found = [path, path_of(path)];
    if let Some(path) = found.iter().find(|path| PATTERNS.has_group(path) || PATTERNS.find(path).is_some()) {
        return Ok((*path).to_owned());
    }
    let hint = match PATTERNS.examples(path).first() {
        Some(first) => format!("give a path such as {first}, or a group such as latency"),
        None => "give a path such as latency.p99_ns, or a group such as latency".to_owned(),
    };
    Err(Usage(format!("unknown quantity {path:?}: {hint}")).into())
}
