//! The house rules that a program can check (ARCHITECTURE.md).

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};

use crate::shell;

/// Longest function, in lines; tests and tables are exempt.
const FUNCTION_LINES: usize = 70;
/// Longest file, in lines without its tests.
const FILE_LINES: usize = 500;
/// Longest line of anything but code, which rustfmt keeps shorter; rows of tables are exempt.
const LINE_CHARS: usize = 130;

/// Which of our crates each crate may use. The arrows of DESIGN: no other, so no cycle.
const ARROWS: [(&str, &[&str]); 11] = [
    ("baseline", &["measure", "softdev", "verbs"]),
    ("bench", &["conditions", "measure", "verbs"]),
    ("conditions", &["measure"]),
    ("conformance", &["softdev", "verbs"]),
    ("measure", &[]),
    ("preload", &["softdev", "verbs"]),
    ("rdmascope", &["bench", "conditions", "measure", "preload", "report", "softdev", "verbs"]),
    ("report", &["measure"]),
    ("softdev", &["verbs"]),
    ("verbs", &[]),
    ("xtask", &[]),
];

/// What must not stand in the code of a crate, and why. `allowed` are the ends of paths where it may.
const BANNED: [(&str, &str, &[&str]); 6] = [
    ("dbg!(", "left over from debugging", &[]),
    ("todo!(", "a stub", &[]),
    ("unimplemented!(", "a stub", &[]),
    (
        "println!(",
        "measuring never prints; only the binary does",
        &["rdmascope/src", "baseline/src", "xtask/src"],
    ),
    ("Instant::now()", "time has one owner", &["softdev/src", "xtask/src"]),
    (
        "std::thread::sleep(",
        "a wait without an end",
        &[
            "softdev/src/verbs/completion.rs",
            "softdev/src/transport/local/host.rs",
            "baseline/src/link.rs",
            "bench/src/process/child.rs",
            "xtask/src/process.rs",
        ],
    ),
];

/// Checks all files that git knows; fails with the list of what is wrong.
pub(crate) fn run() -> Result<()> {
    let mut wrong = Vec::new();
    let mut sizes = Vec::new();
    for path in shell::output(&["git", "ls-files"])?.lines() {
        if path.contains("/assets/") || path.ends_with(".png") {
            continue;
        }
        let Ok(text) = fs::read_to_string(shell::root().join(path)) else { continue };
        lines(path, &text, &mut wrong);
        if path.ends_with(".rs") {
            code(path, &text, &mut wrong, &mut sizes);
        }
    }
    arrows(&mut wrong)?;
    sizes.sort_unstable();
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    eprintln!("xtask: tidy: {} source files, median {median} lines without tests", sizes.len());
    if !wrong.is_empty() {
        bail!("the house rules are broken in {} places:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

/// Rules for any text.
fn lines(path: &str, text: &str, wrong: &mut Vec<String>) {
    for (n, line) in (1..).zip(text.lines()) {
        let generated = path.ends_with(".lock") || path.ends_with(".json") || path.ends_with(".csv");
        if line.chars().count() > LINE_CHARS
            && !generated
            && !path.contains("/golden/")
            && !line.contains("http")
            && line.matches(" | ").count() < 3
        {
            wrong.push(format!("{path}:{n}: longer than {LINE_CHARS} characters"));
        }
        if line.ends_with([' ', '\t']) && !path.contains("/golden/") {
            wrong.push(format!("{path}:{n}: ends with white space"));
        }
        if line.contains('\t') && !path.ends_with("Makefile") && !path.contains("/golden/") {
            wrong.push(format!("{path}:{n}: has a tab"));
        }
    }
}

/// Rules for code.
fn code(path: &str, text: &str, wrong: &mut Vec<String>, sizes: &mut Vec<usize>) {
    let is_test = ["/tests/", "crates/conformance/"].iter().any(|place| path.contains(place))
        || path.ends_with("tests.rs")
        || path.starts_with("fuzz/");
    let lines: Vec<&str> = text.lines().collect();
    if !text.starts_with("//!") && !path.ends_with("tests.rs") {
        wrong.push(format!("{path}:1: has no documentation of what it is for"));
    }
    if is_test {
        return;
    }
    let end = lines.iter().position(|line| line.trim() == "#[cfg(test)]" && !line.starts_with(' '));
    let end =
        end.filter(|at| lines.get(at + 1).is_some_and(|line| !line.contains(';'))).unwrap_or(lines.len());
    sizes.push(end);
    if end > FILE_LINES {
        wrong.push(format!("{path}: {end} lines without its tests, more than {FILE_LINES}"));
    }
    for (n, line) in (1..).zip(&lines[..end]) {
        for (banned, why, allowed) in BANNED {
            let is_comment = line.trim_start().starts_with("//");
            let is_rule = path.ends_with("xtask/src/tidy.rs");
            let elsewhere = !allowed.iter().any(|place| path.contains(place));
            let found = line.find(banned).is_some_and(|at| !line[..at].ends_with('e'));
            if found && elsewhere && !is_comment && !is_rule {
                wrong.push(format!("{path}:{n}: {banned} is {why}"));
            }
        }
    }
    functions(path, &lines[..end], wrong);
}

/// No function is too long. A function ends with a brace that is indented as its head.
fn functions(path: &str, lines: &[&str], wrong: &mut Vec<String>) {
    for (start, line) in lines.iter().enumerate() {
        let head = line.trim_start();
        let indent = &line[..line.len() - head.len()];
        let words: Vec<&str> = head.split_whitespace().take_while(|word| !word.contains('(')).collect();
        let named =
            head.split_whitespace().zip(head.split_whitespace().skip(1)).find(|(word, _)| *word == "fn");
        let Some((_, name)) = named else { continue };
        let only_qualifiers = words.iter().take_while(|word| **word != "fn").all(|word| is_qualifier(word));
        let closing = format!("{indent}}}");
        let Some(length) = lines[start..].iter().position(|line| *line == closing) else { continue };
        if only_qualifiers && length > FUNCTION_LINES && !line.ends_with(';') {
            let name = name.split('(').next().unwrap_or(name);
            wrong
                .push(format!("{path}:{}: {name} has {length} lines, more than {FUNCTION_LINES}", start + 1));
        }
    }
}

fn is_qualifier(word: &str) -> bool {
    word.starts_with("pub") || ["const", "unsafe", "async", "extern", "\"C\"", "fn"].contains(&word)
}

/// The crates use only whom they may.
fn arrows(wrong: &mut Vec<String>) -> Result<()> {
    let metadata = shell::output(&["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let allowed = BTreeMap::from(ARROWS);
    let empty = Vec::new();
    for package in metadata["packages"].as_array().unwrap_or(&empty) {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(may) = allowed.get(name) else {
            wrong.push(format!("crate {name}: xtask/src/tidy.rs does not say whom it may use"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap_or(&empty) {
            let used = dependency["name"].as_str().unwrap_or_default();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if allowed.contains_key(used) && !may.contains(&used) && !is_dev {
                wrong.push(format!("crate {name} must not use crate {used}"));
            }
        }
    }
    Ok(())
}
