//! Sentences for readers use the words of the glossary: no string, comment, page, script or
//! configuration has a word that `docs/glossary.md` retires.

use std::fs;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use crate::shell;

const GLOSSARY: &str = "docs/glossary.md";

/// The end of a word that texts on file transfers may use.
const OF_FILES: &str = "(but of files)";

/// Ends of the names of other files that people read.
const LINES: [&str; 10] = ["css", "html", "js", "nhc", "py", "service", "sh", "timer", "toml", "yaml"];

/// A row of the glossary's table "Retired words".
struct Retired {
    word: String,
    instead: String,
    pattern: Regex,
}

/// The retired words of the glossary.
pub(super) struct Sentences {
    retired: Vec<Retired>,
}

/// A piece of a file that people read, and the line on which it starts.
type Piece = (usize, String);

impl Sentences {
    /// Reads the glossary of the project.
    pub(super) fn read() -> Result<Self> {
        let text = fs::read_to_string(shell::root().join(GLOSSARY)).context(GLOSSARY)?;
        Self::parse(&text)
    }

    fn parse(glossary: &str) -> Result<Self> {
        let (_, table) = glossary
            .split_once("## Retired words")
            .with_context(|| format!("{GLOSSARY} has no chapter \"Retired words\""))?;
        let mut retired = Vec::new();
        for row in table.lines().filter_map(|line| line.strip_prefix("| ")).skip(1) {
            // In a row of a table, a bar of the expression is written with a backslash.
            let row = row.replace("\\|", "\0");
            let mut cells = row.split('|').map(|cell| cell.trim().replace('\0', "|"));
            let (Some(word), Some(instead), Some(pattern)) = (cells.next(), cells.next(), cells.next())
            else {
                continue;
            };
            let pattern = Regex::new(pattern.trim_matches('`'))
                .with_context(|| format!("{GLOSSARY}: the expression of {word:?}"))?;
            retired.push(Retired { word, instead, pattern });
        }
        ensure!(!retired.is_empty(), "{GLOSSARY} retires no word: its table cannot be read");
        Ok(Self { retired })
    }

    /// Reports the retired words of a file.
    pub(super) fn check(&self, path: &str, text: &str, wrong: &mut Vec<String>) {
        if path == GLOSSARY {
            return;
        }
        let pieces = match path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("rs") => of_source(text),
            Some("md") => of_page(text),
            Some(end) if LINES.contains(&end) => of_lines(text),
            _ => return,
        };
        for (line, piece) in pieces {
            let piece = without_code(&piece);
            for Retired { word, instead, pattern } in &self.retired {
                let is_exempt = word.ends_with(OF_FILES) && path.contains("transfer");
                if !is_exempt && pattern.is_match(&piece) {
                    wrong.push(format!(
                        "{path}:{line}: {GLOSSARY} retires {word:?}; use {instead:?}: {}",
                        piece.trim()
                    ));
                }
            }
        }
    }
}

fn of_lines(text: &str) -> Vec<Piece> {
    (1..).zip(text.lines().map(str::to_owned)).collect()
}

/// The prose of a page, without its blocks of code and of output.
fn of_page(text: &str) -> Vec<Piece> {
    let mut is_block = false;
    let mut pieces = of_lines(text);
    pieces.retain(|(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    pieces
}

/// The string literals, without their quotes, and the comments of a Rust source.
fn of_source(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < text.len() {
        let rest = &text[at..];
        let (length, piece) = token(rest, text[..at].chars().next_back());
        if let Some(piece) = piece {
            pieces.push((line, piece.to_owned()));
        }
        line += rest[..length].matches('\n').count();
        at += length;
    }
    pieces
}

/// How many bytes the first token of `rest` has, and what people read of it.
fn token(rest: &str, before: Option<char>) -> (usize, Option<&str>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if rest.starts_with("//") {
        let length = rest.find('\n').unwrap_or(rest.len());
        return (length, Some(&rest[..length]));
    }
    if let Some(body) = rest.strip_prefix('"') {
        let length = closing_quote(body);
        return (1 + (length + 1).min(body.len()), Some(&body[..length]));
    }
    let raw = rest.strip_prefix('r').filter(|_| !before.is_some_and(|c| is_word(c) && c != 'b'));
    if let Some(hashes) = raw.map(|raw| raw.len() - raw.trim_start_matches('#').len())
        && rest[1 + hashes..].starts_with('"')
    {
        let body = &rest[2 + hashes..];
        let end = format!("\"{}", "#".repeat(hashes));
        let length = body.find(&end).unwrap_or(body.len());
        return ((2 + hashes + length + end.len()).min(rest.len()), Some(&body[..length]));
    }
    // The quote of a character is no string; the tick of a lifetime is neither.
    if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
        return (rest[1..].find('\'').map_or(1, |at| at + 2), None);
    }
    (rest.chars().next().map_or(1, char::len_utf8), None)
}

/// How many bytes stand before the quote that ends a string literal.
fn closing_quote(body: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    body.len()
}

/// The text with a placeholder for all code in backticks, whose words are names.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('`').peekable();
    let mut is_code = false;
    while let Some(part) = parts.next() {
        // An opening backtick without a closing one is a character as any.
        if is_code && parts.peek().is_some() {
            out.push_str("`x`");
        } else if is_code {
            out.push('`');
            out.push_str(part);
        } else {
            out.push_str(part);
        }
        is_code = !is_code;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Glossary\n\n## Retired words\n\n| Retired | Use | Regular expression |\n|---|---|---|\n\
        | tide | stream | `(?i)\\btide(?:s\\|ed)?\\b` |\n| gate | endpoint | `\\bgates?\\b` |\n";

    fn said(path: &str, text: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        Sentences::parse(TABLE).expect("a glossary").check(path, text, &mut wrong);
        wrong.iter().map(|wrong| wrong.split(": docs").next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn retired_words_of_strings_and_comments_are_found() {
        let path = "crates/a/src/b.rs";
        let text = "// A tide.\nfn tide() {\n    let quote = '\"';\n    f(\"it \\\"tideed\\\" us\", b\"tide\");\n\
            \n    g(r#\"a \"tide\"\"#, r\"tides\\\"); // of `tide`\n}\n/// Gates and a gate.\nfn gate<'a>() {}\n";
        assert_eq!(
            said(path, text),
            [":1", ":4", ":4", ":6", ":6", ":8"].map(|line| format!("{path}{line}"))
        );
    }

    #[test]
    fn blocks_and_code_of_pages_are_names() {
        let text = "A tide.\n\n```console\n$ tide\n```\n\nThe `tide` of a gate, and a ` tide.\n";
        assert_eq!(said("docs/a.md", text), ["docs/a.md:1", "docs/a.md:7", "docs/a.md:7"]);
        assert_eq!(said("plans/a.toml", "# tide\ntide_ = 1\n"), ["plans/a.toml:1"]);
        assert_eq!(said("a.py", "# tide"), ["a.py:1"]);
        assert_eq!(said("a.png", "tide"), [""; 0]);
        assert_eq!(said(GLOSSARY, "A tide."), [""; 0]);
    }

    #[test]
    fn a_glossary_that_retires_nothing_is_an_error() {
        assert!(Sentences::parse("# Glossary\n").is_err());
        assert!(Sentences::parse("## Retired words\n").is_err());
        assert!(Sentences::parse("## Retired words\n| a | b | c |\n| a | b | `(` |\n").is_err());
    }
}
