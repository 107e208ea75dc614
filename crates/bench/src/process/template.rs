//! The command that starts an agent: the template `--via 'ssh {host}'`, then the agent's program.

use crate::Error;

/// Returns the command for an agent on `host`: the words of the template, then `program`.
pub(super) fn command(via: Option<&str>, host: &str, program: &[String]) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    if let Some(template) = via {
        let bad =
            |reason: &str| Error::BadTemplate { template: template.to_owned(), reason: reason.to_owned() };
        let names_host = template.contains("{host}");
        if names_host && host.is_empty() {
            return Err(bad("it contains {host}: name the hosts with --hosts A,B"));
        }
        if host.starts_with('-') || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            // `ssh -oProxyCommand=...` would run a command of the "host".
            return Err(bad(&format!("{host:?} is not the name of a host")));
        }
        words = self::words(template)?;
        words.iter_mut().for_each(|word| *word = word.replace("{host}", host));
    }
    words.extend(program.iter().cloned());
    Ok(words)
}

/// Returns the words of a template without a host.
pub(super) fn words(template: &str) -> Result<Vec<String>, Error> {
    let bad = |reason: &str| Error::BadTemplate { template: template.to_owned(), reason: reason.to_owned() };
    let words = split(template).map_err(bad)?;
    if words.is_empty() { Err(bad("it is empty")) } else { Ok(words) }
}

/// Splits a text into words as a shell does, with quotes and backslashes but without expansions.
///
/// # Errors
///
/// Why it has no words: a quote is open, or it ends in a backslash.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') | (Some('"'), '\\') => {
                let next = chars.next().ok_or("it ends in a backslash")?;
                word.get_or_insert_default().push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("it has an unclosed quote");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (text, words) in [
            ("ssh {host}", &["ssh", "{host}"][..]),
            ("  a   'b c'\t\"d e\" ", &["a", "b c", "d e"]),
            ("a'b'\"c\"d", &["abcd"]),
            ("'' \"\"", &["", ""]),
            (r#"a\ b "c\"d" 'e\f'"#, &["a b", "c\"d", r"e\f"]),
            ("$HOME *", &["$HOME", "*"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert_eq!(split("ssh 'a"), Err("it has an unclosed quote"));
        assert_eq!(split("ssh \\"), Err("it ends in a backslash"));
    }

    #[test]
    fn the_host_is_put_in_where_it_is_asked_for_and_cannot_be_an_option() {
        let program = ["rdmascope".to_owned(), "agent".to_owned()];
        let words = |via, host| command(via, host, &program).map_err(|err| err.to_string());
        assert_eq!(words(None, "").unwrap(), ["rdmascope", "agent"]);
        let via = Some("kubectl exec -i {host} --");
        assert_eq!(
            words(via, "pod-1").unwrap(),
            ["kubectl", "exec", "-i", "pod-1", "--", "rdmascope", "agent"]
        );
        assert_eq!(
            words(Some("ssh {host}"), "-oProxyCommand=x").unwrap_err(),
            "the command template \"ssh {host}\" cannot be used: \"-oProxyCommand=x\" is not the name of a host"
        );
        assert_eq!(
            words(Some("ssh {host}"), "").unwrap_err(),
            "the command template \"ssh {host}\" cannot be used: it contains {host}: name the hosts with --hosts A,B"
        );
        assert_eq!(words(Some("nice -n 5"), "").unwrap(), ["nice", "-n", "5", "rdmascope", "agent"]);
        assert_eq!(
            words(Some(" "), "a").unwrap_err(),
            "the command template \" \" cannot be used: it is empty"
        );
    }
}
