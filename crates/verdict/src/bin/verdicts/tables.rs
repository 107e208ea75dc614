//! The tables of the documentation, of the rates in `docs/error-rates.csv`.

use std::path::Path;

use measure::text::grouped;

use crate::kept::Kept;
use crate::rates::Rate;
use crate::settings::Settings;
use crate::{MEASURED, PROCEDURES, rows};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
const FILE: &str = "error-rates.csv";

/// A table of a page, where its first line, with the titles of the columns, says where it is.
struct Table {
    page: &'static str,
    first_title: &'static str,
    lines: &'static [Line],
    /// The columns after the first one.
    columns: &'static [Column],
    /// A line below the others.
    last_line: &'static str,
}

/// A line: its title, and how the names of its rows begin or end.
struct Line(&'static str, &'static str);

/// A column. It shows the largest rate of its rows, whose names are that of the line in place of
/// `{}`, and anything in place of `*`.
struct Column {
    title: &'static str,
    rows: &'static [&'static str],
    /// Shown are the trials without a promise instead of the wrong ones.
    is_of_not_promised: bool,
}

const fn wrong(title: &'static str, rows: &'static [&'static str]) -> Column {
    Column { title, rows, is_of_not_promised: false }
}

const fn not_promised(title: &'static str, rows: &'static [&'static str]) -> Column {
    Column { is_of_not_promised: true, ..wrong(title, rows) }
}

const HEALTHY: Column = wrong("healthy: somebody named", &["{}, noise *: none", "{}, noise *: far none"]);
const HOST: Column = wrong(
    "host or group: not exactly that named",
    &[
        "{}, noise *: one way",
        "{}, noise *: both",
        "{}, noise *: group",
        "{}, noise *: between",
        "{}, noise *: two hosts",
        "{}, noise *: far send",
    ],
);
const PAIR: Column = wrong(
    "pair: not exactly that named",
    &["{}, noise *: direction", "{}, noise *: pair", "{}, noise *: host + pair"],
);

const TABLES: [Table; 9] = [
    Table {
        page: "fleet.md",
        first_title: "hosts",
        lines: &[
            Line("4", "fleet, n=4"),
            Line("8", "fleet, n=8"),
            Line("32", "fleet, n=32"),
            Line("128", "fleet, n=128"),
            Line("512", "fleet, n=512"),
            Line("12 in three leaves", "fleet, n=12, three leaves"),
            Line("64, `--schedule random`", "fleet, n=64, random"),
            Line("8, `--schedule isolated`", "fleet, n=8, isolated"),
            Line("8, `--passes 2`", "fleet, n=8, two passes"),
            Line("32, `--passes 1`", "fleet, n=32, one pass"),
            Line("16 with two rails", "fleet, n=32, two rails"),
            Line("8 with four separate rails", "fleet, n=32, separate rails"),
            Line("8, `--parallel 2`", "fleet, n=8, 2 pairs at a time"),
            Line("32, `--parallel 5`", "fleet, n=32, 5 pairs at a time"),
            Line("8, cut in pass 3", "fleet, n=8, cut in pass 3"),
            Line("160, `--time 10min`", "fleet, n=160, cut in pass 3"),
            Line("256, `--time 10min`", "fleet, n=256, cut in pass 2"),
            Line("512, `--time 10min`", "fleet, n=512, cut in pass 1"),
            Line("32, with a limit 25 % below", "fleet, n=32, limit"),
            Line("8, with a baseline", "fleet, n=8, baseline"),
            Line("32, with a baseline", "fleet, n=32, baseline"),
        ],
        columns: &[HEALTHY, HOST, PAIR],
        last_line: "| bar | 1 % | 1 %; 3 % for 4 hosts, 8 with a baseline, three leaves, and one pass | \
                    1 %; 3 % for 4 hosts, 8 with a baseline, three leaves, and one pass |",
    },
    Table {
        page: "fleet.md",
        first_title: "not decided for want of time",
        lines: &[
            Line("8, cut in pass 3", "fleet, n=8, cut in pass 3"),
            Line("160, `--time 10min`", "fleet, n=160, cut in pass 3"),
            Line("256, `--time 10min`", "fleet, n=256, cut in pass 2"),
            Line("512, `--time 10min`", "fleet, n=512, cut in pass 1"),
        ],
        columns: &[
            not_promised("healthy, noise A and B", &["{}, noise A: none", "{}, noise B: none"]),
            not_promised("healthy, noise C", &["{}, noise C: none"]),
            not_promised(
                "with a culprit",
                &["{}, noise *: one way", "{}, noise *: both", "{}, noise *: group", "{}, noise *: pair"],
            ),
        ],
        last_line: "",
    },
    Table {
        page: "fleet.md",
        first_title: "healthy hosts",
        lines: &[Line("8", "fleet, n=8"), Line("32", "fleet, n=32")],
        columns: &[
            wrong(
                "visits 0 rounds apart: somebody named",
                &["{}, noise C: none, long flips, visits 0 rounds apart"],
            ),
            wrong("60 rounds apart", &["{}, noise C: none, long flips, visits 60 rounds apart"]),
            wrong("300 rounds apart", &["{}, noise C: none, long flips, visits 300 rounds apart"]),
        ],
        last_line: "",
    },
    Table {
        page: "fleet.md",
        first_title: "healthy hosts, with a limit 5 % below the slowest pair",
        lines: &[Line("32", "fleet, n=32, near limit")],
        columns: &[
            wrong("noise A: missed", &["{}, noise A: none"]),
            wrong("noise B: missed", &["{}, noise B: none"]),
            wrong("noise C: missed", &["{}, noise C: none"]),
        ],
        last_line: "",
    },
    Table {
        page: "fleet.md",
        first_title: "measured hosts",
        lines: &[
            Line("4 agents over the software device", "fleet, softdev n=4"),
            Line("8 agents over the software device", "fleet, softdev n=8"),
            Line("4 network namespaces", "fleet, namespaces n=4"),
            Line("8 network namespaces", "fleet, namespaces n=8"),
        ],
        columns: &[
            wrong("healthy: somebody named", &["{}: none", "{}: two groups"]),
            wrong(
                "host or group: not exactly that named",
                &["{}: send", "{}: receive", "{}: both", "{}: latency", "{}: group", "{}: group sends"],
            ),
            wrong("pair: not exactly that named", &["{}: direction", "{}: pair"]),
        ],
        last_line: "| bar | 1 % | 1 %; 3 % for 4 hosts | 1 %; 3 % for 4 hosts |",
    },
    Table {
        page: "compare.md",
        first_title: "points",
        lines: &[
            Line("1", "compare, m=1"),
            Line("8", "compare, m=8"),
            Line("33", "compare, m=33"),
            Line("100", "compare, m=100"),
            Line("8, four of them on steps of the clock", "compare, m=8 on clock steps"),
            Line("1, recorded", "compare, m=1 recorded"),
            Line("12, recorded", "compare, m=12 recorded"),
        ],
        columns: &[
            wrong(
                "no difference: `worse` or `better`",
                &[
                    "{} n=* random order: no difference, worse or better said",
                    "{} n=* by turns: no difference, worse or better said",
                ],
            ),
            wrong(
                "twice what the run detects: not found",
                &[
                    "{} n=* random order: twice the stated, not found",
                    "{} n=* by turns: twice the stated, not found",
                ],
            ),
            wrong(
                "6 % worse: `same`",
                &["{} n=* random order: 6 % worse, same said", "{} n=* by turns: 6 % worse, same said"],
            ),
            wrong(
                "no difference, single sessions with a history: `worse` or `better`",
                &["{} n=* sessions with history: no difference, worse or better said"],
            ),
        ],
        last_line: "| bar | 5 % | 5 % | 2.5 % | 5 % |",
    },
    Table {
        page: "compare.md",
        first_title: "runs",
        lines: &[
            Line("100", "trend, 100 runs"),
            Line("100, of 8 points", "trend, 100 runs of 8 points"),
            Line("100, of 33 points", "trend, 100 runs of 33 points"),
            Line("60", "trend, 60 runs"),
            Line("30", "trend, 30 runs"),
            Line("15", "trend, 15 runs"),
        ],
        columns: &[
            wrong("independent: a change said", &["{}, recorded shape: no change, one said"]),
            wrong(
                "flips between placements: a change said",
                &["{}, recorded shape, flips: no change, one said"],
            ),
            wrong("correlation of neighbours 0.4: a change said", &["{}, AR(0.4), t4: no change, one said"]),
            wrong("independent, 10 % worse: not said", &["{}, recorded shape: 10 % worse, not said"]),
            wrong("flips, 10 % worse: not said", &["{}, recorded shape, flips: 10 % worse, not said"]),
        ],
        last_line: "| bar | 3 % | 3 % | 3 % | | |",
    },
    Table {
        page: "compare.md",
        first_title: "calls",
        lines: &[
            Line("by one of them", "1 successive calls"),
            Line("by five in a row", "5 successive calls"),
        ],
        columns: &[
            wrong(
                "independent: a change said",
                &["trend, 100 runs, recorded shape: no change, one said by {}"],
            ),
            wrong(
                "flips between placements: a change said",
                &["trend, 100 runs, recorded shape, flips: no change, one said by {}"],
            ),
            wrong(
                "correlation of neighbours 0.4: a change said",
                &["trend, 100 runs, AR(0.4), t4: no change, one said by {}"],
            ),
            wrong(
                "recorded order, margin 5 %: a change said",
                &["trend, 100 runs, recorded order, margin 5 %: no change, one said by {}"],
            ),
        ],
        last_line: "",
    },
    Table {
        page: "compare.md",
        first_title: "runs in recorded order",
        lines: &[Line("100", "trend, 100 runs"), Line("15", "trend, 15 runs")],
        columns: &[wrong(
            "a change said, margin 5 %",
            &["{}, recorded order, margin 5 %: no change, one said"],
        )],
        last_line: "",
    },
];

impl Column {
    /// Whether a row is one of this column in a line.
    fn has(&self, line: &Line, name: &str) -> bool {
        self.rows.iter().any(|row| is_like(name, row, line))
    }

    /// The largest rate of the rows.
    fn cell(&self, line: &Line, names: &[String], kept: &Kept) -> String {
        let names: Vec<&String> = names.iter().filter(|name| self.has(line, name)).collect();
        if names.is_empty() {
            return "-".to_owned();
        }
        let Some(rates) = names.iter().map(|name| kept.rates.get(*name)).collect::<Option<Vec<&Rate>>>()
        else {
            return "not measured".to_owned();
        };
        let shown = |rate: &&Rate| match self.is_of_not_promised {
            false => (*rate).clone(),
            true => Rate { errors: rate.not_promised, trials: rate.tried(), ..(*rate).clone() },
        };
        let largest = rates.iter().map(shown).max_by(|a, b| {
            let order = |rate: &Rate| (rate.share(), rate.interval()[1]);
            order(a).partial_cmp(&order(b)).expect("a share is a number")
        });
        largest.map_or(String::new(), |rate| {
            let [lower, upper] = rate.interval().map(percent);
            format!("{} % [{lower}, {upper}] of {}", percent(rate.share()), grouped(rate.trials))
        })
    }
}

impl Table {
    fn first_line(&self) -> String {
        let titles: Vec<&str> = self.columns.iter().map(|column| column.title).collect();
        format!("| {} | {} |", self.first_title, titles.join(" | "))
    }

    /// The table as it stands on its page.
    fn text(&self, names: &[String], kept: &Kept) -> String {
        let mut text = format!("{}\n", self.first_line());
        text += &format!("|{}\n", "---|".repeat(self.columns.len() + 1));
        for line in self.lines {
            let cells: Vec<String> =
                self.columns.iter().map(|column| column.cell(line, names, kept)).collect();
            text += &format!("| {} | {} |\n", line.0, cells.join(" | "));
        }
        if !self.last_line.is_empty() {
            text += &format!("{}\n", self.last_line);
        }
        text
    }

    /// The text of the page with this table in its place.
    fn put(&self, page: &str, names: &[String], kept: &Kept) -> String {
        let first_line = self.first_line();
        let start = page.find(&first_line);
        let start = start.unwrap_or_else(|| panic!("{} has no table {first_line}", self.page));
        let end = page[start..].find("\n\n").map_or(page.len(), |length| start + length + 1);
        format!("{}{}{}", &page[..start], self.text(names, kept), &page[end..])
    }
}

/// Whether a name is like a pattern of a column, in which `*` stands for anything, in a line.
fn is_like(name: &str, pattern: &str, line: &Line) -> bool {
    let pattern = pattern.replace("{}", line.1);
    match pattern.split_once('*') {
        None => name == pattern,
        Some((first, last)) => {
            name.len() >= first.len() + last.len() && name.starts_with(first) && name.ends_with(last)
        }
    }
}

/// A share in percent, with two digits or fewer.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let text = match percent {
        ..0.095 => format!("{percent:.2}"),
        ..9.95 => format!("{percent:.1}"),
        _ => format!("{percent:.0}"),
    };
    match text.trim_end_matches('0') {
        "0." => "0".to_owned(),
        _ => text,
    }
}

