//! Colours for a terminal: marks, failures, warnings and verdicts. A text without them is the same
//! text.

const YELLOW: &str = "\u{1b}[33m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Colours the lines of tables and of the texts around them.
pub fn coloured(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|whole| {
            let (line, end) = whole.strip_suffix('\n').map_or((whole, ""), |line| (line, "\n"));
            coloured_line(line) + end
        })
        .collect()
}

fn coloured_line(line: &str) -> String {
    if line.is_empty() {
        return String::new();
    }
    if line.chars().all(|c| c == '-') {
        return paint(DIM, line);
    }
    if line.starts_with("# warning:") || line.starts_with(" ! ") {
        return paint(YELLOW, line);
    }
    if line.starts_with('#') || line.starts_with(" not measured: ") || line.starts_with("     # ") {
        return paint(DIM, line);
    }
    if let Some((before, error)) = line.split_once(" failed: ") {
        return format!("{before} {}", paint(RED, &format!("failed: {error}")));
    }
    let verdict = VERDICTS.iter().find_map(|(word, colour)| {
        let (label, rest) = line.split_once(word)?;
        // A verdict stands at the start of a line, or behind the label of its case.
        (label.ends_with("    ") || label.ends_with("  "))
            .then(|| format!("{label}{}{rest}", paint(colour, word)))
    });
    if let Some(line) = verdict {
        return line;
    }
    // The marks of a row are its last words.
    let row = line.strip_suffix("  cut").unwrap_or(line).trim_end_matches(['!', '~', ' ']);
    match &line[row.len()..] {
        marks if marks.contains('!') => row.to_owned() + &paint(YELLOW, marks),
        _ => line.to_owned(),
    }
}

/// The verdicts of findings.
const VERDICTS: [(&str, &str); 7] = [
    ("reproduced", GREEN),
    ("not shown", RED),
    ("shown", GREEN),
    ("same direction", YELLOW),
    ("contradicted", RED),
    ("inconclusive", DIM),
    ("not judged", DIM),
];

fn paint(colour: &str, text: &str) -> String {
    format!("{colour}{text}{PLAIN}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes what [`paint`] adds.
    fn bare(text: &str) -> String {
        [YELLOW, RED, GREEN, DIM, PLAIN].iter().fold(text.to_owned(), |text, code| text.replace(code, ""))
    }

    #[test]
    fn colours_change_no_text() {
        let text = "# warning: x\n---\n  64  0.12  !  ~\n  64  0.12\n 8 failed: why\n    RC  reproduced; 1\n\n ! unstable:\n end";
        let out = coloured(text);
        assert_eq!(bare(&out), text);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], format!("{YELLOW}# warning: x{PLAIN}"));
        assert_eq!(lines[2], format!("  64  0.12{YELLOW}  !  ~{PLAIN}"));
        assert_eq!(lines[3], "  64  0.12");
        assert_eq!(lines[4], format!(" 8 {RED}failed: why{PLAIN}"));
        assert_eq!(lines[5], format!("    RC  {GREEN}reproduced{PLAIN}; 1"));
    }
}
