//! What a rank tells of a program that has run.

use std::collections::BTreeMap;

use measure::figure::Better;
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use crate::pattern::outcome::Told;
use crate::process::launcher::Usage;

/// A program that has run: `application` below `own` of a point.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ran {
    /// The command line: the launcher's words, then the program's.
    pub(crate) command: Vec<String>,
    /// Environment variables that were set for the program. It inherits all others from rdmascope.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) variables: BTreeMap<String, String>,
    /// What the launcher calls itself and its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) launcher_version: String,
    /// The first line of what it says of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The file that was run.
    pub(crate) executable: Hashed,
    /// The files that it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<Hashed>,
    /// How the program ended and what it used; absent where its supervisor could not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// Which processes the usage is of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) usage_of: String,
    /// The metrics by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metrics: BTreeMap<String, Found>,
    /// What it printed, and the files that metrics are in, by the names of their places.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) said: BTreeMap<String, Kept>,
    /// What MPI was told to carry messages over, which the program's own library may not have done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transport_asked: Option<String>,
    /// Why the point has failed, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// A number that a program says.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Found {
    /// The number.
    pub(crate) value: f64,
    /// What it is counted in.
    pub(crate) unit: String,
    /// Which numbers are the better ones.
    pub(crate) better: Better,
}

/// A file, and what tells it from another of the same name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hashed {
    /// Its path; of an input its name.
    pub(crate) path: String,
    /// Its SHA-256, in hexadecimal digits, as sha256sum(1) prints it.
    pub(crate) sha256: String,
}

impl Told for Ran {}
