//! `rdmascope report`: the report of a run, from its record alone.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use measure::figure::Unit;
use measure::record::{Point, Run};
use measure::store::RunReader;

use crate::cli::ReportArguments;
use crate::failure::Usage;
use crate::stdout;

/// Writes the report of a run again, or prints its tables.
pub(crate) fn write(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    if arguments.text {
        let (run, points) = RunReader::open(&arguments.run)?.into_parts();
        let tables = report::terminal::tables(&points, &run.devices, Unit::GbPerS)?;
        let missing = missing(&run, &points).map_or_else(String::new, |missing| format!("\n {missing}\n"));
        let repeated = report::repeated::text(&report::repeated::repeated(&run.plan, &points));
        let findings = report::terminal::findings(&run.findings, &points);
        stdout::print(&(tables + &repeated + &findings + &missing))?;
        return Ok(ExitCode::SUCCESS);
    }
    let default = || arguments.run.join("report.html");
    let output = arguments.output.clone().unwrap_or_else(default);
    if let Some(missing) = write_html(&arguments.run, &output)? {
        eprintln!("rdmascope: {missing}");
    }
    if output.is_file() {
        stdout::print(&format!("{}\n", output.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How many points of a run are not in its record, if some.
fn missing(run: &Run, points: &[Point]) -> Option<String> {
    let missing = run.points_planned.saturating_sub(points.len() as u64);
    (missing > 0)
        .then(|| format!("{missing} of {} points are missing: the run ended early", run.points_planned))
}

/// Writes the HTML file such that it is whole or not there. What is there and is no file, such as a pipe or /dev/stdout,
/// is written to and not replaced. Gives what is missing of the run, if its record is not whole.
pub(crate) fn write_html(run: &Path, output: &Path) -> anyhow::Result<Option<String>> {
    let record = RunReader::open(run)?;
    if RECORD_FILES.iter().any(|name| is_same(&run.join(name), output)) {
        return Err(Usage(format!("{} is part of the record: choose another file", output.display())).into());
    }
    let samples = |path: &str| record.sample_file(path).map_err(|error| error.to_string());
    let is_replaced = std::fs::metadata(output).map_or(true, |found| found.is_file());
    let part = if is_replaced { part_of(output) } else { output.to_owned() };
    let say = || format!("cannot write {}", output.display());
    let mut file = BufWriter::new(File::create(&part).with_context(say)?);
    let written =
        report::html::write(record.run(), record.points(), &samples, &mut file).map_err(
            |error| match error {
                report::Error::Write(cause) => anyhow::Error::from(cause),
                other => other.into(),
            },
        );
    let written = written.and_then(|()| Ok(file.into_inner().map_err(IntoInnerError::into_error)?));
    let missing = missing(record.run(), record.points());
    if !is_replaced {
        return written.map(|_| missing).with_context(say);
    }
    let kept = written.and_then(|file| Ok(file.sync_all().and_then(|()| std::fs::rename(&part, output))?));
    kept.inspect_err(|_| _ = std::fs::remove_file(&part)).map(|()| missing).with_context(say)
}

/// The name that a file has until it is whole.
fn part_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

const RECORD_FILES: [&str; 2] = ["run.json", "points.jsonl"];
