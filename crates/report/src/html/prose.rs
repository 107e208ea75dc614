//! Sentences of a record, whose commands and names stand between grave accents as in the terminal.

use maud::{Markup, html};

/// A sentence with its commands and names as code.
pub(super) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // An accent without a partner is one of the text.
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The text with a capital first letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_code_and_nothing_of_the_text_is_html() {
        let html = |text: &str| prose(text).into_string();
        assert_eq!(html("load it (`modprobe ib_ipoib`)"), "load it (<code>modprobe ib_ipoib</code>)");
        assert_eq!(html("`a` and `<b>`"), "<code>a</code> and <code>&lt;b&gt;</code>");
        assert_eq!(html("an accent ` alone"), "an accent ` alone");
        assert_eq!(html(""), "");
    }
}
