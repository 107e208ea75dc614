//! Names of patterns in the code: only a pattern's own folder contains its name.

const PATTERNS: [&str; 11] = [
    "collective",
    "fan-out",
    "halo",
    "one-way",
    "open-loop",
    "overhead",
    "pairs",
    "ping-pong",
    "pipeline",
    "prtt",
    "stream",
];
/// The folder of the patterns.
const ROOMS: &str = "crates/bench/src/patterns/";
/// Other files with such words, on how many lines at most, and what the words mean there.
const KEPT: [(&str, usize, &str); 6] = [
    ("crates/bench/src/axis/table.rs", 4, "axes and flags"),
    ("crates/bench/src/endpoint/collectives.rs", 1, "an axis"),
    ("crates/bench/src/plan/mod.rs", 2, "examples of plans"),
    ("crates/bench/src/tool_endpoint/words.rs", 1, "an argument of sockperf"),
    ("crates/rdmascope/src/cli/known.rs", 60, "commands and axes for options of other tools"),
    ("crates/report/src/model/barriers.rs", 1, "an axis"),
];

/// Reports lines of a crate's file that name a pattern outside its folder.
pub(super) fn check(path: &str, text: &str, wrong: &mut Vec<String>) {
    if !may_not(path) {
        return;
    }
    let found = lines(text);
    let kept = KEPT.iter().find(|(file, ..)| *file == path).map_or(0, |(_, lines, _)| *lines);
    if found.len() > kept {
        wrong.push(format!(
            "{path}: lines {found:?} contain names of patterns; xtask/src/tidy/patterns.rs allows {kept} such lines"
        ));
    }
}

fn may_not(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_source = parts.next() == Some("crates") && parts.nth(1) == Some("src") && path.ends_with(".rs");
    is_source && !path.starts_with(ROOMS) && !path.ends_with("tests.rs") && !path.contains("/tests/")
}

/// The numbers of the lines above the tests that contain a pattern's name as a string.
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
