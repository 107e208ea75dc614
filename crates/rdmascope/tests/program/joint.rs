//! Collectives and halo exchanges over rdmascope's own RDMA Writes.

use std::time::Duration;

use measure::record::{Point, Status};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mpi;
use crate::support::processes::signal;
use crate::support::{Scratch, all_measured, collect, finish, is_installed, skip, until_measuring};

/// Runs a plan of these experiments over softdev; returns its points.
fn run(scratch: &Scratch, experiments: &str, arguments: &[&str]) -> Vec<Point> {
    scratch.write("plan.toml", format!("name = \"joint\"\ntitle = \"Joint\"\n{experiments}"));
    let words = [&["run", "plan.toml", "-d", "softdev0", "--out", "record"], arguments].concat();
    scratch.succeed(&words);
    let (_, points) = scratch.record("record");
    assert!(all_measured(&points), "{:?}", points.iter().map(|point| &point.status).collect::<Vec<_>>());
    scratch.assert_nothing_left();
    points
}

fn number(point: &Point, axis: &str) -> u32 {
    point.axes[axis].as_u64().unwrap() as u32
}

#[test]
fn barriers_in_n_ways_count_their_writes() {
    let points = run(
        &Scratch::on_one_cpu(),
        r#"
[[experiment]]
name = "barrier"
pattern = "collective"
iterations = 20
warmup = 5
[experiment.axes]
endpoint = "verbs"
collective = "barrier"
ranks = [2, 3, 4, 5, 6, 7, 8]
ways = [1, 2, 3, 4]
inline = true
size_bytes = 0
"#,
        &[],
    );
    assert_eq!(points.len(), 7 * 4);
    for point in &points {
        let ranks = number(point, "ranks");
        let ways = number(point, "ways");
        let known = |round: &u32| (ways + 1).pow(*round);
        let rounds: Vec<u32> = (0..).take_while(|round| known(round) < ranks).collect();
        let of_rank: u32 = rounds.iter().map(|round| ways.min((ranks - 1) / known(round))).sum();
        assert_eq!(point.own["collective"]["writes"], json!(f64::from(of_rank * ranks)), "{ranks} {ways}");
        // No round leaves out a rank.
        if ways * known(rounds.last().unwrap()) < ranks {
            assert_eq!(of_rank, ways * rounds.len() as u32, "{ranks} {ways}");
        }
        assert_eq!(point.ends.len() as u32, ranks);
        assert!(ranks <= 2 || point.unstable.as_ref().is_some(), "{ranks} ranks share CPUs");
    }
}

#[test]
fn operations_and_exchanges_over_verbs_bring_what_they_should() {
    let points = run(
        &Scratch::on_one_cpu(),
        r#"
[[experiment]]
name = "allreduce"
pattern = "collective"
iterations = 50
[experiment.axes]
endpoint = "verbs"
collective = "allreduce"
algorithm = ["usual", "recursive_doubling", "ring"]
ranks = [1, 2, 3]
start = ["barrier", "own_barrier", "none"]
datatype = "double"
size_bytes = [8, 4096]
[[experiment]]
name = "allgather"
pattern = "collective"
iterations = 50
[experiment.axes]
endpoint = "verbs"
collective = "allgather"
algorithm = ["usual", "ring"]
ranks = [2, 5]
size_bytes = [0, 8, 4096]
[[experiment]]
name = "ways"
pattern = "collective"
iterations = 50
axes = { endpoint = "verbs", collective = "allgather", ranks = 6, ways = [2, 3], size_bytes = 24 }
[[experiment]]
name = "halo"
pattern = "halo"
iterations = 100
[experiment.axes]
endpoint = "verbs"
grid = ["1x1", "1x2", "2x1", "2x2"]
side_values = [0, 1, 7, 1024]
"#,
        &[],
    );
    assert_eq!(points.len(), 3 * 3 * 3 * 2 + 2 * 2 * 3 + 2 + 4 * 4);
    for point in &points {
        let kinds: Vec<_> = point.kinds.iter().map(|timed| timed.latency.kind.name()).collect();
        assert_eq!(kinds, ["slowest", "last_last", "first_last", "start_skew"]);
        assert_eq!(point.axes["operation"], "write");
    }
}

