//! The known name that is nearest to a misspelt one.

/// Returns `: did you mean "iterations"?`, or nothing if no name is near. The
/// first of several is suggested.
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let wrong = wrong.to_lowercase();
    let near = known
        .into_iter()
        .map(|name| (likeness(&wrong, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    near.map_or_else(String::new, |(_, name)| format!(": did you mean {name:?}?"))
}

/// The Jaro-Winkler similarity; but 1 for two swapped letters, which it does not see in short names
/// (`FRD`).
fn likeness(wrong: &str, name: &str) -> f64 {
    let swapped =
        strsim::damerau_levenshtein(wrong, name) == 1 && wrong.len() == name.len() && wrong.len() > 2;
    if swapped { 1.0 } else { strsim::jaro_winkler(wrong, name) }
}

/// The least similarity (Jaro-Winkler, 0 to 1) of a suggestion. A less similar one confuses more
/// than it helps. clap uses 0.7.
const LIKENESS_MIN: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        assert_eq!(hint("iteratons", ["duration", "iterations"]), ": did you mean \"iterations\"?");
        assert_eq!(hint("rc", ["RC", "UD"]), ": did you mean \"RC\"?");
        assert_eq!(hint("zzz", ["duration", "iterations"]), "");
        assert_eq!(hint("mlx5_O", ["mlx5_0", "mlx5_1"]), ": did you mean \"mlx5_0\"?");
    }
}
