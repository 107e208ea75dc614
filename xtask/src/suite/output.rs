//! Reads the output of `cargo test` about failed tests.

use std::fmt;

/// Cargo's line after a target with failures, with the arguments that run only this target.
const HINT: &str = "error: test failed, to rerun pass `";
const DOC_HINT: &str = "error: doctest failed, to rerun pass `";

/// A target with failures.
#[derive(Debug, PartialEq)]
pub(super) struct Failed {
    /// Arguments of cargo that select the target, such as `-p bench --lib`.
    pub(super) target: String,
    /// The failed tests. Empty if the target ended before it listed them, for example by a signal.
    pub(super) tests: Vec<String>,
}

/// One test of a target, or the whole target.
pub(super) struct One<'a> {
    pub(super) target: &'a str,
    pub(super) name: Option<&'a str>,
}

impl Failed {
    pub(super) fn each(&self) -> Vec<One<'_>> {
        let one = |name| One { target: &self.target, name };
        if self.tests.is_empty() {
            return vec![one(None)];
        }
        self.tests.iter().map(|name| one(Some(name.as_str()))).collect()
    }
}

impl fmt::Display for One<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.name.unwrap_or("all tests"), self.target)
    }
}

/// The output that has been read so far.
#[derive(Default)]
pub(super) struct Output {
    pub(super) failed: Vec<Failed>,
    /// Tests that passed, of all targets.
    pub(super) passed: usize,
    /// The last list of failures of the current target, and whether it is still being read.
    list: Vec<String>,
    is_list: bool,
    /// The start of a line that has not ended.
    rest: Vec<u8>,
}

impl Output {
    pub(super) fn read(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                self.line(String::from_utf8_lossy(&line).trim_end());
            }
        }
    }

    fn line(&mut self, line: &str) {
        let hint = line.strip_prefix(HINT).or(line.strip_prefix(DOC_HINT));
        if let Some(target) = hint.and_then(|rest| rest.split('`').next()) {
            let tests = std::mem::take(&mut self.list);
            self.failed.push(Failed { target: target.to_owned(), tests });
        } else if line == "failures:" {
            // The first list has the tests' output, the last list only their names.
            self.list.clear();
            self.is_list = true;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += count(result, " passed");
            self.is_list = false;
            if self.list.len() != count(result, " failed") {
                self.list.clear();
            }
        } else if line.starts_with("     Running ") || line.starts_with("   Doc-tests ") {
            self.list.clear();
            self.is_list = false;
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.is_list) {
            self.list.push(name.to_owned());
        }
    }
}

/// The number before a word of `FAILED. 12 passed; 1 failed; 0 ignored`.
fn count(result: &str, word: &str) -> usize {
    let before = result.split([';', '.']).find_map(|part| part.strip_suffix(word));
    before.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
