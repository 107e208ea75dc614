//! House rules for Rust code.

/// The longest function, in lines; tests and tables are exempt.
const FUNCTION_LINES: usize = 70;
/// The longest file, in lines without its tests.
const FILE_LINES: usize = 500;
/// The longest line of a comment, in characters; pictures and examples in a fence are exempt.
const COMMENT_CHARS: usize = 100;

/// Texts that must not be in the code of a crate, and why. The last column has parts of the paths
/// where a text is allowed.
const BANNED: [(&str, &str, &[&str]); 6] = [
    ("dbg!(", "it is left over from debugging", &[]),
    ("todo!(", "it is a stub", &[]),
    ("unimplemented!(", "it is a stub", &[]),
    (
        "println!(",
        "measuring never prints; only programs do",
        &["rdmascope/src", "rdmascope/build.rs", "baseline/src", "verdict/src/bin", "xtask/src"],
    ),
    ("Instant::now()", "only the clock of `measure` reads the time", &["softdev/src", "xtask/src"]),
    (
        "std::thread::sleep(",
        "a wait needs a condition and a deadline",
        &[
            "cm/src/process/directory.rs",
            "softdev/src/verbs/completion.rs",
            "softdev/src/transport/local/host.rs",
            "baseline/src/link.rs",
            "bench/src/process/child.rs",
            "bench/src/process/launcher/slurm.rs",
            "bench/src/process/launcher/leavings.rs",
            "bench/src/process/launcher/supervisor.rs",
            "bench/src/mpi_endpoint/rank.rs",
            "xtask/src/process.rs",
        ],
    ),
];

/// Checks the rules for a file of Rust code.
pub(super) fn check(path: &str, text: &str, wrong: &mut Vec<String>, sizes: &mut Vec<usize>) {
    let is_test = ["/tests/", "crates/conformance/"].iter().any(|place| path.contains(place))
        || path.ends_with("tests.rs")
        || path.starts_with("fuzz/");
    let lines: Vec<&str> = text.lines().collect();
    if !text.starts_with("//!") && !path.ends_with("tests.rs") {
        wrong.push(format!("{path}:1: has no `//!` comment that says what the file is for"));
    }
    comments(path, &lines, wrong);
    tuples(path, &lines, wrong);
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
            let is_rule = path.ends_with("xtask/src/tidy/code.rs");
            let elsewhere = !allowed.iter().any(|place| path.contains(place));
            let found = line.find(banned).is_some_and(|at| !line[..at].ends_with('e'));
            if found && elsewhere && !is_comment && !is_rule {
                wrong.push(format!("{path}:{n}: `{banned}` is not allowed here: {why}"));
            }
        }
    }
    functions(path, &lines[..end], wrong);
}

/// Reports comments that are too wide.
fn comments(path: &str, lines: &[&str], wrong: &mut Vec<String>) {
    let mut is_fenced = false;
    for (n, line) in (1..).zip(lines) {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        is_fenced ^= comment.trim_start_matches(['/', '!', ' ']).starts_with("```");
        if !is_fenced && line.chars().count() > COMMENT_CHARS {
            wrong.push(format!("{path}:{n}: a comment of more than {COMMENT_CHARS} characters"));
        }
    }
}

/// Reports two bindings on one line: `let (a, b) = (c, d);`.
fn tuples(path: &str, lines: &[&str], wrong: &mut Vec<String>) {
    for (n, line) in (1..).zip(lines) {
        let bound = line.trim_start().strip_prefix("let (").and_then(|rest| rest.split_once(" = ("));
        let Some((_, values)) = bound.filter(|(_, values)| values.ends_with(");")) else { continue };
        // The first bracket, which is open here, is the last to be closed.
        let mut open = 1;
        let closed = values.find(|c| {
            open += i32::from(c == '(') - i32::from(c == ')');
            open == 0
        });
        if closed == Some(values.len() - 2) {
            wrong.push(format!("{path}:{n}: binds a tuple of values: give each name its own line"));
        }
    }
}

/// Reports functions that are too long. A function ends with a brace at the indentation of its
/// head.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        check("a.rs", &format!("//! What it is for.\n{text}"), &mut wrong, &mut Vec::new());
        wrong
    }

    #[test]
    fn a_wide_comment_is_found_outside_of_fences() {
        let wide = format!("/// {}\n", "a ".repeat(49));
        assert_eq!(wrong(&wide), ["a.rs:2: a comment of more than 100 characters"]);
        assert!(wrong(&wide[2..]).is_empty() && wrong(&format!("/// ```text\n{wide}/// ```\n")).is_empty());
        assert_eq!(wrong(&format!("/// ```text\n/// ```\n{wide}")).len(), 1);
    }

    #[test]
    fn a_let_of_two_values_is_found_and_one_that_takes_a_tuple_apart_is_not() {
        assert_eq!(wrong("    let (a, b) = (f(1), 2);\n").len(), 1);
        for fine in ["let (a, b) = f(1);", "let (a, b) = (self.get)(&(1, 2));", "let (a, b) = (f)(1).get();"]
        {
            assert_eq!(wrong(fine), [""; 0], "{fine}");
        }
    }
}
