//! The page that tables are printed on, and how lines that are longer than its lines are broken.

/// Breaks the lines of a text at spaces, so that none has more than `line` characters, if its words
/// are that short. The rest of a line is indented by two more than its start, and stays a comment
/// if the line begins with `#`. Rules are shortened.
pub fn folded(text: &str, line: usize) -> String {
    text.split_inclusive('\n').map(|whole| broken(whole, line)).collect()
}

fn broken(whole: &str, line: usize) -> String {
    let (text, end) = whole.strip_suffix('\n').map_or((whole, ""), |text| (text, "\n"));
    if text.chars().count() <= line || is_row(text) {
        return whole.to_owned();
    }
    if text.chars().all(|c| c == '-') {
        return "-".repeat(line) + end;
    }
    // A comment begins with `# `; a name such as `#bytes` does not.
    let spaces = text.len() - text.trim_start().len();
    let start = if text[spaces..].starts_with("# ") { spaces + 2 } else { spaces };
    let indent = format!("{}  ", &text[..start]);
    let mut out = String::new();
    let mut rest = text.to_owned();
    while let Some(at) = last_space(&rest, line, indent.len()) {
        out += rest[..at].trim_end();
        out.push('\n');
        rest = format!("{indent}{}", rest[at..].trim_start());
    }
    out + &rest + end
}

/// Whether a line is a row of a table, which marks behind it can make too long: its words are
/// further apart than those of prose.
fn is_row(text: &str) -> bool {
    text.trim_start().matches("  ").count() > 1
}

/// The place of the last space at which a line can be broken: after its indent and the first word,
/// within `line` characters; if there is none, the first one behind them.
fn last_space(text: &str, line: usize, indent: usize) -> Option<usize> {
    let limit = text.char_indices().nth(line).map(|(at, _)| at)?;
    let first = text.len() - text.trim_start_matches([' ', '#']).len();
    let first = first.max(indent.min(limit));
    let is_inside = |at: &usize| *at > first && !text[..*at].trim_matches([' ', '#']).is_empty();
    let spaces = || text.match_indices(' ').map(|(at, _)| at).filter(is_inside);
    spaces().take_while(|at| *at <= limit).last().or_else(|| spaces().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_stay_what_they_are() {
        let text = " of link: a share of the limit\n----------\nshort\n# warning: this is a comment\n";
        let expected = " of link: a\n   share of\n   the limit\n----------\nshort\n# warning:\n#   this is\n#   a\n#   comment\n";
        assert_eq!(folded(text, 12), expected);
        assert_eq!(folded("--------------\n", 12), "------------\n");
    }

    #[test]
    fn rows_of_tables_stay_whole() {
        let row = "  64   1000   0.12  !  cut\n";
        assert_eq!(folded(row, 12), row);
    }

    #[test]
    fn a_word_that_is_longer_than_a_line_stays_whole() {
        assert_eq!(folded("a/long/path/of/a/file and more\n", 8), "a/long/path/of/a/file\n  and\n  more\n");
        assert_eq!(folded("unbroken-word", 5), "unbroken-word");
        assert_eq!(folded("  é é é é é é", 6), "  é é\n    é\n    é\n    é\n    é");
    }
}
