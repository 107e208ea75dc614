//! The documents as readers use them: their plans can be measured, their commands run and print the
//! lines below them, and the targets of their links exist.
//!
//! A block `console` has commands after `$ `, each with its output; `...` stands for any lines. A
//! block `toml` is a plan. Its first line is a comment with the name of its file, which commands
//! below it use. All blocks of a page run in one directory, in their order. `RDMASCOPE_BLESS=1`
//! replaces the output of each command that has output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{PROGRAM, Scratch, finish};

/// A block of a page that can be tried.
#[derive(Debug, PartialEq)]
enum Block {
    /// A plan: its file and its text.
    Plan(String, String),
    /// A command and the lines below it.
    Command(String, Vec<String>),
}

/// Returns the directory of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns all pages, by their paths from the root.
fn pages() -> BTreeSet<PathBuf> {
    let mut pages = BTreeSet::from(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(PathBuf::from));
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            match root().join(&path).is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => drop(pages.insert(path)),
                false => {}
            }
        }
    }
    pages
}

/// Returns the blocks of a page that can be tried, with the lines at which they start.
fn blocks(text: &str) -> Vec<(usize, Block)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, at)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let inside: Vec<(&str, usize)> = lines.by_ref().take_while(|(line, _)| *line != "```").collect();
        match kind {
            "toml" => {
                let name = inside.first().and_then(|(line, _)| line.strip_prefix("# "));
                let name = name.filter(|name| name.ends_with(".toml") && !name.contains(' '));
                let name = name.map_or_else(|| format!("plan-{at}.toml"), str::to_owned);
                let text = inside.iter().map(|(line, _)| format!("{line}\n")).collect();
                blocks.push((at, Block::Plan(name, text)));
            }
            "console" => {
                for (line, at) in inside {
                    match (line.strip_prefix("$ "), blocks.last_mut()) {
                        (Some(command), _) => {
                            blocks.push((at, Block::Command(command.to_owned(), Vec::new())));
                        }
                        (None, Some((_, Block::Command(_, below)))) => below.push(line.to_owned()),
                        (None, _) => panic!("line {at}: output without a command"),
                    }
                }
            }
            _ => {}
        }
    }
    blocks
}

/// Units after a number, which change with it.
const UNITS: [&str; 9] = ["ns", "us", "ms", "s", "B", "B/s", "KiB/s", "MiB/s", "GiB/s"];

/// Returns a line without what differs from run to run: numbers with their units, marks of unstable
/// points, the widths of columns, and whether the mean of repetitions became known.
fn masked(line: &str) -> String {
    let line = line.split(", not within ").next().unwrap_or(line);
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ')']));
        if matches!(word, "!" | "~") || (is_unit && words.last().is_some_and(|last| last.ends_with('#'))) {
            continue;
        }
        let word = if word == "-" { "0" } else { word };
        let mut text = String::new();
        let mut is_number = false;
        for c in word.chars() {
            let goes_on = c.is_ascii_digit() || (is_number && matches!(c, '.' | ','));
            match (goes_on, is_number) {
                (true, false) => text.push('#'),
                (true, true) => {}
                (false, _) => text.push(c),
            }
            is_number = goes_on;
        }
        words.push(text);
    }
    words.join(" ")
}

/// Width of the pages' output.
const COLUMNS: usize = 80;

/// Returns lines as they were before the program broke them. The place of a break depends on
/// numbers. Rows of tables are not prose: words of prose have one space between them.
fn unfolded<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut whole: Vec<String> = Vec::new();
    let mut last = "";
    for line in lines {
        let first = line.split_whitespace().next().unwrap_or_default();
        let is_prose = !last.is_empty() && !last.trim().contains("  ") && !last.starts_with("--");
        let is_full = last.chars().count() + 1 + first.chars().count() > COLUMNS;
        match whole.last_mut() {
            Some(start) if is_prose && is_full && indent(line) > indent(start) => {
                start.push(' ');
                start.push_str(line.trim_start());
            }
            _ => whole.push(line.to_owned()),
        }
        last = line;
    }
    whole
}

/// Fails unless the expected lines are among the printed ones, in their order.
fn stand_among(expected: &[String], found: &str) -> Result<(), String> {
    let found = unfolded(found.lines());
    let mut found = found.iter().map(|line| masked(line));
    let expected = unfolded(expected.iter().map(String::as_str));
    let told = |line: &str| !line.is_empty() && line != "...";
    for (index, line) in expected.iter().enumerate().filter(|(_, line)| told(line)) {
        // A page may leave out the rest of a line that was broken, too.
        let is_cut = line.len() > COLUMNS / 2 && expected.get(index + 1).is_some_and(|next| next == "...");
        let line = masked(line);
        if !found.any(|other| other == line || (is_cut && other.starts_with(&line))) {
            return Err(line);
        }
    }
    Ok(())
}

