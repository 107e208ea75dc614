//! `rdmascope report`: the report of a run, from its record alone.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use measure::figure::Unit;
use measure::samples::read_raw;
use measure::store::RunReader;

use crate::cli::ReportArguments;
use crate::stdout;

/// Writes the report of a run again, or prints its tables.
pub(crate) fn write(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    if arguments.text {
        let (_, points) = RunReader::open(&arguments.run)?.into_parts();
        let tables = report::terminal::tables(&points, Unit::GbPerS)?;
        stdout::print(&tables)?;
        return Ok(ExitCode::SUCCESS);
    }
    let default = || arguments.run.join("report.html");
    let output = arguments.output.clone().unwrap_or_else(default);
    write_html(&arguments.run, &output)?;
    stdout::print(&format!("{}\n", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the HTML file such that it is whole or not there.
pub(crate) fn write_html(run: &Path, output: &Path) -> anyhow::Result<()> {
    let (record, points) = RunReader::open(run)?.into_parts();
    let samples = |path: &str| read_raw(&run.join(path)).map_err(|error| error.to_string());
    let part = output.with_extension("html.part");
    let say = || format!("cannot write {}", output.display());
    let mut file = BufWriter::new(File::create(&part).with_context(say)?);
    report::html::write(&record, &points, &samples, &mut file).with_context(say)?;
    file.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .with_context(say)?;
    std::fs::rename(&part, output).with_context(say)
}
