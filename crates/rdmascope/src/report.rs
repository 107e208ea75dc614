//! `rdmascope report`: writes the report of a run, from its record alone.

pub(crate) mod output;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bench::PATTERNS;
use clap::Args;
use measure::figure::Unit;
use measure::store::RunReader;
use report::Points;
use report::figures::Drawings;
use report::whole::ended_early;

use self::output::Output;
use crate::failure::Usage;
use crate::stdout;

/// Below the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope report runs/quick-2026-01-31T120000Z
  rdmascope report first-run -o first-run.html
  rdmascope report first-run --text    prints the tables of the run
  rdmascope report first-run --figures figures
                                       writes the findings and the figures as
                                       SVG and as CSV";

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// Directory of the run.
    pub(crate) run: PathBuf,
    /// File to write [default: report.html in the run's directory].
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print the tables instead of writing a file.
    #[arg(long, conflicts_with = "output")]
    pub(crate) text: bool,
    /// Write the findings and each figure that is not a table into this directory instead: a
    /// drawing as SVG, its numbers as CSV.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "text"])]
    pub(crate) figures: Option<PathBuf>,
}

/// Writes the report of a run again, or prints its tables.
pub(crate) fn write(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    if arguments.text {
        let (run, points) = RunReader::open(&arguments.run)?.into_parts();
        if let Some(text) = report::fleet::of_record(&run, &points, stdout::line()) {
            stdout::print_folded(&text.map_err(Usage)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let shown = Points { points: &points, devices: &run.devices, patterns: PATTERNS };
        let tables = report::terminal::tables(shown, Unit::GbPerS, stdout::line())?;
        let missing =
            ended_early(&run, &points).map_or_else(String::new, |missing| format!("\n {missing}\n"));
        let repeated = report::repeated::text(&report::repeated::repeated(&run.plan, &points));
        let costs = report::terminal::costs(&run.figures, shown);
        let findings = report::terminal::findings(&run, shown, true);
        let launched = report::launched::text(&run.plan, &points);
        let judged = report::expectations::judge(&run.expectations, &run.plan, shown);
        let judged = report::expectations::text(&judged, true);
        stdout::print_folded(&(tables + &repeated + &launched + &costs + &findings + &judged + &missing))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(directory) = &arguments.figures {
        return write_figures(&arguments.run, directory);
    }
    let written = write_html(&arguments.run, arguments.output.as_deref())?;
    if let Some(missing) = written.missing {
        eprintln!("rdmascope: {missing}");
    }
    if let Some(file) = written.file {
        stdout::print(&format!("{}\n", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the findings and figures of a run into a directory, prints the paths of the files, and
/// names what has no drawing, or not all of its samples, on standard error.
fn write_figures(run: &Path, directory: &Path) -> anyhow::Result<ExitCode> {
    let record = RunReader::open(run)?;
    let shown = Points { points: record.points(), devices: &record.run().devices, patterns: PATTERNS };
    let samples = |path: &str| record.sample_file(path).map_err(|error| error.to_string());
    let drawings = report::figures::drawings(record.run(), shown, &samples)?;
    let Drawings { drawn, tables, empty, incomplete } = drawings;
    for (why, figures) in [("they are tables", tables), ("there are no numbers for them", empty)] {
        if !figures.is_empty() {
            eprintln!("rdmascope: no drawing of these figures, because {why}: {}", figures.join(", "));
        }
    }
    for figure in incomplete {
        eprintln!("rdmascope: figure {figure}");
    }
    if drawn.is_empty() {
        eprintln!("rdmascope: the run has no figure that can be drawn");
        return Ok(ExitCode::FAILURE);
    }
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))?;
    for drawing in drawn {
        for (end, text) in [("svg", &drawing.svg), ("csv", &drawing.csv)] {
            let path = directory.join(format!("{}.{end}", drawing.name));
            let output = Output::File(path.clone());
            output.write(|file| file.write_all(text.as_bytes()).map_err(Into::into))?;
            stdout::print(&format!("{}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A report that was written.
pub(crate) struct Written {
    /// The file; none if the report went to a pipe, a device or standard output.
    pub(crate) file: Option<PathBuf>,
    /// A sentence about missing points, if the record is incomplete.
    missing: Option<String>,
}

/// Writes the HTML file that the user named, or `report.html` in the run's directory.
pub(crate) fn write_html(run: &Path, named: Option<&Path>) -> anyhow::Result<Written> {
    let record = RunReader::open(run)?;
    let output = match named {
        Some(path) => Output::beside(&[&record], path)?,
        None => Output::File(run.join("report.html")),
    };
    let samples = |path: &str| record.sample_file(path).map_err(|error| error.to_string());
    output.write(|file| {
        let written = report::html::write(record.run(), record.points(), PATTERNS, &samples, file);
        written.map_err(|error| match error {
            report::Error::Write(cause) => anyhow::Error::from(cause),
            other => other.into(),
        })
    })?;
    let missing = ended_early(record.run(), record.points());
    Ok(Written { file: output.into_file(), missing })
}
