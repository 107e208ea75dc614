//! The outcomes of environments' techniques, as a table of the section on the system.

use maud::{Markup, html};
use measure::record::Point;

use crate::conditions::{Conditions, Row};

/// The table with its heading; empty where no technique was asked for.
pub(super) fn render(points: &[Point]) -> Markup {
    let mut conditions = Conditions::default();
    points.iter().for_each(|point| conditions.see(point));
    if conditions.rows().is_empty() {
        return html! {};
    }
    let names = ["environment", "technique", "asked", "outcome", "before", "why", "on"];
    let head = html! { thead { tr { @for name in names { th scope="col" { (name) } } } } };
    let rows = html! { tbody { @for found in conditions.rows() { (row(found)) "\n" } } };
    html! {
        h3 { "Environments" }
        p class="hint" { "The techniques that points asked for, and their outcomes." }
        (super::table::frame("Environments", "facts-table", &head, &rows))
    }
}

fn row(row: &Row) -> Markup {
    let found = &row.condition;
    html! {
        tr {
            td { (row.environment) }
            th scope="row" { (found.technique) }
            td { (found.asked) }
            td { (found.outcome) }
            td { (found.before.as_deref().unwrap_or("–")) }
            td { (found.reason.as_deref().unwrap_or("–")) }
            td { (row.on_ranks()) }
        }
    }
}
