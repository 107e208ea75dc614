//! Commands that pages and the help show: the parser accepts each of them.
//!
//! The tests of the program run the blocks `console` of pages. All other commands need hosts,
//! adapters or programs that a test does not have. These tests parse them, make the plan of each
//! benchmark, and resolve the plan that `run` names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use bench::plan::{Options, Plan, resolve};
use bench::process::template::split;
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Cli, Command};
use crate::benchmark::Benchmark;
use crate::cli::known;

mod options;

/// Pages, and directories with pages.
const PAGES: [&str; 6] = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", ".github", "contrib", "docs"];
/// A page with commands of patched programs: `cargo xtask rooms` runs these.
const OF_PATCHES: &str = "extending.md";
/// Languages of blocks with commands that no test runs.
const LANGUAGES: [&str; 4] = ["bash", "dockerfile", "sh", "yaml"];
/// The program, and the scripts in `contrib` that pass their words to it.
const PROGRAMS: [&str; 3] = ["rdmascope", "check_rdmascope", "rdmascope-textfile"];
/// Words of a shell that end a command.
const ENDS: [&str; 6] = ["|", "||", "&", "&&", ";", ">"];

/// A command of a page.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Shown {
    /// Its words after the name of the program.
    words: Vec<String>,
    /// Whether it stands in a sentence, which may name a command without its arguments.
    is_named: bool,
}

/// Returns the commands that a page shows in code blocks and in backticks.
fn shown(page: &str) -> BTreeSet<Shown> {
    let mut all = BTreeSet::new();
    let mut add = |text: &str, is_named| {
        let found = calls(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        all.extend(found.into_iter().map(|words| Shown { words, is_named }));
    };
    for (index, part) in page.split("\n```").enumerate() {
        if index % 2 == 1 {
            let (language, block) = part.split_once('\n').unwrap_or_default();
            if LANGUAGES.contains(&language) {
                block.replace("\\\n", " ").lines().for_each(|line| add(line, false));
            }
            continue;
        }
        for paragraph in part.split("\n\n") {
            let is_table = paragraph.trim_start().starts_with('|');
            let code = paragraph.split('`').skip(1).step_by(2);
            code.for_each(|code| add(&code.replace('\n', " "), !is_table));
        }
    }
    all
}

/// Returns the words of each call of the program in a line of a shell, without the marks of what is
/// optional or left out: `[HOST]` and `...`.
fn calls(line: &str) -> Result<Vec<Vec<String>>, &'static str> {
    let line = line.split(" # ").next().unwrap_or_default();
    let mut calls = Vec::new();
    if !line.contains("rdmascope") {
        return Ok(calls);
    }
    let words = split(line)?;
    for (word, at) in words.iter().zip(1..) {
        let rest = &words[at..];
        let is_command = rest.first().is_some_and(|next| next.starts_with(|c: char| c.is_ascii_alphabetic()));
        if PROGRAMS.contains(&word.rsplit('/').next().unwrap_or_default()) && is_command {
            let is_mark = |word: &str| word == "..." || (word.starts_with('[') && word.ends_with(']'));
            let call = rest.iter().take_while(|word| !ENDS.contains(&word.as_str()));
            calls.push(call.filter(|word| !is_mark(word)).cloned().collect());
        } else if word.contains(char::is_whitespace) {
            calls.extend(self::calls(word)?);
        }
    }
    Ok(calls)
}

/// Reads a command, as the program does before it starts anything.
fn read(words: &[String]) -> anyhow::Result<()> {
    // `init` takes any words, and reads them as a command of their own.
    let words = words.strip_prefix(&["init".to_owned()]).filter(|words| !words.is_empty()).unwrap_or(words);
    let mut line = super::command();
    let all = std::iter::once("rdmascope").chain(words.iter().map(String::as_str)).map(OsString::from);
    let matches = line.try_get_matches_from_mut(known::spelled(all))?;
    if let Some(usage) = matches.subcommand_name().and_then(known::lacks) {
        return Err(usage.into());
    }
    if let Some(benchmark) = Benchmark::asked_for(&matches) {
        resolve(&benchmark.plan()?, &Options::default())?;
        return Ok(());
    }
    let Command::Run(run) = Cli::from_arg_matches(&matches)?.command else { return Ok(()) };
    // Other tests run plans of files.
    if let Some(name) = run.plan.filter(|name| !name.ends_with(".toml") && !is_placeholder(name)) {
        let plan = run.results.expected(Plan::load(&name)?)?;
        resolve(&plan, &Options { quick: run.quick, set: run.set })?;
    }
    Ok(())
}

