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
    format!(
        "<h3>Environments</h3>\n<p class=\"hint\">What points asked of the machine, and what became of it.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Environments\">\n<table class=\"facts-table\">\n\
         <thead><tr><th scope=\"col\">environment</th><th scope=\"col\">technique</th><th scope=\"col\">asked</th>\
         <th scope=\"col\">outcome</th><th scope=\"col\">before</th><th scope=\"col\">why</th>\
         <th scope=\"col\">on</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
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
