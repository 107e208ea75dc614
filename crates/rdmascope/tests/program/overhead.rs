//! `rdmascope overhead` and its pattern: every call is timed where it should be. The tests assert
//! no times of calls.

use std::collections::BTreeSet;

use measure::record::{LatencyKind, Point};

use crate::support::{Scratch, all_measured, finish, has_librdmacm};

/// Asserts that the cost of a step comes from the batches that the rank of the step timed.
fn check(point: &Point, calls: u32) {
    let cost = point.cost.as_ref().unwrap();
    let batches = point.latency.as_ref().unwrap();
    assert_eq!(point.axes["step"], cost.step.as_str());
    assert_eq!((batches.kind, batches.count, cost.calls), (LatencyKind::Call, 30, calls));
    assert_eq!(cost.ns, batches.p50_ns as f64 / f64::from(calls));
    let [low, high] = cost.ci95_ns.unwrap();
    assert!(cost.ns > 0.0 && low <= cost.ns && cost.ns <= high && cost.stamp_ns > 0.0, "{cost:?}");
    let is_of_receiver = ["poll_receive", "post_receive"].contains(&cost.step.as_str());
    let timed: Vec<_> = point.ends.iter().filter(|end| end.latency.is_some()).map(|end| end.rank).collect();
    assert_eq!(timed, [u32::from(is_of_receiver)], "{}", cost.step);
    assert!(point.ends.iter().all(|end| end.samples.is_some() == end.latency.is_some()));
}

#[test]
fn every_step_is_timed_over_every_service() {
    let scratch = Scratch::alone();
    let plan = "name = \"calls\"\ntitle = \"Calls\"\n\n[[experiment]]\nname = \"calls\"\npattern = \"overhead\"\n\
                iterations = 30\nwarmup = 3\nkeep_samples = true\n[experiment.axes]\n";
    scratch
        .write("plan.toml", format!("{plan}service = [\"RC\", \"UC\", \"UD\"]\nsize_bytes = [64, 1024]\n"));
    scratch.succeed(&["run", "plan.toml", "-d", "softdev0", "--out", "record"]);
    let (_, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    assert_eq!(points.len(), 3 * 2 * 13);
    for point in &points {
        let is_hot = point.axes["step"].as_str().unwrap().starts_with("po");
        check(point, if is_hot { 64 } else { 1 });
    }
    scratch.assert_nothing_left();
}

#[test]
fn one_word_prints_what_every_call_costs() {
    let scratch = Scratch::alone();
    let flags = ["-d", "softdev0", "-n", "30"];
    let all = scratch.succeed(&[&["overhead", "--local", "--out", "record"][..], &flags].concat());
    let (run, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    assert_eq!(all.matches("overhead: overhead, RC send; per call").count(), 1, "one table: {all}");
    for point in &points {
        let step = point.axes["step"].as_str().unwrap();
        assert_eq!(
            all.lines().filter(|line| line.trim_start().starts_with(&format!("{step} "))).count(),
            1,
            "{all}"
        );
    }
    let report = std::fs::read_to_string(scratch.at("record/report.html")).unwrap();
    assert!(report.contains("Cost of a call") && report.contains("register_warm"));
    assert_eq!(run.figures.len(), 1);

    // One-sided operations have no receives, and inline messages are another experiment.
    for (operation, inline) in [("write", "64"), ("read", "0")] {
        let rest =
            ["overhead", "--local", "--operation", operation, "-I", inline, "-s", "8,128", "--batch", "5"];
        let record = format!("{operation}-record");
        scratch.succeed(&[&rest[..], &["--out", &record], &flags].concat());
        let (_, points) = scratch.record(&record);
        assert!(all_measured(&points), "{points:?}");
        points.iter().for_each(|point| check(point, 5));
        let steps: BTreeSet<_> = points.iter().map(|point| point.axes["step"].as_str().unwrap()).collect();
        assert!(steps.len() == 11 && !steps.contains("poll_receive"), "{steps:?}");
        let is_inline = |point: &Point| point.axes["inline"] == true;
        assert_eq!(points.iter().any(is_inline), inline != "0");
    }
}

#[test]
fn connections_of_rdma_cm_are_timed_beside_those_by_hand() {
    if !has_librdmacm() {
        return;
    }
    let scratch = Scratch::alone();
    let steps = "create_qp,connect_qp,rdma_cm_connect,rdma_cm_disconnect,destroy_qp";
    for (layer, batch) in [("ethernet", "1"), ("infiniband", "3")] {
        let words = ["overhead", "--local", "-n", "30", "--batch", batch, "--step", steps, "--out", layer];
        let mut command = scratch.program(words);
        command.args(["-d", "softdev0"]).env("RDMASCOPE_SOFTDEV_LINK_LAYER", layer);
        let ended = finish(command);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let (_, points) = scratch.record(layer);
        assert!(all_measured(&points), "{points:?}");
        assert_eq!(points.len(), 5);
        points.iter().for_each(|point| check(point, batch.parse().unwrap()));
        let ns = |step: &str| {
            let point = points.iter().find(|point| point.axes["step"] == step).unwrap();
            point.cost.as_ref().unwrap().ns
        };
        // One of them is a part of the other.
        assert!(ns("rdma_cm_connect") > ns("connect_qp"), "{points:?}");
    }
    // Operations that send nothing to the peer are connected, too.
    let words = "overhead --local -n 30 --step rdma_cm_connect --operation read -d softdev0 --out read";
    scratch.succeed(&words.split(' ').collect::<Vec<_>>());
    assert!(all_measured(&scratch.record("read").1));
    scratch.assert_nothing_left();
}

#[test]
fn what_cannot_be_timed_is_refused_in_a_sentence() {
    let scratch = Scratch::new();
    let refused = |rest: &str, words: &[&str]| {
        let words: Vec<_> = words.to_vec();
        let rest: Vec<_> = rest.split(' ').collect();
        scratch.refused(&[&["overhead", "--local"][..], &rest].concat(), 2, &words);
    };
    refused("--operation write --step poll_receive", &["poll_receive of RDMA Write", "consumes no receive"]);
    refused("--batch 129", &["batches of 129 calls", "the queues hold 128 requests"]);
    refused("-R", &["calls through RDMA CM", "rdma_cm_connect"]);
    refused("--step rdma_cm_connect -c UD", &["rdma_cm_connect over UD", "connects only RC"]);
    let ended = scratch.run(&["overhead", "--local", "--step", "post_sent"]);
    assert!(
        ended.status == Some(2) && ended.stderr.contains("a similar value exists: 'post_send'"),
        "{ended:?}"
    );
}
