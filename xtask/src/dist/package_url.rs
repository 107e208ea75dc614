//! Package URLs: names of packages that are the same in every list.
//!
//! Source: Package-URL Specification (ECMA-427), clauses "Character encoding" and "Rules for each
//! PURL component".

/// The package URL of a version. `kind` is the type, with the namespace if the type has one.
pub(super) fn package_url(kind: &str, name: &str, version: &str) -> String {
    format!("pkg:{kind}/{}@{}", encoded(name), encoded(version))
}

/// A component of a package URL: only letters, digits, `.-_~` and the colon stay as they are.
pub(super) fn encoded(text: &str) -> String {
    let mut url = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b".-_~:".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url += &format!("%{byte:02X}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two are examples of the specification (`deb-definition.json`).
    #[test]
    fn versions_are_encoded() {
        let attr = |version| package_url("deb/debian", "attr", version);
        assert_eq!(attr("1:2.4.47-2"), "pkg:deb/debian/attr@1:2.4.47-2");
        assert_eq!(attr("1:2.4.47-2+b1"), "pkg:deb/debian/attr@1:2.4.47-2%2Bb1");
        assert_eq!(attr("1.0~rc1-1~deb12u1"), "pkg:deb/debian/attr@1.0~rc1-1~deb12u1");
        assert_eq!(attr("1 @/?=&#%ä"), "pkg:deb/debian/attr@1%20%40%2F%3F%3D%26%23%25%C3%A4");
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!(package_url("deb/debian", "libstdc++6", "12"), "pkg:deb/debian/libstdc%2B%2B6@12");
        assert_eq!(package_url("cargo", "proc-macro2", "1.0.107"), "pkg:cargo/proc-macro2@1.0.107");
    }
}
