//! House rules for every text file.

/// The longest line, in characters; rustfmt keeps most code shorter. Rows of tables and terminal
/// output in documents are exempt.
const LINE_CHARS: usize = 130;

/// The files whose names do not say what they hold.
const WITHOUT_EXTENSION: [&str; 4] =
    [".ci/run", "LICENSE-APACHE", "LICENSE-MIT", "contrib/systemd/rdmascope-textfile"];

/// Reports a file without an extension: such files are what a program has left behind.
pub(super) fn name(path: &str, wrong: &mut Vec<String>) {
    let name = path.rsplit('/').next().unwrap_or(path);
    if !name.contains('.') && !WITHOUT_EXTENSION.contains(&path) {
        wrong.push(format!("{path}: has no extension: remove it, or add it to xtask/src/tidy/text.rs"));
    }
}

/// Checks the rules for any text file.
pub(super) fn lines(path: &str, text: &str, wrong: &mut Vec<String>) {
    let mut is_shown = false;
    for (n, line) in (1..).zip(text.lines()) {
        if path.ends_with(".md") && line.starts_with("```") {
            is_shown = line == "```console";
        }
        let generated = path.ends_with(".lock") || path.ends_with(".json") || path.ends_with(".csv");
        if line.chars().count() > LINE_CHARS
            && !generated
            && !is_shown
            && !path.contains("/golden/")
            && !line.contains("http")
            && !is_row(line)
        {
            wrong.push(format!("{path}:{n}: longer than {LINE_CHARS} characters"));
        }
        // An empty context line of a patch is a space.
        if line.ends_with([' ', '\t']) && !path.contains("/golden/") && !path.ends_with(".patch") {
            wrong.push(format!("{path}:{n}: ends with white space"));
        }
        if line.contains('\t') && !path.ends_with("Makefile") && !path.contains("/golden/") {
            wrong.push(format!("{path}:{n}: has a tab"));
        }
    }
}

/// Whether a line is the row of a table, in a page, a comment or a string.
fn is_row(line: &str) -> bool {
    line.trim_start_matches(['/', '!', ' ']).starts_with("| ") || line.matches(" | ").count() >= 3
}
