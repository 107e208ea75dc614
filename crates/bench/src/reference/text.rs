//! Lines of a page.

/// A text in lines of at most 100 characters, a prefix before those behind the first.
pub(super) fn wrapped(text: &str, prefix: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() >= 100 {
            lines += &(line.trim_end().to_owned() + "\n");
            line = prefix.to_owned();
        }
        line += &format!("{word} ");
    }
    lines + line.trim_end() + "\n"
}