/// All rows of the full forms.
fn all_names() -> Vec<String> {
    let simulated = Settings { is_full: true, ..Settings::default() };
    let measured = Settings { fleets: Some(1), ..Settings::default() };
    let rows = [rows(&PROCEDURES, &simulated), rows(&MEASURED, &measured)];
    rows.into_iter().flatten().map(|row| row.name).collect()
}

fn kept() -> Kept {
    Kept::read(&Path::new(DOCS).join(FILE)).unwrap()
}

/// `RDMASCOPE_BLESS=1` writes the tables.
#[test]
fn the_tables_of_the_documentation_have_the_rates_of_the_file() {
    let names = all_names();
    let kept = kept();
    for page in ["fleet.md", "compare.md"] {
        let path = Path::new(DOCS).join(page);
        let is = std::fs::read_to_string(&path).unwrap();
        let tables = TABLES.iter().filter(|table| table.page == page);
        let should = tables.fold(is.clone(), |text, table| table.put(&text, &names, &kept));
        if std::env::var_os("RDMASCOPE_BLESS").is_some() {
            std::fs::write(&path, &should).unwrap();
        } else {
            assert!(is == should, "{page} has other rates than {FILE}: RDMASCOPE_BLESS=1 writes them");
        }
    }
}

#[test]
fn each_rate_of_the_file_is_that_of_a_row_and_within_its_bar() {
    let names = all_names();
    for rate in kept().rates.values() {
        assert!(names.contains(&rate.name), "no row has the name {}", rate.name);
        assert!(!rate.is_missed(), "{}", rate.line());
    }
}

