//! The application of a point.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::definition::Application;
use super::placeholders::{Fault, fill};
use crate::Error;

/// The application of a point.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSpec {
    /// Its description in the plan.
    pub application: Application,
    /// The number of ranks to start.
    pub ranks: u32,
    /// The values of its placeholders, without the scratch directory.
    pub values: BTreeMap<String, String>,
    /// Environment variables of the point's mode. They override the variables of the application.
    pub mode: BTreeMap<String, String>,
    /// The base of relative paths of its files; absent if the plan is in no directory.
    pub base: Option<String>,
    /// How to start it; absent until the coordinator has decided that.
    pub started: Option<Started>,
}

/// How to start an application.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The command of the supervisor, without the options that follow. The supervisor stays until
    /// the application ends.
    pub supervisor: Vec<String>,
    /// The words of the launcher; empty if no launcher starts its ranks.
    pub launcher: Vec<String>,
    /// The name and version that the launcher prints.
    pub version: String,
    /// Environment variables that select the transport of MPI.
    pub variables: BTreeMap<String, String>,
    /// The token that identifies all of its processes.
    pub token: String,
    /// Whether its ranks are descendants of the supervisor, which then counts their time and
    /// memory.
    pub is_counted: bool,
    /// Whether the user or a scheduler decides on which hosts its ranks run.
    pub is_elsewhere: bool,
}

impl ApplicationSpec {
    /// The environment variables of the plan, with their placeholders.
    pub(crate) fn variables(&self) -> BTreeMap<&str, &str> {
        let all = self.application.environment.iter().chain(&self.mode);
        all.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Replaces the placeholders in a text of the plan by their values.
    ///
    /// # Errors
    /// [`Error::Impossible`] if a placeholder is unknown or its value is empty.
    pub(crate) fn filled(&self, text: &str, directory: Option<&str>) -> Result<String, Error> {
        let name = &self.application.name;
        let value = |of: &str| match (of, directory) {
            (DIRECTORY, Some(directory)) => Some(directory.to_owned()),
            _ => self.values.get(of).cloned(),
        };
        let empty = self
            .values
            .iter()
            .find(|(name, value)| value.is_empty() && text.contains(&format!("{{{name}}}")));
        if let Some((variable, _)) = empty {
            let reason = format!(
                "{name} needs {variable}, which this plan does not set: set it with --set {variable}=TEXT"
            );
            return Err(Error::Impossible { reason: reason + &self.application.how_to_install() });
        }
        fill(text, &value).map_err(|fault| {
            let what = match fault {
                Fault::Unknown(name) => format!("unknown placeholder {{{name}}}"),
                Fault::Unpaired => "unpaired brace".to_owned(),
            };
            Error::Impossible { reason: format!("{name} cannot be run: {what}") }
        })
    }
}

impl Application {
    /// How to install it, for the end of a sentence.
    pub(crate) fn how_to_install(&self) -> String {
        self.install.as_ref().map_or_else(String::new, |install| format!(" ({install})"))
    }
}

/// The placeholder of the scratch directory.
pub(crate) const DIRECTORY: &str = "dir";