/// Whether a word stands for another one, such as NAME.
fn is_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// Returns why the program refuses a command, unless the command asks for help, names a command
/// without its arguments in a sentence, or has a placeholder in the place of a known word.
fn refusal(shown: &Shown) -> Option<String> {
    let error = read(&shown.words).err()?;
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        let has_placeholder = [ContextKind::InvalidSubcommand, ContextKind::InvalidValue]
            .iter()
            .any(|kind| matches!(error.get(*kind), Some(ContextValue::String(word)) if is_placeholder(word)));
        let is_fine = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand => shown.is_named,
            _ => has_placeholder,
        };
        if is_fine {
            return None;
        }
    }
    Some(format!("rdmascope {}: {error}", shown.words.join(" ")))
}

/// Returns a page, or the pages below a directory.
fn pages(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let below = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return below.flat_map(|path| pages(&path)).collect();
    }
    let is_page = path.extension().is_some_and(|end| end == "md") && !path.ends_with(OF_PATCHES);
    is_page.then(|| path.to_owned()).into_iter().collect()
}

#[test]
fn the_parser_accepts_the_commands_of_pages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in PAGES.iter().flat_map(|name| pages(&root.join(name))) {
        let shown = shown(&fs::read_to_string(&path).unwrap());
        wrong.extend(shown.iter().filter_map(refusal).map(|why| format!("{}: {why}", path.display())));
        count += shown.len();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count}");
}

#[test]
fn the_parser_accepts_the_examples_of_the_help() {
    let mut line = super::command();
    line.build();
    let mut examples = BTreeSet::new();
    let mut next = vec![&line];
    while let Some(command) = next.pop() {
        next.extend(command.get_subcommands());
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let help: String = help.split("\\\n").map(str::trim_start).collect();
        let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with("rdmascope "));
        // An explanation stands apart from its example.
        let lines = lines.filter_map(|line| line.split("  ").next());
        examples.extend(lines.flat_map(|line| calls(line).unwrap_or_else(|why| panic!("{line}: {why}"))));
    }
    assert!(examples.len() > 100, "{}", examples.len());
    let wrong = examples.into_iter().filter_map(|words| refusal(&Shown { words, is_named: false }));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_are_found_and_wrong_ones_are_refused() {
    let page = "`rdmascope lat` and `rdmascope lat\nsend --none`.\n\n| `rdmascope lat` |\n\n```sh\n\
        A=b sudo ./rdmascope bw \\\n  tcp HOST | less   # node7's\nsbatch --wrap 'rdmascope fleet --rounds N'\n\
        cargo test -p rdmascope --test program\n```\n\n```text\nrdmascope none\n```\n";
    let found: Vec<(String, bool)> =
        shown(page).into_iter().map(|shown| (shown.words.join(" "), shown.is_named)).collect();
    let expected = [
        ("bw tcp HOST", false),
        ("fleet --rounds N", false),
        ("lat", false),
        ("lat", true),
        ("lat send --none", true),
    ];
    assert_eq!(found, expected.map(|(text, is_named)| (text.to_owned(), is_named)));
    let refused: Vec<String> = shown(page).iter().filter_map(refusal).collect();
    assert!(refused.len() == 2 && refused[1].contains("--none"), "{refused:?}");
    let is_refused = |text: &str| {
        let words = text.split(' ').map(str::to_owned).collect();
        refusal(&Shown { words, is_named: true }).is_some()
    };
    for text in
        ["run nosuchplan", "run quick --set none=1", "lat send -W 5", "ib_send_lat", "lat send --expect x"]
    {
        assert!(is_refused(text), "{text}");
    }
    for text in ["run PLAN --dry-run", "pairs OPERATION", "lat send --help", "transfer"] {
        assert!(!is_refused(text), "{text}");
    }
}
