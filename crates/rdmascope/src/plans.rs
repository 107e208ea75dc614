//! `rdmascope plans`: the plans that come with the program.

use std::process::ExitCode;

use bench::hint;
use bench::plan::{Options, bundled, resolve};
use report::terminal::folded;

use crate::failure::Usage;
use crate::stdout;

/// Prints the reference of all keys.
pub(crate) fn reference() -> anyhow::Result<ExitCode> {
    stdout::print(&bench::reference::plans())?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the plans, or prints one of them.
pub(crate) fn list(name: Option<&str>) -> anyhow::Result<ExitCode> {
    if let Some(name) = name {
        let Some(plan) = bundled().iter().find(|plan| plan.name == name) else {
            let known: Vec<_> = bundled().iter().map(|plan| plan.name).collect();
            return Err(Usage(format!(
                "there is no plan {name:?}; these come with the program: {}{}",
                known.join(", "),
                hint(name, known.iter().copied())
            ))
            .into());
        };
        stdout::print(plan.text)?;
        return Ok(ExitCode::SUCCESS);
    }
    stdout::print(&table(stdout::line().unwrap_or(LINE))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the table of the plans, with lines of at most `line` characters.
fn table(line: usize) -> anyhow::Result<String> {
    let mut out = row("plan", ["points".to_owned(), "--quick".to_owned()], "title", line);
    for found in bundled() {
        let plan = found.plan()?;
        let points = |quick| {
            let resolved = resolve(&plan, &Options { quick, set: Vec::new() })?;
            anyhow::Ok(resolved.points.len().to_string())
        };
        out += &row(found.name, [points(false)?, points(true)?], &plan.title, line);
    }
    Ok(out)
}

/// Returns a row of the table. The title has as many lines as it takes.
fn row(name: &str, [points, quick]: [String; 2], title: &str, line: usize) -> String {
    let start = format!("{name:<20} {points:>6} {quick:>7}  ");
    let width = start.chars().count();
    let title = folded(title, line - width);
    format!("{start}{}\n", title.replace('\n', &format!("\n{:width$}", "")))
}

/// Characters of a line in a file or a pipe.
const LINE: usize = 80;
