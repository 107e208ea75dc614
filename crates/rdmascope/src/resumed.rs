//! What a resumed run must have in common with its record.

use std::path::Path;

use measure::record::{Device, Environment, Point, Run};
use report::whole;

/// A run cannot be resumed because its ranks differ from the ranks in its record.
#[derive(Debug)]
pub(crate) struct Changed(pub(crate) Vec<String>);

impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let changes = self.0.join("; ");
        write!(f, "the ranks are not those of the record ({changes}): start a new run")
    }
}

impl std::error::Error for Changed {}

/// Returns in what the ranks of a resumed run differ from those of its record, in words: numbers of
/// one run must be comparable.
pub(crate) fn changes(before: (&[Device], &[Environment]), now: (&[Device], &[Environment])) -> Vec<String> {
    let fact = |environment: &Environment, group: &str, name: &str| {
        let value = environment.facts.get(group).and_then(|facts| facts.get(name));
        value.map_or_else(|| "unknown".to_owned(), ToString::to_string)
    };
    let mut changes = Vec::new();
    let mut compare = |rank: usize, what: &str, one: String, other: String| {
        if one != other {
            changes.push(format!("rank {rank}: {what} was {one} and is {other}"));
        }
    };
    for (rank, (one, other)) in before.1.iter().zip(now.1).enumerate() {
        compare(rank, "the host", one.hostname.clone(), other.hostname.clone());
        for (what, group, name) in FACTS {
            compare(rank, what, fact(one, group, name), fact(other, group, name));
        }
    }
    for (rank, (one, other)) in before.0.iter().zip(now.0).enumerate() {
        compare(rank, "the device", one.name.clone(), other.name.clone());
        compare(rank, "the provider", one.provider.clone(), other.provider.clone());
        for name in ["link", "link_layer", "active_mtu_bytes", "firmware"] {
            let attribute = |device: &Device| {
                device.attributes.get(name).map_or_else(|| "unknown".to_owned(), ToString::to_string)
            };
            compare(rank, name, attribute(one), attribute(other));
        }
    }
    changes
}

/// The facts of a host that must stay the same: what they are, and their places in an environment.
const FACTS: [(&str, &str, &str); 6] = [
    ("the kernel", "kernel", "release"),
    ("the clock source", "kernel", "clocksource"),
    ("the CPU", "cpu", "model"),
    ("simultaneous multithreading", "cpu", "smt"),
    ("the frequency governor", "power", "governor"),
    ("boost", "power", "boost"),
];

/// Returns a sentence about the points of a plan that are not in its record, if there are any, with
/// the command that measures them.
pub(crate) fn missing(run: &Run, points: u64, directory: &Path) -> Option<String> {
    let missing = whole::missing(run, points)?;
    let is_of_plan = run.command.get(1).is_some_and(|command| command == "run");
    let directory = directory.display();
    is_of_plan.then(|| {
        let resume =
            format!("`rdmascope run --resume {directory}` measures them, and anew those that were cut");
        format!("rdmascope: {missing}: {resume}")
    })
}

/// Returns the number of points that a resumed run has in all: those of the plan, and those that
/// were planned while others were measured and are in the record.
pub(crate) fn planned(of_plan: u64, points: &[Point]) -> u64 {
    points.iter().map(|point| point.id + 1).max().unwrap_or(0).max(of_plan)
}
