//! What a plan says of a program that somebody else wrote.

use std::collections::BTreeMap;

use measure::figure::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ranks::RanksAllowed;

/// A program that somebody else wrote, as an `[[application]]` of a plan describes it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its name, which is a value of the axis `application`.
    pub name: String,
    /// The program and its arguments, with placeholders such as `{ranks}`.
    pub command: Vec<String>,
    /// What starts its ranks.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub launcher: Starter,
    /// The files that are put into its scratch directory. Placeholders refer to a file by its key
    /// here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub files: BTreeMap<String, File>,
    /// Variables of its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The numbers of ranks that it can have.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub ranks_allowed: RanksAllowed,
    /// The numbers to read from its output.
    pub metric: Vec<Metric>,
    /// What its output must contain; without that the point has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub verify: Vec<Said>,
    /// The command that says its version; the first line of that is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version_command: Vec<String>,
    /// How to install it, for the sentence about a host where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// What starts the ranks of a program: `mpi`, `none` or a template.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "String", into = "String")]
pub enum Starter {
    /// The launcher of MPI that starts ranks of this program too (`--mpi`).
    #[default]
    Mpi,
    /// No launcher: one process is started, which may start others.
    None,
    /// A launcher of its own, such as `mpirun.mpich -np {ranks}`.
    Template(String),
}

impl From<String> for Starter {
    fn from(text: String) -> Self {
        match text.as_str() {
            "mpi" => Self::Mpi,
            "none" => Self::None,
            _ => Self::Template(text),
        }
    }
}

impl From<Starter> for String {
    fn from(starter: Starter) -> Self {
        match starter {
            Starter::Mpi => "mpi".to_owned(),
            Starter::None => "none".to_owned(),
            Starter::Template(text) => text,
        }
    }
}

/// A file of a program.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum File {
    /// A copy of a file, with its name. A relative path starts at the plan.
    Copy(String),
    /// A text that the plan holds.
    Text {
        /// The file's name.
        name: String,
        /// All that is in it.
        text: String,
    },
}

impl File {
    /// Its name in the scratch directory.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Copy(path) => path.rsplit('/').next().unwrap_or_default(),
            Self::Text { name, .. } => name,
        }
    }
}

/// A number to read from the output of a program.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name: `application.metrics.NAME` of a point.
    pub name: String,
    /// What it is counted in, e.g. `s`.
    #[serde(default)]
    pub unit: String,
    /// A regular expression that matches once, with the group `value` and perhaps the group
    /// `ranks`. `^` and `$` are the ends of a line.
    pub pattern: String,
    /// Where it is looked for: `stdout`, `stderr`, or a file in the scratch directory.
    #[serde(default = "stdout", rename = "in")]
    pub place: String,
    /// Which numbers are the better ones.
    #[serde(default)]
    pub better: Better,
}

/// What the output of a program must contain.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "Words")]
pub struct Said {
    /// A regular expression that matches, perhaps with the group `ranks`.
    pub pattern: String,
    /// Where it is looked for, as of [`Metric::place`].
    #[serde(rename = "in")]
    pub place: String,
}

/// How a plan writes it: the expression alone, or with its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Pattern(String),
    Placed(Placed),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Placed {
    pattern: String,
    #[serde(default = "stdout", rename = "in")]
    place: String,
}

impl From<Words> for Said {
    fn from(words: Words) -> Self {
        match words {
            Words::Pattern(pattern) => Self { pattern, place: stdout() },
            Words::Placed(Placed { pattern, place }) => Self { pattern, place },
        }
    }
}

fn stdout() -> String {
    STDOUT.to_owned()
}

/// The name of the standard output among the places where something is looked for.
pub(crate) const STDOUT: &str = "stdout";
/// That of the standard error.
pub(crate) const STDERR: &str = "stderr";
