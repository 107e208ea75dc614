//! The environment of points: the coordinator sends it to the agents only when it changes.

use bench::axis;
use bench::plan::{Options, Plan, Settings, resolve};
use bench::point::{Pattern, PointSpec};
use bench::process::coordinator::Summary;
use measure::conditions::{Memory, Wanted};
use measure::record::{Point, Status};

use super::{TIMEOUT, run_points};

/// Two points without an environment, two with locked memory, and one without again.
fn points() -> Vec<PointSpec> {
    let settings =
        Settings { iterations: Some(10), timeout_s: Some(TIMEOUT.as_secs_f64()), ..Settings::default() }
            .axis(axis::ENVIRONMENT.values(["as_is".to_owned(), "own".to_owned()]))
            .axis(axis::SIZE_BYTES.values([4, 8]));
    let mut plan = Plan::new("test", "Test").experiment("e", Pattern::PING_PONG, settings);
    plan.environments.insert("own".to_owned(), Wanted { memory: Some(Memory::Locked), ..Wanted::default() });
    let mut points = resolve(&plan, &Options::default()).unwrap().points;
    points.push(PointSpec { id: 4, ..points[0].clone() });
    points
}

/// The reasons of the agents for each point.
fn reasons(points: &[Point]) -> Vec<Vec<String>> {
    let reasons = |point: &Point| -> Vec<String> {
        let conditions = point.conditions.iter();
        conditions.map(|one| format!("{}: {}", one.rank, one.reason.as_deref().unwrap_or_default())).collect()
    };
    points.iter().map(reasons).collect()
}

#[test]
fn an_environment_is_asked_for_once_and_stands_in_each_of_its_points() {
    let (summary, seen) = run_points(["good", "good"], &points());
    assert_eq!(summary, Ok(Summary { measured: 5, ..Summary::default() }));
    let own = ["0: request 1 for CPUs [0, 1]", "1: request 1 for CPUs [0, 1]"];
    assert_eq!(reasons(&seen.points), [&[][..], &[], &own, &own, &[]]);
}

#[test]
fn ranks_hear_of_the_cpus_of_their_own_host_alone() {
    let (summary, seen) = run_points(["elsewhere", "good"], &points());
    assert_eq!(summary, Ok(Summary { measured: 5, ..Summary::default() }));
    assert_eq!(reasons(&seen.points)[2], ["0: request 1 for CPUs [0]", "1: request 1 for CPUs [1]"]);
    let (_, seen) = run_points(["good", "loose"], &points());
    assert_eq!(reasons(&seen.points)[2], ["0: request 1 for CPUs [0]", "1: request 1 for CPUs [0]"]);
}

#[test]
fn a_point_that_fails_keeps_what_became_of_its_environment() {
    let (_, seen) = run_points(["fail-run-2", "good"], &points());
    assert!(matches!(seen.points[2].status, Status::Failed { .. }), "{:?}", seen.points[2]);
    assert_eq!(seen.points[2].conditions.len(), 2);
}

#[test]
fn an_agent_that_dies_while_it_arranges_costs_its_point_only() {
    let (summary, seen) = run_points(["good", "die-arrange"], &points());
    // Its successor dies over the same environment.
    assert_eq!(summary, Ok(Summary { measured: 3, failed: 2, ..Summary::default() }));
    let error = &seen.errors()[0];
    let expected = "was killed by signal 9 while arranging the environment of point 2";
    assert!(error.contains(expected), "{error}");
}
