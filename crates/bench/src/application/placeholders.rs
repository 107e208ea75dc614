//! Placeholders in the texts of a plan: `{ranks}` stands for a value, `{{` for a brace.

/// What is wrong with a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// A placeholder has this unknown name.
    Unknown(String),
    /// An opening or closing brace has no counterpart.
    Unpaired,
}

/// Replaces placeholders by their values.
///
/// # Errors
/// [`Fault`].
pub(crate) fn fill(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<String, Fault> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(brace) {
            filled.push_str(brace);
            rest = behind;
            continue;
        }
        let (name, behind) = rest.split_once('}').filter(|_| brace == "{").ok_or(Fault::Unpaired)?;
        filled.push_str(&value(name).ok_or_else(|| Fault::Unknown(name.to_owned()))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_braces_can_be_had() {
        let value = |name: &str| (name == "ranks").then(|| "4".to_owned());
        let filled = |text: &str| fill(text, &value);
        assert_eq!(filled("-np {ranks} x{ranks}").unwrap(), "-np 4 x4");
        assert_eq!(filled("awk '{{print $1}}'").unwrap(), "awk '{print $1}'");
        assert_eq!(filled("").unwrap(), "");
        assert_eq!(filled("{rank}"), Err(Fault::Unknown("rank".to_owned())));
        assert_eq!(filled("{ranks"), Err(Fault::Unpaired));
        assert_eq!(filled("ranks}"), Err(Fault::Unpaired));
    }
}
