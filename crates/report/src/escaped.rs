//! Texts of a record in the syntax of a format: they come from anywhere.

/// A text in XML, as content or as the value of an attribute. Characters that XML 1.0 cannot hold
/// become spaces.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The value of a label of a metric.
pub(crate) fn label(text: &str) -> String {
    help(text).replace('"', "\\\"")
}

/// The description of a metric.
pub(crate) fn help(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// A cell of a table in Markdown, without its syntax.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
