//! Points, expectations and the members of a fleet as results of tests ([`junit`]).
//!
//! A point that was measured passes, one that was not is skipped, one that failed is an error. An
//! expectation that is not met is a failure; one that is not decided is skipped. A run that ended
//! early is an error, because points that are missing have no test.
//!
//! # Invariants
//!
//! * No two tests of a run have the same class and name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use measure::presentation::Patterns;
use measure::record::{CUT, Point, Status};
use measure::text::axes_text;
use serde_json::Value;

use super::exported::Exported;
use super::fleet;
use super::rows::{asked, text};
use crate::Error;
use crate::expectations::{Case, Judged, Judgement, line};
use crate::folded::fold;
use crate::junit::{self, Outcome, Suite, Test};
use crate::varying::Varying;
use crate::whole::ended_early;

pub(super) fn write(runs: &[Exported<'_>], patterns: Patterns, out: &mut dyn Write) -> Result<(), Error> {
    let suites: Vec<Suite> = runs.iter().map(|run| suite(run, patterns)).collect();
    Ok(junit::write(&suites, out)?)
}

fn suite(run: &Exported<'_>, patterns: Patterns) -> Suite {
    let title = if run.run.title.is_empty() { &run.name } else { &run.run.title };
    let version = format!("{} {}", run.run.program.name, run.run.program.version);
    Suite {
        package: plan(run),
        name: title.clone(),
        started: run.run.started.clone(),
        host: run.run.host().to_owned(),
        properties: vec![
            ("run", run.name.clone()),
            ("command", run.run.command.join(" ")),
            ("program", version),
        ],
        failure: "expectation",
        tests: tests(run, patterns),
    }
}

/// The tests of a run.
fn tests(run: &Exported<'_>, patterns: Patterns) -> Vec<Test> {
    let class = format!("rdmascope.{}", plan(run));
    let parts = match fleet::tests(run) {
        Some(members) => members,
        None => [whole(run)].into_iter().chain(points(run, patterns)).collect(),
    };
    let mut tests: Vec<Test> = parts.into_iter().chain(expectations(run, patterns)).collect();
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    // The number that the next test of the same name gets.
    let mut next: BTreeMap<(String, String), u32> = BTreeMap::new();
    for test in &mut tests {
        test.class = format!("{class}.{}", test.class);
        let own = (test.class.clone(), test.name.clone());
        while !seen.insert((test.class.clone(), test.name.clone())) {
            let number = next.entry(own.clone()).or_insert(2);
            test.name = format!("{} ({number})", own.1);
            *number += 1;
        }
    }
    tests
}

/// The test that the record has every point of the plan.
fn whole(run: &Exported<'_>) -> Test {
    let result = ended_early(run.run, run.points).map_or(Outcome::Passed, Outcome::Error);
    Test::new("run", "every point of the plan", result)
}

/// The tests of points. Their names are the same in every run of a plan, also in one that ended
/// early.
fn points(run: &Exported<'_>, patterns: Patterns) -> Vec<Test> {
    let mut varying = Varying::of_plan(&run.run.plan);
    run.points.iter().for_each(|point| varying.see(point));
    let is_repeated = is_repeated(&run.run.plan) || run.points.iter().any(|point| point.repetition > 0);
    let test = |point: &Point| {
        let axes = axes_text(&point.axes, |axis| varying.has(&point.experiment, axis));
        let repetition = is_repeated.then(|| format!("repetition {}", point.repetition));
        let words = [Some(axes).filter(|axes| !axes.is_empty()), repetition].into_iter().flatten();
        let name = words.collect::<Vec<_>>().join(", ");
        Test {
            class: point.experiment.clone(),
            name: if name.is_empty() { point.pattern.clone() } else { name },
            seconds: point.wall_ns as f64 / 1e9,
            result: match &point.status {
                Status::Measured if point.cut => Outcome::Error(CUT.to_owned()),
                Status::Measured => Outcome::Passed,
                Status::NotMeasured { reason } => Outcome::Skipped(reason.clone()),
                Status::Failed { error } => Outcome::Error(error.clone()),
            },
            output: output(point, patterns),
        }
    };
    run.points.iter().map(test).collect()
}

/// Whether an experiment of a resolved plan asks for several repetitions.
fn is_repeated(plan: &Value) -> bool {
    let is_more = |count: &Value| count.as_u64().is_some_and(|count| count > 1);
    let is_of = |part: &Value| {
        is_more(&part["repetitions"]) || is_more(&part["launches"]) || part["within"].is_number()
    };
    plan["experiments"].as_array().is_some_and(|parts| parts.iter().any(is_of))
}

/// The usual numbers of a point.
fn output(point: &Point, patterns: Patterns) -> String {
    let number =
        |path: String| Some(format!("{path} {}", fold(&[point], patterns, &path, None).ok()?.text()));
    let numbers = asked(point, patterns, &[]).into_iter().filter_map(number);
    let unstable = point.unstable.as_ref().map(|reason| format!("unstable: {reason}"));
    numbers.chain(unstable).collect::<Vec<_>>().join("; ")
}

/// The tests of expectations, one for each case.
fn expectations(run: &Exported<'_>, patterns: Patterns) -> Vec<Test> {
    let of = |judged: Judged<'_>| {
        let expectation = judged.expectation.to_string();
        // Without points, the experiments that are named tell cases apart.
        let named = judged.expectation.experiments.join(", ");
        let test = move |case: Case| {
            let points = if case.label.is_empty() { &named } else { &case.label };
            let name =
                if points.is_empty() { expectation.clone() } else { format!("{expectation}: {points}") };
            let said = line(&case);
            let output = if case.judgement == Judgement::Met { said.clone() } else { String::new() };
            let result = match case.judgement {
                Judgement::Met => Outcome::Passed,
                Judgement::NotMet => Outcome::Failure(format!("{expectation} is {said}")),
                Judgement::NotDecided(_) => Outcome::Skipped(said),
            };
            Test { output, ..Test::new("expectations", &name, result) }
        };
        judged.cases.into_iter().map(test)
    };
    run.judged(patterns).into_iter().flat_map(of).collect()
}

/// The name of the plan.
fn plan(run: &Exported<'_>) -> String {
    run.run.plan.get("name").map(text).unwrap_or_default()
}
