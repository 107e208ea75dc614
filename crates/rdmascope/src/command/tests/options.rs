//! Tables of options on pages: what they say is what the parser does.
//!
//! In a table with the heading `option`, the first cell of a row has one option or several as code:
//! `-s SIZE`, `-v, --verbose`, `--no-delay[=BOOL]`. All other code in the columns `meaning` and
//! `default` is a value that these options accept, or another option of the page's commands. A row
//! that names one of several possible values names all of them, unless it says "such as".
//!
//! Code and numbers in the column `default` are defaults that the help states for one of the page's
//! commands; a part that begins with "with" is about another option. The column `axis` has the axis
//! that the options set.
//!
//! In a table whose heading is an option, the first column lists all values of that option.
//!
//! A page of a pattern shows all options that its command has beyond those of every pattern.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bench::axis::ROWS;
use bench::plan::offer::carrier;
use bench::point::{Carrier, Pattern};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};

use self::table::{Shown, Table, codes, option, tables, words};
use super::{pages, read};
use crate::cli::{Amount, PlanPlacement};

mod table;

/// Options of every pattern that are not among the options for the amount, the ranks and the hosts.
const SHARED: [&str; 3] = ["all", "color", "help"];

fn takes_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.takes_values())
}

/// Returns the default that the help states for an option, unless it is a description.
fn stated(arg: &Arg) -> Option<String> {
    if !takes_value(arg) {
        return None;
    }
    let given: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let text = if given.is_empty() {
        let help = arg.get_help()?.to_string();
        help.split_once("[default: ")?.1.split(']').next()?.to_owned()
    } else {
        given.join(",")
    };
    // The rest explains it, as in `0, none`.
    let value = text.split(", ").next()?;
    (!value.contains(' ')).then(|| value.to_owned())
}

/// A command that a page describes.
struct Described<'a> {
    words: Vec<&'static str>,
    command: &'a Command,
}

impl<'a> Described<'a> {
    /// Returns the option of a name, even if the help does not list it.
    fn find(&self, name: &str) -> Option<&'a Arg> {
        let is_it = |arg: &&Arg| match name.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|letter| name == format!("-{letter}")),
        };
        self.command.get_arguments().find(is_it)
    }

    /// Whether the program accepts an option with a value.
    fn accepts(&self, arg: &Arg, value: &str) -> bool {
        let Some(long) = arg.get_long().filter(|_| takes_value(arg)) else { return false };
        let possible = arg.get_possible_values();
        let is_possible = |word: &str| possible.iter().any(|value| value.matches(word, true));
        if !possible.is_empty() && !value.split(',').all(is_possible) {
            return false;
        }
        let option = format!("--{long}={}", value.trim_matches('\''));
        // The default size of a stream is too long for a datagram.
        ["", "--size=64"].into_iter().any(|size| {
            let words = self.words.iter().copied().chain([&*option, size]);
            let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
            let Err(error) = read(&words) else { return true };
            // The parser reads all values before it asks for missing arguments.
            let is_read = |error: &clap::Error| error.kind() == ErrorKind::MissingRequiredArgument;
            // A program with all features accepts the value.
            error.downcast_ref::<clap::Error>().is_some_and(is_read)
                || error.to_string().contains("program is built without")
        })
    }
}

/// Returns the words of the commands of patterns over some endpoints.
fn commands(is_meant: impl Fn(Pattern, Carrier) -> bool) -> Vec<Vec<&'static str>> {
    let mut all = Vec::new();
    for pattern in Pattern::offered() {
        let command = pattern.command();
        let subjects: Vec<_> = command.subjects().map(Some).collect();
        let subjects = if subjects.is_empty() { vec![None] } else { subjects };
        let meant = subjects.into_iter().filter(|subject| is_meant(pattern, carrier(*subject)));
        let words = meant.map(|subject| std::iter::once(command.name).chain(subject.map(|of| of.name)));
        all.extend(words.map(Iterator::collect));
    }
    all
}

