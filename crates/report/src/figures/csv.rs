//! The numbers of a chart as comma-separated values (RFC 4180).

use crate::html::chart::Chart;
use crate::value;

/// A line for each mark: its series, whether it is measured, published or a link limit, its place,
/// its number, the ends of its error bar, and the number printed at it, if a chart has such.
pub(super) fn numbers(chart: &Chart) -> String {
    let head = ["series", "kind", &chart.x_title, &chart.y_title, "low", "high"].into_iter();
    let head = head.chain(chart.marks_title.as_deref()).map(quoted);
    let mut out = head.collect::<Vec<_>>().join(",") + "\n";
    for series in &chart.series {
        for (index, (x, y)) in series.x.iter().zip(&series.y).enumerate() {
            let end = |ends: &[f64]| ends.get(index).map(f64::to_string).unwrap_or_default();
            let x = x.as_f64().map_or_else(|| value::text(x), |x| x.to_string());
            let mark = series.marks.get(index).map(|mark| mark.map(|mark| mark.to_string()));
            let cells = [
                quoted(&series.name),
                series.kind().to_owned(),
                quoted(&x),
                y.to_string(),
                end(&series.low),
                end(&series.high),
            ];
            let cells = cells.into_iter().chain(mark.map(Option::unwrap_or_default));
            out += &(cells.collect::<Vec<_>>().join(",") + "\n");
        }
    }
    out
}

/// A text as a cell. A spreadsheet does not take it for a formula.
pub(crate) fn quoted(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
