//! Text of a record made safe for HTML. Every text that a record holds is untrusted: it goes through [`escape`].

/// The text with all that HTML could take for markup replaced, in content and in quoted attributes alike.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_is_left_that_could_be_markup() {
        let escaped = escape(r#"</script><img src="x" onerror='a&b'>"#);
        assert_eq!(escaped, "&lt;/script&gt;&lt;img src=&quot;x&quot; onerror=&#39;a&amp;b&#39;&gt;");
    }
}
