//! The reference of axes, generated from their rows.

use measure::text::wrapped;

use crate::axis::{AxisRow, Kind, ROWS, Sets};
use crate::point::{Carrier, Choice, Pattern};

/// The reference as Markdown, which is docs/axes.md.
pub fn axes() -> String {
    HEAD.to_owned() + &ROWS.iter().map(|row| section(row)).collect::<String>()
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

const HEAD: &str = "\
# Axes

This page lists every axis of an experiment. It is generated from the definitions that plans, flags
and tables use (`crates/bench/src/axis/table.rs`). `rdmascope COMMAND --help` lists the flags of a
command.

In a plan, an axis is a key of `[experiment.axes]` with one value or a list. A flag takes several
values with commas.
";
