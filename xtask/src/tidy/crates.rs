//! The dependencies between the crates of this workspace.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::shell;

/// The crates of this workspace that each crate may use: the arrows of ARCHITECTURE.md, which have
/// no cycle.
const ARROWS: [(&str, &[&str]); 15] = [
    ("baseline", &["measure", "softdev", "verbs"]),
    ("bench", &["conditions", "measure", "mpi", "verbs"]),
    ("cm", &["system"]),
    ("conditions", &["measure"]),
    ("conformance", &["softdev", "verbs"]),
    ("measure", &[]),
    ("mpi", &[]),
    ("preload", &["cm", "softdev", "verbs"]),
    ("rdmascope", &["bench", "conditions", "measure", "preload", "report", "softdev", "verbs", "verdict"]),
    ("report", &["measure", "verdict"]),
    ("softdev", &["system", "verbs"]),
    ("system", &[]),
    ("verbs", &[]),
    ("verdict", &["measure"]),
    ("xtask", &[]),
];

/// Reports crates that use a crate without an arrow.
pub(super) fn arrows(wrong: &mut Vec<String>) -> Result<()> {
    let metadata = shell::output(&["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let allowed = BTreeMap::from(ARROWS);
    let empty = Vec::new();
    for package in metadata["packages"].as_array().unwrap_or(&empty) {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(may) = allowed.get(name) else {
            wrong.push(format!("crate {name}: add the crates that it may use to xtask/src/tidy/crates.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap_or(&empty) {
            let used = dependency["name"].as_str().unwrap_or_default();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if allowed.contains_key(used) && !may.contains(&used) && !is_dev {
                wrong.push(format!("crate {name} must not use crate {used}"));
            }
        }
    }
    Ok(())
}
