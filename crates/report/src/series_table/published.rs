//! Published numbers next to the measured ones.

use measure::figure::{Figure, Reference, ReferenceTable};
use serde_json::Value;

use super::cells::{Published, Series};
use crate::unit::Scale;

/// The x values of the published rows.
pub(super) fn xs<'a>(figure: &'a Figure, x: &'a str) -> impl Iterator<Item = Value> + 'a {
    let table = figure.reference.as_ref().and_then(|reference| table(reference, x));
    table.into_iter().flat_map(|table| &table.rows).filter_map(|row| row.first()).map(|c| parse(c))
}

/// The published columns, with a cell for each x.
pub(super) fn columns(figure: &Figure, x: &str, xs: &[Value], series: &[Series]) -> Vec<Published> {
    let Some(reference) = &figure.reference else { return Vec::new() };
    let Some(table) = table(reference, x) else { return Vec::new() };
    let columns = table.columns.iter().enumerate().skip(1);
    let published = columns.map(|(index, name)| {
        let scale = Scale::of_column(reference.unit, name);
        let words = words(name);
        let cell = |at: &Value| {
            let row = table.rows.iter().find(|row| row.first().is_some_and(|c| parse(c) == *at))?;
            row.get(index).filter(|cell| !cell.is_empty()).cloned()
        };
        Published {
            label: label(name),
            origin: reference.origin(),
            scale,
            cells: xs.iter().map(cell).collect(),
            twin: twin(&words, series),
        }
    });
    published.collect()
}

/// The table, if its first column is the axis of the figure.
fn table<'a>(reference: &'a Reference, x: &str) -> Option<&'a ReferenceTable> {
    let table = reference.table.as_ref()?;
    (table.columns.first()? == x).then_some(table)
}

/// The value of an axis in a cell: a number, `true` or `false`, otherwise a word.
fn parse(cell: &str) -> Value {
    let cell = cell.trim();
    let number = cell.parse::<u64>().map(Value::from);
    number.or_else(|_| cell.parse::<bool>().map(Value::from)).unwrap_or_else(|_| Value::from(cell))
}

/// The printed name of a column: `rc_fdr_us` is `RC FDR`.
pub(crate) fn label(column: &str) -> String {
    let words = words(column);
    if words.is_empty() { column.to_owned() } else { words.join(" ").to_uppercase() }
}

/// The words of a column's name without its unit: `rc`, `fdr` for `rc_fdr_us`.
fn words(column: &str) -> Vec<String> {
    let units = ["ns", "us", "gbps", "mbps", "percent"];
    column.split('_').map(str::to_lowercase).filter(|word| !units.contains(&word.as_str())).collect()
}

/// The series that has all of the words among its values. All words of a value such as
/// `event_repoll` count.
fn twin(words: &[String], series: &[Series]) -> Option<usize> {
    let fits = |s: &Series| {
        let values = s.words.iter().map(|value| value.split('_').map(str::to_owned).collect::<Vec<_>>());
        let named: Vec<String> =
            values.filter(|value| value.iter().all(|word| words.contains(word))).flatten().collect();
        !words.is_empty() && words.iter().all(|word| named.contains(word))
    };
    series.iter().position(fits)
}
