//! The pattern `prtt` on softdev: bursts out and one message back. The tests assert only lower
//! bounds of times.

use measure::record::{LatencyKind, Point};

use crate::support::{Scratch, all_measured};

#[test]
fn rounds_are_timed_at_rank_0_over_every_service() {
    let scratch = Scratch::on_one_cpu();
    let experiment = |name: &str, rest: &str, axes: &str| {
        format!(
            "[[experiment]]\nname = \"{name}\"\npattern = \"prtt\"\n{rest}\n[experiment.axes]\nburst = [1, 16]\n\
             pause_ns = [0, \"20us\"]\nsize_bytes = [1, 1024]\n{axes}\n"
        )
    };
    let plan = [
        "name = \"prtt\"\ntitle = \"PRTT\"\n".to_owned(),
        experiment(
            "sends",
            "iterations = 30",
            "service = [\"RC\", \"UC\", \"UD\"]\noperation = [\"send\", \"send_imm\"]",
        ),
        experiment("writes", "iterations = 30", "service = [\"RC\", \"UC\"]\noperation = \"write_imm\""),
        experiment("sleeping", "iterations = 30", "poll = \"event\""),
        experiment("for-a-time", "duration = \"50ms\"", ""),
    ];
    scratch.write("plan.toml", plan.concat());
    scratch.succeed(&["run", "plan.toml", "-d", "softdev0", "--out", "record"]);
    let (_, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    assert_eq!(points.len(), 8 * (6 + 2 + 1 + 1));
    points.iter().for_each(check);
    scratch.assert_nothing_left();
}

fn check(point: &Point) {
    let rounds = point.latency.as_ref().unwrap();
    assert_eq!(rounds.kind, LatencyKind::Prtt);
    assert!(point.experiment == "for-a-time" || rounds.count == 30, "{point:?}");
    let timed: Vec<_> = point.ends.iter().filter(|end| end.latency.is_some()).map(|end| end.rank).collect();
    assert_eq!(timed, [0], "only rank 0 times rounds");
    let number = |axis: &str| point.axes[axis].as_u64().unwrap();
    let waited_ns = (number("burst") - 1) * number("pause_ns");
    assert!(rounds.min_ns >= waited_ns, "{} ns with pauses of {waited_ns} ns", rounds.min_ns);
    assert_eq!(point.counters["packets_sent"], rounds.count * number("burst"));
}
