//! The output of a comparison or a trend.

use std::path::PathBuf;

use ::report::compare::{Sheet, formats};
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::report::output::Output;
use crate::stdout;

/// How the verdict is printed.
#[derive(Args, Debug)]
pub(crate) struct OutputArguments {
    /// Format of the output.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// File for a page with the numbers and their drawings.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A table of text.
    Table,
    /// Tables of Markdown, for pull requests.
    Markdown,
    /// All numbers, as JSON.
    Json,
    /// A test for each point, for CI.
    Junit,
}

impl OutputArguments {
    /// Prints the verdict, and writes the page.
    pub(super) fn write(&self, sheet: &Sheet, whole: &impl Serialize) -> anyhow::Result<()> {
        if let Some(path) = &self.html {
            Output::named(path)?.write(|file| Ok(sheet.write_page(file)?))?;
        }
        match self.format {
            Format::Table => stdout::print_folded(&formats::table(sheet))?,
            Format::Markdown => stdout::print(&formats::markdown(sheet))?,
            Format::Junit => stdout::print(&formats::junit(sheet))?,
            Format::Json => {
                let text = serde_json::to_string_pretty(whole).context("cannot encode the comparison")?;
                stdout::print(&(text + "\n"))?;
            }
        }
        Ok(())
    }
}
