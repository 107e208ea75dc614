//! Whether compared environments differed at all: a technique that was not applied explains
//! nothing.

use std::collections::BTreeSet;

use measure::conditions::{AS_IS, Condition, Outcome, Technique};
use measure::record::{Point, Status};

use crate::value;

/// A technique of a rank with a value.
type Asked<'a> = (u32, Technique, &'a str);

/// What to add to a number that compares points in two environments, if only some of the techniques
/// in which they differ were applied; empty if all were, or if both are the same environment.
///
/// # Errors
///
/// Why there was no difference between the two.
pub(crate) fn compare(of: &[&Point], against: &[&Point]) -> Result<String, String> {
    let [name, other] = [of, against].map(names);
    let [asked, other_asked] = [of, against].map(|points| all(points, |_| true));
    let mut lacking: Vec<&Condition> = Vec::new();
    for condition in of.iter().chain(against).flat_map(|point| &point.conditions) {
        let sets_apart = asked.contains(&key(condition)) != other_asked.contains(&key(condition));
        if sets_apart && !is_in_force(condition) && !lacking.iter().any(|known| is_same(known, condition)) {
            lacking.push(condition);
        }
    }
    if name == other || lacking.is_empty() {
        return Ok(String::new());
    }
    if all(of, is_in_force) == all(against, is_in_force) {
        let reasons: Vec<String> = lacking.into_iter().map(in_words).collect();
        return Err(format!("{name} did not differ from {other}: {}", reasons.join("; ")));
    }
    let techniques: BTreeSet<Technique> = lacking.iter().map(|condition| condition.technique).collect();
    let techniques: Vec<String> = techniques.iter().map(Technique::to_string).collect();
    Ok(format!("; without {}, see the environments", techniques.join(", ")))
}

/// The names of the points' environments, each once.
fn names(points: &[&Point]) -> String {
    let name = |point: &&Point| point.axes.get("environment").map_or_else(|| AS_IS.to_owned(), value::text);
    let names: BTreeSet<String> = points.iter().map(name).collect();
    names.into_iter().collect::<Vec<_>>().join(" and ")
}

/// The techniques that fulfil a condition at every measured point.
fn all<'a>(points: &[&'a Point], fulfils: fn(&Condition) -> bool) -> BTreeSet<Asked<'a>> {
    let of =
        |point: &'a Point| point.conditions.iter().filter(|condition| fulfils(condition)).map(key).collect();
    let measured = points.iter().copied().filter(|point| point.status == Status::Measured);
    let sets = measured.map(of);
    sets.reduce(|all: BTreeSet<Asked<'a>>, of| all.intersection(&of).copied().collect()).unwrap_or_default()
}

fn key(condition: &Condition) -> Asked<'_> {
    (condition.rank, condition.technique, &condition.asked)
}

/// Whether a technique made a difference: it was applied, and was not in force before. A setting
/// that a process holds itself may have been held by another rank before.
fn is_in_force(condition: &Condition) -> bool {
    use Technique::{CpuDmaLatency, Memory, Numa, Scheduler};
    let is_own = matches!(condition.technique, CpuDmaLatency | Memory | Numa | Scheduler);
    let is_new = is_own || condition.before.as_ref() != Some(&condition.asked);
    condition.outcome == Outcome::Applied && is_new
}

/// Whether two outcomes of one technique are the same.
fn is_same(a: &Condition, b: &Condition) -> bool {
    (a.technique, a.outcome, &a.reason) == (b.technique, b.outcome, &b.reason)
}

fn in_words(condition: &Condition) -> String {
    let Condition { technique, asked, outcome, reason, .. } = condition;
    let reason = reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
    match outcome {
        Outcome::Applied => format!("{technique} was {asked} before"),
        outcome => format!("{technique} {outcome}{reason}"),
    }
}
