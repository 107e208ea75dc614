//! A patch, and the steps that try it.

use anyhow::{Context, Result, ensure};

/// The start of the first line of each file in a patch.
const FILE: &str = "diff --git ";

#[derive(Debug)]
pub(super) struct Patch {
    pub(super) steps: Vec<Step>,
    /// The files that the patch touches.
    pub(super) files: Vec<String>,
}

/// A command, and texts that its output must contain.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) command: String,
    pub(super) expected: Vec<String>,
}

impl Patch {
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut steps: Vec<Step> = Vec::new();
        for line in heading(text).lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned(), expected: Vec::new() });
            } else if let Some(part) = line.strip_prefix("> ") {
                let step =
                    steps.last_mut().context("its heading has `> TEXT` above the first `$ COMMAND`")?;
                step.expected.push(part.to_owned());
            }
        }
        ensure!(
            steps.iter().any(|step| !step.expected.is_empty()),
            "its heading tries nothing: it needs `$ rdmascope ...` and below it `> TEXT`"
        );
        let touched = text.lines().filter_map(|line| line.strip_prefix(FILE));
        let name = |both: &str| both.rsplit(" b/").next().unwrap_or(both).to_owned();
        Ok(Self { steps, files: touched.map(name).collect() })
    }
}

/// The text above the first file of a patch.
pub(super) fn heading(text: &str) -> &str {
    let end = if text.starts_with(FILE) { Some(0) } else { text.find(&format!("\n{FILE}")).map(|at| at + 1) };
    &text[..end.unwrap_or(text.len())]
}
