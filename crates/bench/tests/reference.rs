//! docs/axes.md and docs/plan-reference.md say what the definitions say that read plans.

use std::path::Path;

use bench::axis::{AxisRow, Kind, ROWS, Sets};
use bench::point::{Carrier, Choice, Pattern};

const HEAD: &str = "\
# Axes

Every axis of an experiment, from the rows that plans, flags, checks, records and tables read
(`crates/bench/src/axis/table.rs`). `rdmascope COMMAND --help` says which flags a command has.

In a plan, an axis is a key of `[experiment.axes]` with one value or a list. A flag takes several
values with commas.
";

/// A text in lines of at most 100 characters, a prefix before those behind the first.
fn wrapped(text: &str, prefix: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() >= 100 {
            lines += &(line.trim_end().to_owned() + "\n");
            line = prefix.to_owned();
        }
        line += &format!("{word} ");
    }
    lines + line.trim_end() + "\n"
}

/// The section of an axis.
fn section(row: &AxisRow) -> String {
    let mut text = format!("\n## `{}`\n\n{}\n", row.name, wrapped(&format!("{}.", row.help()), ""));
    let line = |name: &str, words: &str| match words {
        "" => String::new(),
        words => wrapped(&format!("- {name}: {words}"), "  "),
    };
    match row.kind {
        Kind::Choice(variants) => {
            text += &line("values", "one of");
            for variant in
                row.none.iter().map(|none| (*none, "")).chain(variants.iter().map(|of| (of.word, of.help())))
            {
                let (word, help) = variant;
                let help = if help.is_empty() { String::new() } else { format!(": {help}") };
                text += &wrapped(&format!("  - `{word}`{help}"), "    ");
            }
        }
        _ => text += &line("values", &row.expected()),
    }
    let most = row.most.map(|most| format!("at most {} ({})", most.most, most.why));
    let least = (row.least > 0).then(|| format!("at least {}", row.least));
    text += &line("bounds", &least.into_iter().chain(most).collect::<Vec<_>>().join(", "));
    text += &line("unit", row.unit.unwrap_or_default());
    let endpoints = Carrier::VALUES.iter().filter(|carrier| (row.is_for)(**carrier)).map(|of| of.word());
    let endpoints: Vec<_> = endpoints.collect();
    let are_all = endpoints.len() == Carrier::VALUES.len();
    text += &line("endpoints", &if are_all { "all".to_owned() } else { endpoints.join(", ") });
    let patterns: Vec<_> =
        Pattern::all().filter(|pattern| pattern.has_axis(row)).map(Pattern::name).collect();
    let are_all = patterns.len() == Pattern::all().count();
    text += &line("patterns", &if are_all { "all".to_owned() } else { patterns.join(", ") });
    let flags = row.flags.iter().map(|flag| {
        let letter = flag.letter.map_or(String::new(), |letter| format!("-{letter}, "));
        match flag.sets {
            Sets::Value(name) => format!("`{letter}--{} <{name}>`", flag.long),
            Sets::UpTo(name, help) => format!("`{letter}--{} <{name}>` ({help})", flag.long),
            Sets::Word(word, _) => format!("`{letter}--{}` for `{word}`", flag.long),
        }
    });
    text += &line("flags", &flags.collect::<Vec<_>>().join(", "));
    text
}

#[test]
fn the_reference_of_plans_is_made_of_what_reads_them() {
    is_fresh("plan-reference.md", &bench::plan::reference());
}

#[test]
fn the_reference_of_axes_is_made_of_their_rows() {
    let text = HEAD.to_owned() + &ROWS.iter().map(|row| section(row)).collect::<String>();
    is_fresh("axes.md", &text);
}

/// Whether a page is what is generated, or becomes it.
fn is_fresh(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let how = "is stale; rewrite it with: UPDATE_REFERENCE=1 cargo test -p bench --test reference";
    assert!(found == text, "docs/{page} {how}");
}
