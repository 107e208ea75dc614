//! Whether the device that is measured is the one that the user expects.

use bench::choice::Reason;
use verbs::DeviceKind;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

/// Reports that a software device is measured by accident, or that there is no device.
pub(in crate::doctor) fn device(facts: &Facts) -> Vec<Finding> {
    let looked_at = "the devices of all providers (`rdmascope devices`)";
    let Some(device) = facts.target() else {
        let nothing = Finding::good("device", looked_at, "there is no device");
        return vec![nothing.but(Severity::Problem, "nothing can be measured")];
    };
    let name = &device.name;
    let chosen = facts.survey.chosen().map(|(_, reason)| reason).filter(|_| facts.named.is_none());
    let found = match &chosen {
        Some(reason) => format!("without -d, `rdmascope run` measures {name}: {reason}"),
        None => format!("{name} is {}", device.kind),
    };
    let finding = Finding::good("device", looked_at, found);
    let what_is_measured = match device.kind {
        DeviceKind::Hardware => return vec![finding],
        DeviceKind::KernelSoftware => "this host's CPUs and kernel, not an adapter",
        DeviceKind::UserSoftware => "this host's memory and caches, not a network",
    };
    let why = format!("{name} is software: its numbers show {what_is_measured}");
    let better = facts.survey.devices.iter().find(|other| other.kind == DeviceKind::Hardware);
    let finding = match (chosen, better) {
        (Some(Reason::BetterUnusable { .. }), _) => finding.but(Severity::Warning, why),
        (_, Some(better)) => {
            let remedy = format!("rdmascope run quick -d {}", better.name);
            finding.but(Severity::Note, why).mended_by(remedy)
        }
        _ => finding.but(Severity::Note, why),
    };
    vec![finding]
}
