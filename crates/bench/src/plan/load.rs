//! Loads plans from files, from text, and from the program.

use std::path::{Path, PathBuf};

use super::bundled::bundled;
use super::model::{Base, Plan};
use super::read;
use crate::{Error, hint};

impl Plan {
    /// Reads the plan in the file `name`, or else the bundled plan with that name.
    ///
    /// # Errors
    ///
    /// If there is neither, or the plan is not valid.
    pub fn load(name: &str) -> Result<Self, Error> {
        let path = Path::new(name);
        // `run quick` must also work if there is a directory of that name.
        if !path.is_file() {
            if let Some(found) = bundled().iter().find(|plan| plan.name == name) {
                return found.plan();
            }
            if !name.contains(['/', '.']) {
                let known: Vec<&str> = bundled().iter().map(|plan| plan.name).collect();
                let added = match path.join("run.json").is_file() {
                    true => format!(
                        "; the directory holds a run, of which `rdmascope report {name}` makes a report"
                    ),
                    false => hint(name, known.iter().copied()),
                };
                return Err(Error::PlanUnknown {
                    name: name.to_owned(),
                    known: known.join(", "),
                    hint: added,
                });
            }
        }
        let text = std::fs::read_to_string(path)
            .map_err(|cause| Error::PlanRead { path: path.to_owned(), cause })?;
        let base = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        read::plan(&text, name, Base::Directory(base))
    }

    /// Reads a plan from text. `origin` names it in errors; references are relative to `directory`.
    ///
    /// # Errors
    ///
    /// If the plan is not valid.
    pub fn parse(text: &str, origin: &str, directory: &Path) -> Result<Self, Error> {
        read::plan(text, origin, Base::Directory(directory.to_owned()))
    }
}
