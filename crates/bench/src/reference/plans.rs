//! The reference of plans: every table and key, generated from the definitions that read them.

use measure::conditions::Wanted;
use measure::expectation::Expectation;
use measure::figure::{CostRow, Figure, FigureKind, Marked, Reference, Unit};
use measure::finding::{Finding, FindingKind};
use measure::schema::{Field, fields, variants};
use measure::text::{self, wrapped};

use crate::application::{Application, Metric};
use crate::pattern::registry::Row;
use crate::plan::Settings;
use crate::point::Pattern;

/// The reference as Markdown, which is docs/plan-reference.md.
pub fn plans() -> String {
    let mut text = HEAD.to_owned();
    text += &table("The plan", "Keys outside of all tables.\n", &written(&PLAN));
    text += &table("`[[experiment]]`", EXPERIMENT, &experiment());
    text += &patterns();
    text += &section("`[experiment.axes]`", AXES);
    text += &section("`[experiment.quick]`", QUICK);
    let mut environment = fields::<Wanted>();
    environment.retain(|field| field.name != "ipoib_mode");
    environment.insert(
        0,
        field("name", "text", true, "Name of the environment, a value of the axis `environment`."),
    );
    text += &table("`[[environment]]`", ENVIRONMENT, &environment);
    text += &section("`[variables]`", VARIABLES);
    text += &table("`[[mode]]`", MODES, &written(&MODE));
    text += &table("`[[application]]`", APPLICATION, &fields::<Application>());
    text += &section("`[application.files]`", FILES);
    text += &table("`[[application.metric]]`", METRIC, &fields::<Metric>());
    let mut expectation = fields::<Expectation>();
    // Only `no_loss` needs none.
    expectation.iter_mut().filter(|field| field.name == "bound").for_each(|field| field.is_required = false);
    expectation.sort_by(Field::by_need);
    text += &table("`[[expect]]`", EXPECT, &expectation);
    text += &table("`[[figure]]`", FIGURE, &fields::<Figure>());
    text += &words("Kinds of figures", &variants::<FigureKind>());
    text += &table("`[[figure.row]]`", ROW, &fields::<CostRow>());
    text += &table("`[figure.marked]`", MARKED, &fields::<Marked>());
    let mut reference = fields::<Reference>();
    reference.retain(|field| field.name != "table");
    text += &table("`[figure.reference]`", REFERENCE, &reference);
    text += &table("`[[finding]]`", FINDING, &fields::<Finding>());
    text += &words("Kinds of findings", &variants::<FindingKind>());
    text += &words("Units", &variants::<Unit>());
    text
}

fn section(title: &str, text: &str) -> String {
    format!("\n## {title}\n\n{text}")
}

/// A section with a list of keys.
fn table(title: &str, text: &str, keys: &[Field]) -> String {
    let key = |key: &Field| {
        let required = if key.is_required { ", required" } else { "" };
        let head = format!("- `{}` ({}{required}): ", key.name, key.value);
        wrapped(&(head + &sentence(&key.help)), "  ")
    };
    section(title, text) + "\n" + &keys.iter().map(key).collect::<String>()
}

/// A section with the values of a key that are words.
fn words(title: &str, words: &[(String, String)]) -> String {
    let word = |(word, help): &(String, String)| wrapped(&format!("- `{word}`: {}", sentence(help)), "  ");
    format!("\n## {title}\n\n{}", words.iter().map(word).collect::<String>())
}

/// Turns documentation into a sentence with the names that plans use.
fn sentence(help: &str) -> String {
    text::sentence(help, plain)
}

/// Turns a name of Rust into the name that plans use.
fn plain(name: &str) -> String {
    match name.rsplit("::").next().unwrap_or(name) {
        "CostRow" => "[[figure.row]]".to_owned(),
        "LinkRates" => "link-rates".to_owned(),
        last => last.to_lowercase(),
    }
}

fn field(name: &str, value: &str, is_required: bool, help: &str) -> Field {
    Field { name: name.to_owned(), value: value.to_owned(), is_required, help: help.to_owned() }
}

fn written(rows: &[(&str, &str, bool, &str)]) -> Vec<Field> {
    rows.iter().map(|(name, value, is_required, help)| field(name, value, *is_required, help)).collect()
}

/// The keys of an experiment, with its settings.
fn experiment() -> Vec<Field> {
    let setting = |(name, read, help): (&str, &str, &str)| field(name, value_of(read), false, help.trim());
    let mut keys = written(&OWN);
    keys.extend(Settings::DOCUMENTED.map(setting));
    keys.sort_by(Field::by_need);
    keys
}

/// Describes the values that a function reads.
fn value_of(read: &str) -> &'static str {
    match read {
        "count" | "count_u32" => "count such as 1000 or `\"10k\"`",
        "duration_s" => "duration such as `\"5s\"`",
        "flag" => "true or false",
        "share" => "share such as `\"2.5 %\"`",
        "size" => "size such as `\"64MiB\"`",
        "times_ns" => "list of times",
        _ => "text",
    }
}

fn patterns() -> String {
    let pattern = |pattern: Pattern| {
        let row: &Row = pattern.row();
        wrapped(&format!("- `{}`: {}", pattern.name(), sentence(row.command.about)), "  ")
    };
    format!("\n## Patterns\n\n{}", Pattern::all().map(pattern).collect::<String>())
}

