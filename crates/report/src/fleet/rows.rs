//! The rows of the table of quantiles over pairs.

use verdict::fleet::Judged;

use super::quantiles::{SHARES, quantiles};
use super::question::Question;
use super::split::Split;
use super::tails::Tails;
use super::value::Row;

/// A row of the table.
pub(crate) struct OverPairs {
    /// What its values are.
    pub(crate) quantity: String,
    /// Which pairs they are of; absent for all pairs.
    pub(crate) part: Option<String>,
    /// How its values are shown.
    pub(crate) row: &'static Row,
    /// The values at [`SHARES`] of the pairs, in ns or bytes/s.
    pub(crate) values: [f64; SHARES.len()],
    /// The number of pairs, or of their directions.
    pub(crate) count: usize,
}

impl OverPairs {
    /// What the values are, and of which pairs.
    pub(crate) fn name(&self) -> String {
        let part = self.part.as_ref().map(|part| format!(", {part}"));
        self.quantity.clone() + &part.unwrap_or_default()
    }
}

/// Returns the rows of a quantity: all pairs, those within and across groups where there are
/// groups, and the 99 % latency, which is shown and not judged.
pub(crate) fn rows(question: &Question, judged: &Judged, tails: &Tails) -> Vec<OverPairs> {
    let Some(row) = Row::named(&judged.name) else { return Vec::new() };
    let parts = Split::of(question).and_then(|split| split.parts(judged));
    let all = (None, quantiles(row, &judged.cells), judged.cells.len());
    let parts = parts.into_iter().flatten();
    let parts = parts.map(|(part, cells)| (Some(part), quantiles(row, &cells), cells.len()));
    let of = |quantity: &str, part, values: Option<_>, count| {
        Some(OverPairs { quantity: quantity.to_owned(), part, row, values: values?, count })
    };
    let own = std::iter::once(all).chain(parts);
    let own = own.filter_map(|(part, values, count)| of(&judged.name, part, values, count));
    let tails = if row.is_rate { None } else { of(TAILS, None, tails.quantiles(), judged.cells.len()) };
    own.chain(tails).collect()
}

/// The name of the 99 % latency.
const TAILS: &str = "latency, 99 %";
