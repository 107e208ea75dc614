//! The checks: each a function of the facts alone, which says what it found, why it matters and
//! what mends it.

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

/// All of them: first what keeps anything from being measured, from the library to the port, then
/// what spoils numbers.
const CHECKS: [Check; 23] = [
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
    processors::allowed,
    processors::cores,
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
        // No check knows better than the device itself.
        let finding = Finding::good("device", "the device", why.clone());
        findings.push(finding.but(Severity::Problem, "nothing can be measured on it"));
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}
