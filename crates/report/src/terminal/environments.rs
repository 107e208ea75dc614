//! What became of what environments ask of the machine, below the tables.

use crate::conditions::Conditions;
use measure::text::plain;

/// One line for each technique; nothing where nothing was asked.
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
