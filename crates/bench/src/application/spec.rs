//! A program as a point has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::definition::Application;
use super::placeholders::{Fault, fill};
use crate::Error;

/// A program as a point has it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSpec {
    /// What the plan says of it.
    pub application: Application,
    /// How many ranks it is started with.
    pub ranks: u32,
    /// What the placeholders of its words stand for, but for the scratch directory's.
    pub values: BTreeMap<String, String>,
    /// Environment variables of the point's mode. Where the program has one of the same name, this
    /// value is used.
    pub mode: BTreeMap<String, String>,
    /// Where relative paths of its files start; absent where the plan is in no directory.
    pub base: Option<String>,
    /// How it is started; absent until the coordinator has said that.
    pub started: Option<Started>,
}

/// How a program is started.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The command that stays with it until it ends, before that command's own options.
    pub supervisor: Vec<String>,
    /// The words of the launcher; none where nothing starts its ranks.
    pub launcher: Vec<String>,
    /// What the launcher calls itself and its version.
    pub version: String,
    /// Variables of what MPI is to carry messages over.
    pub variables: BTreeMap<String, String>,
    /// Token by which all of its processes are found.
    pub token: String,
    /// Whether its ranks are descendants of the supervisor, which then counts what they use.
    pub is_counted: bool,
    /// Whether the user or a scheduler decides on which hosts its ranks run.
    pub is_elsewhere: bool,
}

impl ApplicationSpec {
    /// The variables that the plan gives it, with their placeholders.
    pub(crate) fn variables(&self) -> BTreeMap<&str, &str> {
        let all = self.application.environment.iter().chain(&self.mode);
        all.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// A text of the plan with the values of its placeholders.
    ///
    /// # Errors
    /// [`Error::Impossible`] where a placeholder stands for nothing.
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
                "{name} needs {variable}, which this plan leaves open: give it with --set {variable}=TEXT"
            );
            return Err(Error::Impossible { reason: reason + &self.application.how_to_install() });
        }
        fill(text, &value).map_err(|fault| {
            let what = match fault {
                Fault::Unknown(name) => format!("{{{name}}} stands for nothing here"),
                Fault::Unpaired => "a brace has no other".to_owned(),
            };
            Error::Impossible { reason: format!("{name} cannot be run: {what}") }
        })
    }
}

impl Application {
    /// How it is installed, for the end of a sentence.
    pub(crate) fn how_to_install(&self) -> String {
        self.install.as_ref().map_or_else(String::new, |install| format!(" ({install})"))
    }
}

/// The placeholder of the scratch directory.
pub(crate) const DIRECTORY: &str = "dir";
