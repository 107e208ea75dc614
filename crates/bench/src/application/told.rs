//! What a rank reports of an application that has run.

use std::collections::BTreeMap;

use measure::figure::Better;
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use crate::pattern::outcome::Told;
use crate::process::launcher::Usage;

/// An application that has run: `application` below `own` of a point.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ran {
    /// The command line: the words of the launcher, then of the application.
    pub(crate) command: Vec<String>,
    /// Environment variables that were set for the application. It inherits all others from
    /// rdmascope.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) variables: BTreeMap<String, String>,
    /// The name and version that the launcher prints.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) launcher_version: String,
    /// The first line that the version command of the application prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The file that was run.
    pub(crate) executable: Hashed,
    /// The files that were put into its directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<Hashed>,
    /// How the application ended, its time and its memory; absent if its supervisor could not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// The processes that `usage` counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) usage_of: String,
    /// The metrics by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metrics: BTreeMap<String, Found>,
    /// Its output, and the files with its metrics, by the names of their places.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) said: BTreeMap<String, Kept>,
    /// The transport that MPI was told to use. The application's own library may use another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transport_asked: Option<String>,
    /// Why the point has failed, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// A metric of an application.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Found {
    /// The number.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: String,
    /// Whether less or more is better.
    pub(crate) better: Better,
}

/// A file and its hash.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hashed {
    /// Its path; for an input file only its name.
    pub(crate) path: String,
    /// Its SHA-256, in hexadecimal digits, as sha256sum(1) prints it.
    pub(crate) sha256: String,
}

impl Told for Ran {}