/// Tries all blocks of a page; returns what each command printed, and adds what is wrong.
fn try_page(page: &Path, wrong: &mut Vec<String>) -> Vec<(usize, String)> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = blocks(&text);
    let mut printed = Vec::new();
    if blocks.is_empty() {
        return printed;
    }
    let scratch = Scratch::on_all_cpus();
    let folder = scratch.at("bin");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(*PROGRAM, folder.join("rdmascope")).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    for (at, block) in blocks {
        let place = format!("{}:{at}", page.display());
        match block {
            Block::Plan(name, text) => {
                scratch.write(&name, text);
                let ended = scratch.run(&["run", &name, "--dry-run"]);
                if ended.status != Some(0) {
                    wrong.push(format!("{place}: {}", ended.stderr));
                }
            }
            Block::Command(command, below) => {
                let mut shell = scratch.shell(&command);
                shell.env("PATH", &path).env("COLUMNS", COLUMNS.to_string());
                let ended = finish(shell);
                let all = ended.stdout + &ended.stderr;
                if ended.status != Some(0) {
                    wrong.push(format!("{place}: {command} ends with {:?}:\n{all}", ended.status));
                } else if !is_blessing()
                    && let Err(line) = stand_among(&below, &all)
                {
                    wrong.push(format!("{place}: {command} prints no line like `{line}`, but:\n{all}"));
                }
                printed.push((at, all));
            }
        }
    }
    printed
}

fn is_blessing() -> bool {
    std::env::var_os("RDMASCOPE_BLESS").is_some()
}

#[test]
fn plans_and_commands_of_the_documents_work() {
    let mut wrong = Vec::new();
    for page in pages() {
        let mut of_page = Vec::new();
        let mut printed = try_page(&page, &mut of_page);
        // Two equal sides may differ by chance, as the page says itself.
        if !of_page.is_empty() && page.ends_with("compare.md") {
            of_page.clear();
            printed = try_page(&page, &mut of_page);
        }
        wrong.extend(of_page);
        if is_blessing() {
            bless(&page, &printed);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Most lines below a command.
const LINES_MAX: usize = 16;
/// Commands with output that depends on the host or on the numbers.
const VARYING: [&str; 6] = ["advise", "devices", "doctor", "exec", "model", "plans"];

/// Returns the lines of a command that are the same everywhere except for numbers: without the
/// banner about the host, and without the reasons of unstable points.
fn lasting(printed: &str) -> Vec<&str> {
    let lines = printed.lines().take_while(|line| !line.starts_with(" ! unstable"));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut left_out = None;
    let is_lasting = |line: &&str| {
        // A line that is left out has been broken where those below it are indented further.
        if left_out.is_some_and(|start| !line.trim().is_empty() && indent(line) > start) {
            return false;
        }
        let text = line.trim_start();
        let is_kept = !text.starts_with("# ") && !text.starts_with("! ") && !text.contains("/tmp/");
        left_out = (!is_kept).then(|| indent(line));
        is_kept
    };
    let mut lines: Vec<&str> = lines.filter(is_lasting).collect();
    while lines.first().is_some_and(|line| line.trim().is_empty()) {
        lines.remove(0);
    }
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// Replaces the output below the commands of a page, if there is any.
fn bless(page: &Path, printed: &[(usize, String)]) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let mut out = String::new();
    let mut skips = false;
    for (line, at) in text.lines().zip(1..) {
        let command = printed.iter().find(|(place, _)| *place == at);
        if line.starts_with("$ ") || line == "```" {
            skips = false;
        }
        if !skips {
            out += &format!("{line}\n");
        }
        let has_output = text.lines().nth(at).is_some_and(|next| !next.starts_with("$ ") && next != "```");
        let varies = VARYING.iter().any(|name| line.starts_with(&format!("$ rdmascope {name}")));
        let has_output = has_output && !varies;
        if let Some((_, all)) = command.filter(|_| has_output) {
            skips = true;
            let lines = lasting(all);
            lines.iter().take(LINES_MAX).for_each(|line| out += &format!("{}\n", line.trim_end()));
            if lines.len() > LINES_MAX {
                out += "...\n";
            }
        }
    }
    fs::write(path, out).unwrap();
}

/// Returns the targets of the links of a page, without links to the web.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](").filter(|_| !is_code) {
            let Some((link, after)) = after.split_once(')') else { break };
            if !link.contains("://") {
                links.push(link.to_owned());
            }
            rest = after;
        }
    }
    links
}

/// Returns the anchor of a heading, as forges and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let mut broken = Vec::new();
    let others = ["CHANGELOG.md", "SECURITY.md", "contrib/README.md"].map(PathBuf::from);
    for page in pages().into_iter().chain(others) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for link in links(&text) {
            let (file, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.parent().unwrap().join(file),
            };
            let target = root().join(&target);
            let headings = fs::read_to_string(&target).unwrap_or_default();
            let has = |line: &str| line.starts_with('#') && anchor(line.trim_start_matches('#')) == place;
            if !target.exists() || (!place.is_empty() && !headings.lines().any(has)) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn blocks_are_found_and_lines_are_compared_by_what_does_not_vary() {
    let page = "a\n```toml\n# x.toml\nname = \"x\"\n```\n```console\n$ one\n 1.5  us\n...\n$ two\n```\n```sh\n$ not\n```\n";
    let found = blocks(page);
    assert_eq!(found[0], (2, Block::Plan("x.toml".to_owned(), "# x.toml\nname = \"x\"\n".to_owned())));
    let below = vec![" 1.5  us".to_owned(), "...".to_owned()];
    assert_eq!(found[1], (7, Block::Command("one".to_owned(), below.clone())));
    assert_eq!(found[2], (10, Block::Command("two".to_owned(), Vec::new())));
    assert_eq!(masked("  4  0.09 - 12,000 us, x2y  !  a s"), "# # # # x#y a s");
    assert_eq!(stand_among(&below, "head\n 27 us !\nend\n"), Ok(()));
    assert!(stand_among(&below, "27 laps\n").is_err());
    assert_eq!(links("[a](b.md#c) [d](https://e)\n```\n[f](g)\n```\n"), ["b.md#c"]);
    assert_eq!(anchor(" `size_bytes`"), "size_bytes");
}