/// As over MPI: a delay of 100 us shows where it should; elsewhere, at most half of it does.
#[test]
fn a_delay_shows_in_exactly_the_columns_that_it_should() {
    const THERE: f64 = 99.0;
    const ELSEWHERE: f64 = 50.0;
    let table: [(&str, &[&str], &[&str]); 2] = [
        ("before", &["own 0", "start_skew", "slowest", "first_last"], &["own 1", "last_last"]),
        ("within", &["own 0", "own 1", "slowest", "last_last", "first_last"], &["start_skew"]),
    ];
    for operation in ["verbs-barrier", "verbs-allreduce", "verbs-allgather"] {
        for (when, there, elsewhere) in table {
            let scratch = Scratch::alone();
            let inject = format!("rank=1,{when}=100us");
            let words =
                ["collective", operation, "-d", "softdev0", "-n", "200", "--start", "instant", "--inject"];
            scratch.succeed(&[&words[..], &[&inject, "--out", "record"]].concat());
            let (_, points) = scratch.record("record");
            let point = &points[0];
            let median_us = |name: &str| {
                let mut kinds = point.kinds.iter().map(|timed| &timed.latency);
                let latency = match name {
                    "own 0" => point.ends[0].latency.as_ref(),
                    "own 1" => point.ends[1].latency.as_ref(),
                    _ => kinds.find(|latency| latency.kind.name() == name),
                };
                latency.unwrap().p50_ns as f64 / 1e3
            };
            for name in there {
                assert!(median_us(name) >= THERE, "{operation}, {when}: {name} is {} us", median_us(name));
            }
            for name in elsewhere {
                assert!(
                    median_us(name) <= ELSEWHERE,
                    "{operation}, {when}: {name} is {} us",
                    median_us(name)
                );
            }
        }
    }
}

/// Over a link on which a write takes 20 ms, each round of a barrier takes 20 ms.
#[test]
fn more_ways_take_fewer_rounds() {
    let scratch = Scratch::alone();
    let words = ["collective", "verbs-barrier", "-d", "softdev0", "--link", "latency=20ms", "--ranks", "4"];
    let few = ["--ways", "1,3", "-n", "5", "--out", "record"];
    scratch.succeed(&[&words[..], &few[..]].concat());
    let (_, points) = scratch.record("record");
    let last_last_ms = |point: &Point| {
        let mut kinds = point.kinds.iter().map(|timed| &timed.latency);
        kinds.find(|latency| latency.kind.name() == "last_last").unwrap().p50_ns as f64 / 1e6
    };
    let times: Vec<f64> = points.iter().map(last_last_ms).collect();
    assert!(times[0] >= 39.0, "two rounds: {times:?}");
    assert!((19.0..39.0).contains(&times[1]), "one round: {times:?}");
}

#[test]
fn the_plan_of_barriers_says_which_n_was_the_fastest() {
    let scratch = Scratch::on_one_cpu();
    // With --via, no ranks of MPI are started, even if MPI is installed.
    let few = ["--quick", "--set", "iterations=50", "-d", "softdev0", "--out", "record", "--via", "env"];
    let stdout = scratch.succeed(&[&["run", "hoefler-2006-barrier"], &few[..]].concat());
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    let (over_mpi, over_verbs): (Vec<Point>, Vec<Point>) =
        points.into_iter().partition(|point| point.axes["endpoint"] == "mpi");
    assert!(all_measured(&over_verbs), "{over_verbs:?}");
    assert!(over_mpi.iter().all(|point| matches!(point.status, Status::NotMeasured { .. })));
    assert!(stdout.contains(" A 2-way barrier is faster than a 1-way barrier"), "{stdout}");
    let model = scratch.succeed(&["model", "record"]);
    let said = model.split_once(" The fastest n:").expect(&model).1;
    for ranks in ["   2 ranks: n = 1 is", "   4 ranks: n = ", "   8 ranks: n = "] {
        let line = said.lines().find(|line| line.starts_with(ranks)).expect(said);
        assert!(line.contains("; LogfP predicts n"), "{line}");
    }
}

#[test]
fn what_ranks_do_not_do_over_verbs_is_refused_with_a_sentence() {
    let scratch = Scratch::waiting();
    let axes = |axes: &str| {
        format!(
            "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\npattern = \"collective\"\n[experiment.axes]\n{axes}\n"
        )
    };
    for (given, words) in [
        ("collective = \"bcast\"", "only allgather, allreduce and barrier run over verbs"),
        ("algorithm = \"dissemination\"", "use recursive_doubling or ring"),
        (
            "collective = \"allgather\"\nalgorithm = \"recursive_doubling\"\nranks = 6",
            "must be a power of two",
        ),
        ("collective = \"barrier\"\nalgorithm = \"ring\"", "a barrier over verbs uses dissemination"),
        ("ways = 2", "ways applies to dissemination only"),
        ("collective = \"barrier\"\nways = 0", "ways of experiment \"e\" is 0"),
        ("service = \"UC\"", "use RC"),
        ("operation = \"send\"", "ranks write to each other's memory"),
        ("poll = \"event\"", "use poll busy"),
        ("queue_pairs = 2", "one queue pair keeps the order of writes"),
        ("endpoint = \"mpi\"\nways = 2", "this axis is for other endpoints"),
        ("size_bytes = 6", "a multiple of 4 B"),
    ] {
        scratch.write("plan.toml", axes(given));
        scratch.refused(&["run", "plan.toml", "-d", "softdev0"], 2, &[words]);
    }
}

