//! The outcomes of environments' techniques, below the tables.

use crate::conditions::Conditions;
use measure::text::plain;

/// One line for each technique; empty where there is none.
pub(super) fn text(conditions: &Conditions) -> String {
    let mut out = String::new();
    let mut shown = None;
    for row in conditions.rows() {
        if shown != Some(&row.environment) {
            shown = Some(&row.environment);
            out += &format!("\n environment {}:\n", plain(&row.environment));
        }
        let technique = row.condition.technique;
        let asked = plain(&row.condition.asked);
        out += &format!("   {technique} {asked}: {} ({})\n", plain(&row.in_words()), row.on_ranks());
    }
    out
}
