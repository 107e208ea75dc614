//! The techniques that make latencies smaller or steadier, which plans apply by name
//! (`environment`).

use conditions::Can;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

/// Reports the state of each technique, and whether a run could apply it.
pub(in crate::doctor) fn techniques(facts: &Facts) -> Vec<Finding> {
    let finding = |state: &conditions::State| {
        let now = state.now.as_ref().map_or(String::new(), |now| format!(" (now {now})"));
        let found = |text: &str| {
            Finding::good("environment", state.looked_at, format!("{} {text}{now}", state.technique))
        };
        match &state.can {
            Can::Apply => found("can be applied"),
            Can::Nothing(why) => found(&format!("does not apply here: {why}")),
            Can::NotPermitted(why) => {
                found("is not permitted").but(Severity::Note, format!("a run cannot apply it: {why}"))
            }
        }
    };
    facts.techniques.iter().map(finding).collect()
}

/// Reports changes of runs that were not reverted.
pub(in crate::doctor) fn left_behind(facts: &Facts) -> Vec<Finding> {
    let finding = |line: &String| {
        let why = "a run changed this host and did not revert the change";
        let finding = Finding::good("left behind", "the journal in /run/rdmascope", line.clone());
        finding.but(Severity::Warning, why).mended_by(facts.as_root("rdmascope doctor --restore"))
    };
    facts.left_behind.iter().map(finding).collect()
}
