//! House rules for every text file.

/// Longest line of anything but code, which rustfmt keeps shorter; rows of tables are exempt, and
/// what the documents show of a terminal.
const LINE_CHARS: usize = 130;

/// Rules for any text.
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
            && line.matches(" | ").count() < 3
        {
            wrong.push(format!("{path}:{n}: longer than {LINE_CHARS} characters"));
        }
        // An empty line of a patch is a space.
        if line.ends_with([' ', '\t']) && !path.contains("/golden/") && !path.ends_with(".patch") {
            wrong.push(format!("{path}:{n}: ends with white space"));
        }
        if line.contains('\t') && !path.ends_with("Makefile") && !path.contains("/golden/") {
            wrong.push(format!("{path}:{n}: has a tab"));
        }
    }
}
