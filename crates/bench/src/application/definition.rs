//! The description of an application in a plan.

use std::collections::BTreeMap;

use measure::figure::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ranks::RanksAllowed;

/// An application, as `[[application]]` of a plan describes it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its name, which is a value of the axis `application`.
    pub name: String,
    /// The program and its arguments, with placeholders such as `{ranks}`.
    pub command: Vec<String>,
    /// What starts its ranks: `mpi`, `none`, or a command such as `mpirun.mpich -np {ranks}`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub launcher: Starter,
    /// The files in its scratch directory. Placeholders refer to a file by its key here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub files: BTreeMap<String, File>,
    /// Its environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The numbers of ranks that it can have: `any`, `squares`, `powers_of_two`, or a list.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub ranks_allowed: RanksAllowed,
    /// The numbers to read from its output.
    pub metric: Vec<Metric>,
    /// Regular expressions that its output must match; otherwise the point has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub verify: Vec<Said>,
    /// The command that prints its version; the record keeps the first line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version_command: Vec<String>,
    /// How to install it, for the error on a host without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// What starts the ranks of an application: `mpi`, `none` or a template.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "String", into = "String")]
pub enum Starter {
    /// The launcher of MPI that also starts the ranks of rdmascope (`--mpi`).
    #[default]
    Mpi,
    /// No launcher: one process is started, which may start others.
    None,
    /// Another launcher, such as `mpirun.mpich -np {ranks}`.
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

/// A file of an application.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum File {
    /// A copy of a file, with its name. A relative path starts in the directory of the plan.
    Copy(String),
    /// A text in the plan.
    Text {
        /// The name of the file.
        name: String,
        /// The contents of the file.
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

/// A number to read from the output of an application.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name: `application.metrics.NAME` of a point.
    pub name: String,
    /// Its unit, e.g. `s`.
    #[serde(default)]
    pub unit: String,
    /// A regular expression that matches once, with the group `value` for the number and optionally
    /// the group `ranks`. `^` and `$` are the start and the end of a line.
    pub pattern: String,
    /// Where to search: `stdout`, `stderr`, or a file in the scratch directory.
    #[serde(default = "stdout", rename = "in")]
    pub place: String,
    /// Whether less or more is better.
    #[serde(default)]
    pub better: Better,
}

/// What the output of an application must contain.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "Words")]
pub struct Said {
    /// A regular expression that must match, optionally with the group `ranks`.
    pub pattern: String,
    /// Where to search, as [`Metric::place`].
    #[serde(rename = "in")]
    pub place: String,
}

/// The form in a plan: the expression alone, or with its place.
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

/// The name of the standard output as a place to search.
pub(crate) const STDOUT: &str = "stdout";
/// The name of the standard error as a place to search.
pub(crate) const STDERR: &str = "stderr";
