//! What became of what environments ask of the machine, as a table of the system's section.

use measure::record::Point;

use super::escape::escape;
use crate::conditions::{Conditions, Row};

/// The table with its heading; nothing where nothing was asked.
pub(super) fn render(points: &[Point]) -> String {
    let mut conditions = Conditions::default();
    points.iter().for_each(|point| conditions.see(point));
    if conditions.rows().is_empty() {
        return String::new();
    }
    let rows: String = conditions.rows().iter().map(row).collect();
    let names = ["environment", "technique", "asked", "outcome", "before", "why", "on"];
    let heads = names.map(|name| format!("<th scope=\"col\">{name}</th>")).concat();
    let head = format!("<thead><tr>{heads}</tr></thead>\n");
    let table =
        super::table::frame("Environments", "facts-table", &head, &format!("<tbody>\n{rows}</tbody>\n"));
    format!(
        "<h3>Environments</h3>\n<p class=\"hint\">What points asked of the machine, and what became of it.</p>\n{table}"
    )
}

fn row(row: &Row) -> String {
    let found = &row.condition;
    let or_dash = |text: &Option<String>| text.as_deref().map_or("–".into(), escape);
    format!(
        "<tr><td>{}</td><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape(&row.environment),
        found.technique,
        escape(&found.asked),
        found.outcome,
        or_dash(&found.before),
        or_dash(&found.reason),
        row.on_ranks(),
    )
}
