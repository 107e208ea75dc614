//! `rdmascope plans`: the plans that come with the program.

use std::io::Write;
use std::process::ExitCode;

use bench::hint;
use bench::plan::{Options, bundled, resolve};

use crate::failure::Usage;
use crate::stdout;

/// Prints the reference of all keys.
pub(crate) fn reference() -> anyhow::Result<ExitCode> {
    stdout::print(&bench::reference::plans())?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the plans, or prints one of them.
pub(crate) fn list(name: Option<&str>) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
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
        out.write_all(plan.text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    for found in bundled() {
        let plan = found.plan()?;
        let points =
            |quick| resolve(&plan, &Options { quick, set: Vec::new() }).map(|resolved| resolved.points.len());
        writeln!(
            out,
            "{:<20} {} ({} points; quick: {})",
            found.name,
            plan.title,
            points(false)?,
            points(true)?
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
