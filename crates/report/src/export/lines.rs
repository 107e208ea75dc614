//! A table as JSON: an object for each row, one on each line. Every object has all columns.

use std::io::{self, Write};

use serde::Serializer;

use super::exported::Cell;
use super::rows::Table;
use crate::Error;

pub(super) fn write(table: &Table<'_>, out: &mut dyn Write) -> Result<(), Error> {
    table.rows().try_for_each(|cells| row(&cells, out))
}

/// Writes a row.
pub(super) fn row(cells: &[Cell<'_>], out: &mut dyn Write) -> Result<(), Error> {
    // The columns keep their order, which a map of serde_json would not.
    let mut json = serde_json::Serializer::new(&mut *out);
    let written = json.collect_map(cells.iter().map(|(name, cell)| (name, cell)));
    // A closed pipe stays an error of the output.
    written.map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