const HEAD: &str = "\
# Plan reference

This page lists every table and key of a plan. It is generated from the definitions that read plans.
[Plans](plans.md) is the tutorial, [Axes](axes.md) the reference of axes. `rdmascope plans
--reference` prints this page.

A plan is a TOML file. Unknown keys are refused with the nearest known key, and every error names its
line. A key that a plan leaves out has a default, which depends on the pattern and the endpoint:
`rdmascope run PLAN --dry-run` prints the plan with every default filled in.
";

const EXPERIMENT: &str = "\
An experiment measures one point for each combination of the values of its axes. Give `iterations` or
`duration`, not both.
";
const AXES: &str = "\
Each key is an axis with one value or a list of values. The points follow the order of the axes in
the plan, and the last axis changes fastest; but the environment and the endpoint always come first,
and the size comes last. A point has only the axes that apply to its endpoint. [Axes](axes.md) lists
all axes.
";
const QUICK: &str = "\
With `--quick`, these settings and `axes` replace the settings and axes of the experiment.
";
const ENVIRONMENT: &str = "\
An environment is the tuning that rdmascope applies for a point and reverts afterwards. `as_is`
changes nothing; `as_is`, `optimised`, `event` and `loaded` are built in.
";
const VARIABLES: &str = "\
Each key is the name of a text, which `--set NAME=TEXT` replaces. Commands, files and environments of
`[[application]]` refer to it as `{NAME}`.
";
const MODES: &str = "\
A mode sets environment variables for applications. Its name is a value of the axis `mode`; the
built-in mode `plain` sets none.
";
const APPLICATION: &str = "\
An application is a program that the pattern `application` runs. Its texts may have placeholders:
`{ranks}`, `{dir}` (the directory that the program runs in), names of axes, variables and files.
";
const FILES: &str = "\
Each key is a name for placeholders. Its value is the path of a file to copy, relative to the plan, or
a table with `name` and `text`.
";
const METRIC: &str = "\
A number that the application prints.
";
const EXPECT: &str = "\
A bound on a number of every point, which the run keeps or not. [Expectations](expectations.md) says how
it is judged.
";
const FIGURE: &str = "\
A figure or table of the report.
";
const ROW: &str = "\
A comparison in a figure of the kind `costs`.
";
const MARKED: &str = "\
A second quantity in a figure of the kind `surface`.
";
const REFERENCE: &str = "\
Published numbers beside the measured ones.
";
const FINDING: &str = "\
A published claim, and the range that must contain the measured number and its 95 % interval to
confirm it.
";

const PLAN: [(&str, &str, bool, &str); 13] = [
    (
        "name",
        "text",
        true,
        "Name of the plan: letters, digits, `-` and `_`. The name of the record starts with it.",
    ),
    ("title", "text", true, "Title of the report."),
    ("about", "text", false, "What is measured and why, for the report."),
    ("application", "tables", false, "Applications, see `[[application]]`."),
    ("environment", "tables", false, "Environments, see `[[environment]]`."),
    ("expect", "tables", false, "Bounds on numbers of the run, see `[[expect]]`."),
    ("experiment", "tables", false, "What is measured, see `[[experiment]]`."),
    ("figure", "tables", false, "Figures of the report, see `[[figure]]`."),
    ("finding", "tables", false, "Published claims, see `[[finding]]`."),
    ("mode", "tables", false, "Environment variables by name, see `[[mode]]`."),
    (
        "mpi",
        "text",
        false,
        "Command that starts ranks of MPI, such as `mpirun -np {ranks}`; `--mpi` replaces it.",
    ),
    ("seed", "count", false, "A number that the record keeps; it changes nothing."),
    ("variables", "table", false, "Texts by name, see `[variables]`."),
];

const OWN: [(&str, &str, bool, &str); 4] = [
    ("name", "text", true, "Name of the experiment: letters, digits, `-` and `_`."),
    ("pattern", "text", true, "How ranks exchange messages, see Patterns."),
    ("axes", "table", false, "What varies, see `[experiment.axes]`."),
    ("quick", "table", false, "A shorter form, see `[experiment.quick]`."),
];

const MODE: [(&str, &str, bool, &str); 2] = [
    ("name", "text", true, "Name of the mode: letters, digits, `-` and `_`."),
    ("environment", "table", false, "Environment variables and their values, which may have placeholders."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EXPERIMENT_KEYS, PLAN_KEYS};

    #[test]
    fn every_key_is_there() {
        let names = |keys: &[Field]| {
            keys.iter().map(|key| key.name.clone()).collect::<std::collections::BTreeSet<_>>()
        };
        let of = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(names(&written(&PLAN)), of(&PLAN_KEYS));
        assert_eq!(names(&experiment()), of(&[&EXPERIMENT_KEYS[..], &Settings::KEYS].concat()));
        assert!(names(&fields::<Figure>()).contains("where"));
    }

    #[test]
    fn links_of_rustdoc_are_words() {
        assert_eq!(
            sentence("as [`Metric::place`], of [`FigureKind::Costs`](x) alone"),
            "as `place`, of `costs` alone."
        );
    }
}