/// What a page describes.
struct Page<'a> {
    commands: Vec<Described<'a>>,
    /// Whether it shows all options of its own commands.
    is_whole: bool,
}

impl<'a> Page<'a> {
    /// Returns what a page describes, by its path below `docs`.
    fn of(path: &str, line: &'a Command) -> Self {
        let name = path.trim_start_matches("patterns/").trim_end_matches(".md");
        let all = match name {
            "fleet" => vec![vec!["fleet"]],
            "mpi" => commands(|_, carrier| carrier.is_mpi()),
            "sockets" => commands(|_, carrier| !carrier.is_mpi() && !carrier.is_verbs()),
            "software-device" => vec![vec!["exec"]],
            "transfer" => vec![vec!["transfer"]],
            _ => commands(|pattern, _| pattern.name() == name),
        };
        let described = |words: Vec<&'static str>| {
            let found = words.iter().try_fold(line, |command, word| command.find_subcommand(word));
            Described { command: found.unwrap_or_else(|| panic!("no command {words:?}")), words }
        };
        let is_whole = !["fleet", "mpi", "sockets"].contains(&name);
        Self { commands: all.into_iter().map(described).collect(), is_whole }
    }

    /// Returns what is wrong with a page, and how many rows of tables were checked.
    fn check(&self, text: &str) -> (Vec<String>, usize) {
        let mut wrong: Vec<String> = self.absent(text).into_iter().collect();
        let mut count = 0;
        for table in tables(text) {
            let heading = table.heading.first().map_or("", String::as_str);
            if heading == "option" {
                wrong.extend(table.rows.iter().flat_map(|row| self.row(&table, row)));
            } else if let Some(shown) = codes(heading).find_map(option) {
                wrong.extend(self.values(&shown, &table));
            } else {
                continue;
            }
            count += table.rows.len();
        }
        (wrong, count)
    }

    /// Returns the options of the page's own commands that it does not show.
    fn absent(&self, text: &str) -> BTreeSet<String> {
        let shared = PlanPlacement::augment_args(Amount::augment_args(Command::new("shared")));
        let is_shared = |arg: &Arg| {
            let mut others = shared.get_arguments();
            SHARED.contains(&arg.get_id().as_str()) || others.any(|other| other.get_id() == arg.get_id())
        };
        let is_end = |c: char| c.is_whitespace() || "`=[],()".contains(c);
        let words: BTreeSet<&str> = text.split(is_end).collect();
        let mut absent = BTreeSet::new();
        if !self.is_whole {
            return absent;
        }
        for described in &self.commands {
            let is_own =
                |arg: &&Arg| arg.get_help_heading().is_none() && !arg.is_hide_set() && !is_shared(arg);
            for arg in described.command.get_arguments().filter(is_own) {
                let long = arg.get_long().map(|long| format!("--{long}"));
                let letter = arg.get_short().map(|letter| format!("-{letter}"));
                let is_shown = [&long, &letter].into_iter().flatten().any(|name| words.contains(&**name));
                absent.extend(long.filter(|_| !is_shown).map(|name| format!("{name} is not on this page")));
            }
        }
        absent
    }

    /// Returns the page's commands whose help lists an option, each with the option.
    fn listed(&self, shown: &Shown<'_>) -> Vec<(&Described<'a>, &'a Arg)> {
        let find = |described: &Described<'a>| {
            let found = shown.names.first().and_then(|name| described.find(name));
            found.filter(|arg| !arg.is_hide_set())
        };
        self.commands.iter().filter_map(|described| Some((described, find(described)?))).collect()
    }

    fn accepts(&self, shown: &Shown<'_>, value: &str) -> bool {
        self.listed(shown).into_iter().any(|(described, arg)| described.accepts(arg, value))
    }

    /// Returns the possible values of an option, if it has some. Not every pattern accepts all.
    fn possible(&self, shown: &Shown<'_>) -> BTreeSet<String> {
        let args = self.listed(shown).into_iter().map(|(_, arg)| arg);
        let values = args.flat_map(Arg::get_possible_values).filter(|value| !value.is_hide_set());
        values.map(|value| value.get_name().to_owned()).collect()
    }

    /// Returns what is wrong with an option, wherever a page names it.
    fn option(&self, shown: &Shown<'_>) -> Option<String> {
        let name = shown.names.join(", ");
        let listed = self.listed(shown);
        let Some((_, first)) = listed.first() else {
            return Some(format!("no command of this page has the option {name}"));
        };
        let is_same = |other: &str| {
            let found = |described: &Described<'a>| described.find(other).map(Arg::get_id);
            listed.iter().all(|(described, arg)| found(described) == Some(arg.get_id()))
        };
        if !shown.names.iter().all(|other| is_same(other)) {
            return Some(format!("{name} are several options"));
        }
        let value = shown.value?;
        if !takes_value(first) {
            return Some(format!("{name} has no value"));
        }
        let help = first.get_value_names().unwrap_or_default().join(" ");
        let is_right = value == help || value.split('|').all(|value| self.accepts(shown, value));
        (!is_right).then(|| format!("{name} does not accept {value}, and its value is {help} in the help"))
    }

    /// Returns what is wrong with an option that a table shows without the value that it needs.
    fn bare(&self, shown: &Shown<'_>) -> Option<String> {
        let needs = |arg: &Arg| arg.get_num_args().is_some_and(|range| range.min_values() > 0);
        let is_bare = shown.value.is_none() && self.listed(shown).into_iter().any(|(_, arg)| needs(arg));
        is_bare.then(|| format!("{} needs a value", shown.names.join(", ")))
    }

    /// Returns what is wrong with a row of a table of options.
    fn row(&self, table: &Table, row: &[String]) -> Vec<String> {
        let first = row.first().map_or("", String::as_str);
        let options: Vec<Shown<'_>> = codes(first).filter_map(option).collect();
        let of_option = |shown: &Shown<'_>| self.option(shown).or_else(|| self.bare(shown));
        let mut wrong: Vec<String> = options.iter().filter_map(of_option).collect();
        // Nothing is known about options that do not exist.
        if wrong.is_empty() && !options.is_empty() {
            let meaning = table.cell(row, "meaning").unwrap_or_default();
            let default = table.cell(row, "default").unwrap_or_default();
            wrong.extend(codes(meaning).chain(codes(default)).filter_map(|code| self.code(&options, code)));
            wrong.extend(self.unnamed(&options, meaning, default));
            let defaults = table.cell(row, "default").map(|cell| self.defaults(&options, cell));
            wrong.extend(defaults.into_iter().flatten());
            wrong.extend(table.cell(row, "axis").and_then(|cell| self.axis(&options, cell)));
        }
        wrong.into_iter().map(|why| format!("{first}: {why}")).collect()
    }

    /// Returns what is wrong with code behind the options of a row.
    fn code(&self, options: &[Shown<'_>], code: &str) -> Option<String> {
        if let Some(other) = option(code) {
            return self.option(&other);
        }
        let is_value = options.iter().any(|shown| self.accepts(shown, code));
        (!is_value).then(|| format!("does not accept {code}"))
    }

    /// Returns the possible values that a row leaves out, if it names some.
    fn unnamed(&self, options: &[Shown<'_>], meaning: &str, default: &str) -> Vec<String> {
        let values = options.iter().filter_map(|shown| shown.value).flat_map(|value| value.split('|'));
        let named: BTreeSet<&str> = values.chain(codes(meaning)).collect();
        let is_named = |value: &String| named.contains(&**value);
        let mut unnamed = Vec::new();
        for shown in options.iter().filter(|_| !meaning.contains("such as")) {
            let possible = self.possible(shown);
            if possible.iter().any(is_named) {
                let others = possible.into_iter().filter(|value| !is_named(value));
                let others = others.filter(|value| !codes(default).any(|code| code == value));
                unnamed.extend(others.filter(|value| self.accepts(shown, value)));
            }
        }
        unnamed.into_iter().map(|value| format!("does not name the value {value}")).collect()
    }

    /// Returns what is wrong with the defaults of a row's options.
    fn defaults(&self, options: &[Shown<'_>], cell: &str) -> Vec<String> {
        let listed = options.iter().flat_map(|shown| self.listed(shown));
        let listed_defaults: BTreeSet<String> = listed.filter_map(|(_, arg)| stated(arg)).collect();
        let shown = words(cell);
        let is_shown = |value: &&String| shown.iter().any(|(word, _)| word == *value);
        let lacking = listed_defaults.iter().filter(|value| !is_shown(value));
        let mut wrong: Vec<String> = lacking.map(|value| format!("has the default {value}")).collect();
        if listed_defaults.is_empty() {
            // The help says it in words, or leaves it to the pattern.
            return wrong;
        }
        // Some commands have only one value of the option, so that their help does not list it.
        let names = options.iter().flat_map(|shown| &shown.names);
        let found = names.flat_map(|name| self.commands.iter().filter_map(|described| described.find(name)));
        let all: BTreeSet<String> = found.filter_map(stated).collect();
        let parts = cell.split(';').filter(|part| !part.trim().starts_with("with "));
        let values = parts.flat_map(words).filter(|(_, is_value)| *is_value).map(|(value, _)| value);
        let others = values.filter(|value| !all.contains(value));
        wrong.extend(others.map(|value| format!("{value} is no default")));
        wrong
    }

    /// Returns what is wrong with the axis of a row's options.
    fn axis(&self, options: &[Shown<'_>], cell: &str) -> Option<String> {
        let axis_of = |arg: &Arg| {
            let sets = |long: &str| ROWS.iter().find(|row| row.flags.iter().any(|flag| flag.long == long));
            arg.get_long().and_then(sets).map(|row| row.name)
        };
        let mut args = options.iter().flat_map(|shown| self.listed(shown)).map(|(_, arg)| arg);
        let wrong = args.find(|arg| axis_of(arg) != codes(cell).next())?;
        Some(format!("{} sets the axis {}", wrong.get_id(), axis_of(wrong).unwrap_or("none")))
    }

    /// Returns what is wrong with a table of the values of an option.
    fn values(&self, shown: &Shown<'_>, table: &Table) -> Vec<String> {
        let name = shown.names.join(", ");
        let firsts: Vec<&str> = table.rows.iter().filter_map(|row| row.first()).map(String::as_str).collect();
        let named: BTreeSet<&str> = firsts.iter().copied().flat_map(codes).collect();
        let unknown = named.iter().filter(|value| !self.accepts(shown, value));
        let mut wrong: Vec<String> = self.option(shown).into_iter().collect();
        wrong.extend(unknown.map(|value| format!("{name} does not accept {value}")));
        let possible = self.possible(shown);
        let unnamed = possible.iter().filter(|value| !named.contains(&***value));
        let unnamed = unnamed.filter(|value| self.accepts(shown, value));
        wrong.extend(unnamed.map(|value| format!("{name}: the table does not name the value {value}")));
        let known: BTreeSet<String> =
            self.listed(shown).into_iter().filter_map(|(_, arg)| stated(arg)).collect();
        let defaults = firsts.into_iter().filter(|cell| cell.ends_with("(default)")).flat_map(codes);
        let others = defaults.filter(|value| !known.contains(*value));
        wrong.extend(others.map(|value| format!("{name}: {value} is no default")));
        wrong
    }
}

/// Returns the command line with the options of all commands.
fn built() -> Command {
    let mut line = crate::command::command();
    line.build();
    line
}

#[test]
fn the_tables_of_options_agree_with_the_parser() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let line = built();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in pages(&docs) {
        let name = path.strip_prefix(&docs).unwrap().display().to_string();
        let (found, rows) = Page::of(&name, &line).check(&fs::read_to_string(&path).unwrap());
        wrong.extend(found.into_iter().map(|why| format!("{name}: {why}")));
        count += rows;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count}");
}

/// Returns what is wrong with a table, on a page that need not show all options.
fn wrong_on(page: Page<'_>, heading: &str, rows: &str) -> Vec<String> {
    let page = Page { is_whole: false, ..page };
    let (wrong, count) = page.check(&format!("A page.\n\n{heading}\n|---|---|---|\n{rows}\n"));
    assert_eq!(count, rows.lines().count());
    wrong
}

#[test]
fn a_wrong_row_of_a_table_is_found() {
    let line = built();
    let page = || Page::of("patterns/ping-pong.md", &line);
    let heading = "| option | meaning | default |";
    for (row, why) in [
        ("| `--none N` | what | 1 |", "no command of this page has the option --none"),
        ("| `-b` | the option of another pattern | off |", "no command of this page has the option -b"),
        ("| `-W FILE` | an option that is refused | |", "no command of this page has the option -W"),
        ("| `-n, --size N` | what | 1000 |", "-n, --size are several options"),
        ("| `-s` | bytes | 2 |", "-s needs a value"),
        ("| `--imm N` | what | off |", "--imm has no value"),
        ("| `-D SECONDS` | time | |", "-D does not accept SECONDS, and its value is TIME in the help"),
        ("| `-c SERVICE` | `RC` or `UD` | `RC` |", "does not name the value UC"),
        (r"| `-c RC\|UD` | service | `RC` |", "does not name the value UC"),
        ("| `-c SERVICE` | `RC`, `UC`, `UD` or `XRC` | `RC` |", "does not accept XRC"),
        ("| `-I SIZE` | not with `--none` | 0, none |", "no command of this page has the option --none"),
        ("| `-c SERVICE` | service | `UD`; sockets `RC` |", "UD is no default"),
        ("| `-r N` | depth | 1,024 |", "has the default 512"),
        ("| `-s SIZE` | bytes | 2; UDP 64 KiB |", "64KiB is no default"),
    ] {
        let wrong = wrong_on(page(), heading, row);
        assert!(wrong.iter().any(|found| found.ends_with(why)), "{row}: {wrong:?}");
    }
    for row in [
        "| `-s, --size SIZE` | bytes: `64,4KiB` | 2; atomics 8; with `--imm` 64 KiB |",
        "| `-n N`, `-D TIME` | messages, or time | 1000 messages |",
        r"| `-c RC\|UC\|UD` | service | `RC` |",
        "| `--poll MODE` | such as `event` | `busy`; sockets `event` |",
        "| `--no-delay[=BOOL]` | what | |",
        "| none | `what` | `what` |",
    ] {
        assert_eq!(wrong_on(page(), heading, row), [""; 0], "{row}");
    }
}

#[test]
fn a_wrong_axis_and_a_wrong_list_of_values_are_found() {
    let line = built();
    let heading = "| option | axis | meaning |";
    assert_eq!(wrong_on(Page::of("sockets.md", &line), heading, "| `-6` | `family` | what |"), [""; 0]);
    let wrong = wrong_on(Page::of("sockets.md", &line), heading, "| `-6` | `endpoint` | what |");
    assert_eq!(wrong, ["`-6`: ipv6 sets the axis family"]);
    let heading = "| `--start` | what | more |";
    let rows = "| `barrier` | | |\n| `none` (default) | | |\n| `never` | | |";
    let wrong = wrong_on(Page::of("patterns/halo.md", &line), heading, rows);
    let expected = [
        "--start does not accept never",
        "--start: the table does not name the value instant",
        "--start: the table does not name the value own_barrier",
        "--start: none is no default",
    ];
    assert_eq!(wrong, expected);
}

#[test]
fn a_page_shows_the_options_of_its_pattern() {
    let absent = Page::of("patterns/pairs.md", &built()).absent("| `--pairs N` | and `-s SIZE` |");
    let expected = ["--atomic_type", "--imm", "--mpi-call", "--stream"];
    assert_eq!(
        absent.into_iter().collect::<Vec<_>>(),
        expected.map(|name| format!("{name} is not on this page"))
    );
}
