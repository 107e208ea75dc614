//! The checks: each is a function of the facts alone, which says what it found, why it matters and
//! how to fix it.

mod choice;
mod environment;
mod firewall;
mod memory;
mod mpi;
mod ports;
mod processors;
mod stack;

use super::facts::Facts;
use super::finding::{Finding, Severity};

/// A check.
type Check = fn(&Facts) -> Vec<Finding>;

/// All checks: first of what prevents any measurement, from the library to the port, then of what
/// spoils numbers.
const CHECKS: [Check; 25] = [
    choice::device,
    stack::libraries,
    stack::kernel,
    stack::adapters,
    stack::nodes,
    ports::state,
    ports::gids,
    ports::mtu,
    ports::pcie,
    firewall::firewall,
    memory::registration,
    memory::locked_memory,
    memory::other_processes,
    processors::allowed,
    processors::cores,
    processors::distance,
    processors::numa,
    processors::governor,
    processors::idle,
    processors::interrupts,
    processors::guest,
    processors::clock,
    mpi::pairs,
    environment::left_behind,
    environment::techniques,
];

/// Runs all checks; the worst findings come first.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<_> = CHECKS.iter().flat_map(|check| check(facts)).collect();
    let explains = |finding: &Finding| finding.severity == Severity::Problem;
    if let Some(why) = facts.target().and_then(|device| device.unusable.as_ref())
        && !findings.iter().any(explains)
    {
        // No check explains why, so the device's own error does.
        let finding = Finding::good("device", "the device", why.clone());
        findings.push(finding.but(Severity::Problem, "nothing can be measured on it"));
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}
