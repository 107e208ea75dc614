//! Names of patterns in the code: a pattern's own room says its name, nothing else does.

use std::cmp::Ordering;
use std::fs;

use anyhow::Result;

use crate::shell;

const PATTERNS: [&str; 9] =
    ["fan-out", "one-way", "open-loop", "overhead", "pairs", "ping-pong", "pipeline", "prtt", "stream"];
/// The patterns' own rooms.
const ROOMS: &str = "crates/bench/src/patterns/";
/// How many lines elsewhere name a pattern. May only shrink.
const LINES_MAX: usize = 11;

/// Prints how many lines of the crates name a pattern and where.
pub(super) fn check(wrong: &mut Vec<String>) -> Result<()> {
    let mut places = Vec::new();
    for path in shell::output(&["git", "ls-files", "crates"])?.lines().filter(|path| may_not(path)) {
        let text = fs::read_to_string(shell::root().join(path)).unwrap_or_default();
        places.extend(lines(&text).into_iter().map(|line| format!("{path}:{line}")));
    }
    println!("names of patterns outside their rooms: {} lines, at most {LINES_MAX}", places.len());
    for place in &places {
        println!("  {place}");
    }
    let (found, file) = (places.len(), "xtask/src/rooms/names.rs");
    match found.cmp(&LINES_MAX) {
        Ordering::Greater => {
            wrong.push(format!(
                "{found} lines outside the patterns' rooms name a pattern, more than {LINES_MAX}"
            ));
        }
        Ordering::Less => {
            wrong.push(format!("{found} lines name a pattern, not {LINES_MAX}: write {found} into {file}"));
        }
        Ordering::Equal => {}
    }
    Ok(())
}

fn may_not(path: &str) -> bool {
    let is_source = path.ends_with(".rs") && path.split('/').nth(2) == Some("src");
    is_source && !path.starts_with(ROOMS) && !path.ends_with("tests.rs") && !path.contains("/tests/")
}

/// The numbers of the lines above the tests that have a pattern's name as a string.
fn lines(text: &str) -> Vec<usize> {
    let product = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let names = |line: &str| PATTERNS.iter().any(|name| line.contains(&format!("\"{name}\"")));
    (1..).zip(product).filter(|(_, line)| names(line)).map(|(n, _)| n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_outside_rooms_and_tests() {
        let text = "//! \"x\" ping-pong\nlet a = \"ping-pong\";\n\nf(\"a-stream\", \"stream\")\n#[cfg(test)]\n\"prtt\"\n";
        assert_eq!(lines(text), [2, 4]);
        assert!(may_not("crates/report/src/best.rs"));
        for path in ["crates/report/src/best/tests.rs", "crates/report/tests/a.rs", "crates/a/src/a.md"] {
            assert!(!may_not(path), "{path}");
        }
        assert!(!may_not("crates/bench/src/patterns/prtt/mod.rs"));
    }
}