#[test]
fn barriers_and_exchanges_over_verbs_and_mpi_stand_in_one_grid() {
    const LAUNCHER: &str = "mpirun.openmpi";
    if !is_installed(LAUNCHER) {
        skip("joint", &format!("there is no {LAUNCHER}"));
        return;
    }
    let scratch = Scratch::alone();
    scratch.write(
        "plan.toml",
        r#"
name = "both"
title = "Both"
mpi = "mpirun.openmpi --oversubscribe -np {ranks}"
[[experiment]]
name = "barrier"
pattern = "collective"
iterations = 50
axes = { endpoint = ["verbs", "mpi"], collective = "barrier", ranks = [2, 4], ways = [1, 2], size_bytes = 0 }
[[experiment]]
name = "halo"
pattern = "halo"
iterations = 50
axes = { endpoint = ["mpi", "verbs"], halo_method = ["nonblocking", "put"], grid = "2x1", side_values = [0, 64] }
"#,
    );
    let ended = finish(scratch.program(["run", "plan.toml", "-d", "softdev0", "--out", "record"]));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (_, points) = scratch.record("record");
    assert!(points.iter().all(|point| matches!(point.status, Status::Measured)), "{points:?}");
    let of = |endpoint: &str| points.iter().filter(|point| point.axes["endpoint"] == endpoint).count();
    // MPI has no axis `ways`, and verbs have only one method.
    assert_eq!((of("verbs"), of("mpi")), (2 * 2 + 2, 2 + 2 * 2));
    let has = |point: &&Point| point.axes.get("halo_method").is_some_and(Value::is_string);
    assert!(points.iter().filter(has).all(|point| point.axes["endpoint"] == "mpi"));
    scratch.assert_nothing_left();
}

/// Stops a command in the middle of its only point; returns the point, which is cut.
fn cut(words: &[&str]) -> Point {
    let scratch = Scratch::alone();
    let child = scratch.program([words, &["--out", "record"]].concat()).spawn().unwrap();
    let child = until_measuring(child, &scratch.at("record"));
    // The calls have begun.
    std::thread::sleep(Duration::from_secs(1));
    signal(child.id().cast_signed(), Signal::INT);
    let ended = collect(child);
    assert_eq!(ended.status, Some(130), "{words:?}: {ended:?}");
    let (_, points) = scratch.record("record");
    let [point] = &points[..] else { panic!("{words:?}: {points:?}") };
    assert!(point.cut, "{words:?}: {point:?}");
    scratch.assert_nothing_left();
    point.clone()
}

/// Asserts that all ranks of a cut point have ended after the same call, before the last.
fn assert_cut_together(words: &[&str]) {
    let point = cut(words);
    assert_eq!(point.status, Status::Measured, "{words:?}");
    let calls = point.kinds[0].latency.count;
    assert!(calls > 0 && calls < 1_000_000, "{words:?}: {calls}");
    assert!(
        point.ends.iter().all(|end| end.latency.as_ref().unwrap().count == calls),
        "{words:?}: {point:?}"
    );
}

/// Calls of more than 10 s.
const MANY: [&str; 6] = ["-n", "1M", "--warmup", "10", "--inject", "rank=1,before=10us"];

#[test]
fn all_ranks_of_a_cut_point_end_after_the_same_call() {
    for start in ["instant", "none"] {
        let words = ["collective", "verbs-barrier", "-d", "softdev0", "--ranks", "3", "--start", start];
        assert_cut_together(&[&words[..], &MANY].concat());
    }
}

#[test]
fn all_ranks_of_a_cut_point_over_mpi_end_after_the_same_call() {
    mpi::each(|mpi| {
        let many = [&MANY[..], &["--mpi", mpi.template]].concat();
        assert_cut_together(&[&["halo", "mpi"], &many[..]].concat());
        // The calls with a computation have not begun.
        let point = cut(&[&["collective", "iallreduce"], &many[..]].concat());
        let Status::NotMeasured { reason } = &point.status else { panic!("{point:?}") };
        assert!(reason.contains("before it had measured anything"), "{reason}");
    });
}
