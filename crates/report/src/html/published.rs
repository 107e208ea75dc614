//! A table of published numbers alone, where nothing is measured.

use maud::{Markup, html};
use measure::figure::{Figure, Reference, ReferenceTable};

use super::table;
use crate::series_table::label;

/// The table, with an empty measured cell in each row and the reason below.
pub(super) fn render(figure: &Figure) -> Markup {
    let reference = figure.reference.as_ref();
    let Some(ReferenceTable { columns, rows }) = reference.and_then(|r| r.table.as_ref()) else {
        return html! {};
    };
    let unit = reference.and_then(|r| r.unit);
    let reason = figure.reason.as_deref().unwrap_or_default().trim_end_matches('.');
    let head = html! {
        thead {
            tr {
                th scope="col" rowspan="2" class="x" { (columns.first().map_or("", String::as_str)) }
                th scope="colgroup" colspan=(columns.len().saturating_sub(1)) class="group published" {
                    (reference.map_or("", Reference::origin)) @if let Some(unit) = unit { " [" (unit.symbol()) "]" }
                }
                th scope="col" rowspan="2" class="group measured" { "measured" }
            }
            tr {
                @for name in columns.iter().skip(1) {
                    th scope="col" class="published" { (label(name)) }
                }
            }
        }
    };
    let rows = html! {
        tbody {
            @for row in rows {
                tr {
                    @for (index, cell) in row.iter().enumerate() {
                        @if index == 0 { th scope="row" { (cell) } }
                        @else { td class="published" { (cell) } }
                    }
                    td class="not-measured" { "not measured" }
                }
                "\n"
            }
        }
    };
    html! {
        (table::frame(&figure.title, "numbers", &head, &rows))
        (table::list([format!("Not measured: {reason}.")]))
    }
}
