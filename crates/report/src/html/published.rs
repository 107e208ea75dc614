//! A table of published numbers alone, of what is not measured.

use measure::figure::{Figure, ReferenceTable};

use super::escape::escape;
use super::table;
use crate::series_table::label;

/// The table, each row with its measured cell, and below it why that is empty.
pub(super) fn render(figure: &Figure) -> String {
    let reference = figure.reference.as_ref();
    let Some(ReferenceTable { columns, rows }) = reference.and_then(|r| r.table.as_ref()) else {
        return String::new();
    };
    let unit = reference.and_then(|r| r.unit).map(|unit| format!(" [{}]", unit.symbol()));
    let cell = |(index, cell): (usize, &String)| match index {
        0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
        _ => format!("<td class=\"published\">{}</td>", escape(cell)),
    };
    let row = |row: &Vec<String>| {
        let cells: String = row.iter().enumerate().map(cell).collect();
        format!("<tr>{cells}<td class=\"not-measured\">not measured</td></tr>\n")
    };
    let head = |name: &String| format!("<th scope=\"col\" class=\"published\">{}</th>", escape(&label(name)));
    let names: String = columns.iter().skip(1).map(head).collect();
    let reason = figure.reason.as_deref().unwrap_or_default().trim_end_matches('.');
    let head = format!(
        "<thead>\n<tr><th scope=\"col\" rowspan=\"2\" class=\"x\">{first}</th>\
         <th scope=\"colgroup\" colspan=\"{count}\" class=\"group published\">published{unit}</th>\
         <th scope=\"col\" rowspan=\"2\" class=\"group measured\">measured</th></tr>\n<tr>{names}</tr>\n</thead>\n",
        first = escape(columns.first().map_or("", String::as_str)),
        count = columns.len().saturating_sub(1),
        unit = unit.unwrap_or_default(),
    );
    let rows: String = rows.iter().map(row).collect();
    let notes = table::list(&[format!("Not measured: {}.", escape(reason))]);
    table::frame(&figure.title, "numbers", &head, &format!("<tbody>\n{rows}</tbody>\n")) + &notes
}
