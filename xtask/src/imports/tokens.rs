//! Finds names and paths in tokens that are not parsed: the content of macro calls and attributes.

use proc_macro2::{TokenStream, TokenTree};

use super::module::Segments;

/// Words that stand before the name of what they define.
const DEFINING: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// Paths such as `crate::plan::check` and single names, in all groups.
pub(super) fn paths(stream: TokenStream) -> Vec<Segments> {
    let mut found = Vec::new();
    let mut path = Segments::new();
    let mut colons = 0;
    let mut dots = 0;
    let mut is_lifetime = false;
    for tree in stream {
        match tree {
            TokenTree::Ident(name) => {
                if colons < 2 {
                    found.push(std::mem::take(&mut path));
                }
                // `.field` and `.method()` are no paths, `..path` is one.
                if !(path.is_empty() && (dots == 1 || is_lifetime)) {
                    path.push(name.to_string());
                }
                (colons, dots, is_lifetime) = (0, 0, false);
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            other => {
                found.push(std::mem::take(&mut path));
                colons = 0;
                let mark = if let TokenTree::Punct(mark) = &other { mark.as_char() } else { ' ' };
                dots = if mark == '.' { dots + 1 } else { 0 };
                is_lifetime = mark == '\'';
                if let TokenTree::Group(group) = other {
                    found.extend(paths(group.stream()));
                }
            }
        }
    }
    found.push(path);
    found.retain(|path| !path.is_empty());
    found
}

/// Strings that are paths of more than one segment.
pub(super) fn quoted_paths(stream: TokenStream) -> Vec<Segments> {
    let mut found = Vec::new();
    for tree in stream {
        match tree {
            TokenTree::Group(group) => found.extend(quoted_paths(group.stream())),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let Ok(path) = syn::parse_str::<syn::Path>(text.trim_matches('"')) else { continue };
                if path.segments.len() > 1 {
                    found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
                }
            }
            _ => {}
        }
    }
    found
}

/// Names that a macro call seems to define.
pub(super) fn defined(stream: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut defines = false;
    for tree in stream {
        match tree {
            TokenTree::Ident(word) => {
                let word = word.to_string();
                if defines {
                    found.push(word.clone());
                }
                defines = DEFINING.contains(&word.as_str());
            }
            TokenTree::Group(group) => found.extend(defined(group.stream())),
            _ => defines = false,
        }
    }
    found
}

/// Whether a `cfg` holds only in tests or in documentation.
pub(super) fn requires_test(condition: TokenStream) -> bool {
    let trees: Vec<_> = condition.into_iter().collect();
    let is_word =
        |at: usize, word: &str| matches!(trees.get(at), Some(TokenTree::Ident(name)) if name == word);
    match trees.get(1) {
        Some(TokenTree::Group(group)) if is_word(0, "all") => {
            let parts: Vec<_> = group.stream().into_iter().collect();
            let is_comma = |tree: &TokenTree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == ',');
            parts.split(is_comma).any(|part| requires_test(part.iter().cloned().collect()))
        }
        None => is_word(0, "test") || is_word(0, "doc"),
        _ => false,
    }
}
