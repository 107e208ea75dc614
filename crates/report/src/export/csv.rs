//! A table as comma-separated values.

use std::io::Write;

use super::exported::Cell;
use super::rows::{Table, text};
use crate::Error;
use crate::figures::csv::quoted;

pub(super) fn write(table: &Table<'_>, out: &mut dyn Write) -> Result<(), Error> {
    head(&table.columns(), out)?;
    table.rows().try_for_each(|cells| row(&cells, out))
}

/// Writes the names of the columns.
pub(super) fn head(names: &[&str], out: &mut dyn Write) -> Result<(), Error> {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    Ok(writeln!(out, "{}", names.join(","))?)
}

/// Writes a row.
pub(super) fn row(cells: &[Cell<'_>], out: &mut dyn Write) -> Result<(), Error> {
    let cells: Vec<String> = cells.iter().map(|(_, cell)| quoted(&text(cell))).collect();
    Ok(writeln!(out, "{}", cells.join(","))?)
}
