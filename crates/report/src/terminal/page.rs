//! The page that tables are printed on, and how lines that are longer than its lines are broken.

/// Breaks the lines of a text at spaces, so that none has more than `line` characters, if its words
/// are that short. The rest of a line is indented by two more than its start, and stays a comment
/// if the line begins with `#`. Rules are shortened. Of a row of a table, the words behind its
/// numbers get lines of their own.
pub fn folded(text: &str, line: usize) -> String {
    text.split_inclusive('\n').map(|whole| broken(whole, line)).collect()
}

fn broken(whole: &str, line: usize) -> String {
    let (text, end) = whole.strip_suffix('\n').map_or((whole, ""), |text| (text, "\n"));
    if text.chars().count() <= line {
        return whole.to_owned();
    }
    if is_row(text) {
        let Some((row, words)) = words(text) else { return whole.to_owned() };
        return format!("{row}\n{}", broken(&format!("{WORDS_INDENT}{words}{end}"), line));
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

/// Splits the words behind the numbers of a row from it: `64  0.12  repetition 2`.
fn words(row: &str) -> Option<(&str, &str)> {
    let (numbers, words) = row.trim_end().rsplit_once("  ")?;
    let are_words = words.contains(' ') && words.starts_with(|c: char| c.is_alphabetic());
    are_words.then(|| (numbers.trim_end(), words))
}

/// What is in front of the words of a row on their own line.
const WORDS_INDENT: &str = "      ";

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
    fn words_behind_a_row_have_lines_of_their_own() {
        let row = "  64   1000   0.12  !  repetition 2, launch 3\n";
        assert_eq!(folded(row, 60), row);
        assert_eq!(folded(row, 30), "  64   1000   0.12  !\n      repetition 2, launch 3\n");
        let metrics = "  lammps  2  0.250  comm_time 0.0095 s, loop_time 0.10 s\n";
        let folded_metrics = "  lammps  2  0.250\n      comm_time 0.0095 s,\n        loop_time 0.10 s\n";
        assert_eq!(folded(metrics, 26), folded_metrics);
    }

    #[test]
    fn a_word_that_is_longer_than_a_line_stays_whole() {
        assert_eq!(folded("a/long/path/of/a/file and more\n", 8), "a/long/path/of/a/file\n  and\n  more\n");
        assert_eq!(folded("unbroken-word", 5), "unbroken-word");
        assert_eq!(folded("  é é é é é é", 6), "  é é\n    é\n    é\n    é\n    é");
    }
}