#[test]
fn each_pattern_of_a_table_is_that_of_a_row() {
    let names = all_names();
    for table in &TABLES {
        for column in table.columns {
            for row in column.rows {
                let is_shown = |name: &String| table.lines.iter().any(|line| is_like(name, row, line));
                assert!(names.iter().any(is_shown), "{}: no row is like {row}", column.title);
            }
        }
    }
}

#[test]
fn each_row_of_a_fleet_is_in_a_table() {
    let is_in = |table: &Table, name: &str| {
        table.columns.iter().any(|column| table.lines.iter().any(|line| column.has(line, name)))
    };
    for name in all_names().iter().filter(|name| name.starts_with("fleet, ")) {
        assert!(TABLES.iter().any(|table| is_in(table, name)), "no table has {name}");
    }
}

#[test]
fn shares_have_two_digits() {
    let shown = [0.0, 0.000_04, 0.000_18, 0.000_9, 0.000_96, 0.002, 0.0994, 0.1, 0.22, 1.0].map(percent);
    assert_eq!(shown, ["0", "0", "0.02", "0.09", "0.1", "0.2", "9.9", "10", "22", "100"]);
    assert_eq!([0, 999, 1000, 12_345, 1_234_567].map(grouped), ["0", "999", "1,000", "12,345", "1,234,567"]);
}
