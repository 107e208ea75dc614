use std::path::Path;

use super::super::settings::Settings;
use super::*;
use crate::plan::{Options, Plan, Resolved, resolve};
use crate::point::PointSpec;

fn resolved(pattern: &str, rest: &str) -> Result<Resolved, Error> {
    let head = "name = \"x\"\ntitle = \"X\"\n\n[[experiment]]\nname = \"calls\"";
    let text = format!("{head}\npattern = \"{pattern}\"\n{rest}");
    resolve(&Plan::parse(&text, "plans/x.toml", Path::new("."))?, &Options::default())
}

fn points(rest: &str) -> Vec<PointSpec> {
    resolved("overhead", rest).expect("the plan is right").points
}

#[test]
fn every_step_is_a_point_with_a_batch_that_suits_it() {
    let all = points("");
    assert_eq!(all.iter().map(|point| Settings::of(point).step).collect::<Vec<_>>(), Step::OF_VERBS);
    for point in &all {
        let step = Settings::of(point).step;
        assert_eq!(Settings::of(point).batch(point), if step.is_hot() { 64 } else { 1 }, "{step:?}");
        assert_eq!((point.axes["step"].as_str(), point.message.signal_interval), (Some(step.word()), 1));
        assert_eq!((point.length, point.message.size_bytes), (Length::Iterations(1000), 64));
    }
    let shallow = points("tx_depth = 16\naxes = { step = [\"post_send\", \"create_qp\"] }");
    let batches = |points: &[PointSpec]| {
        points.iter().map(|point| Settings::of(point).batch(point)).collect::<Vec<_>>()
    };
    assert_eq!(batches(&shallow), [16, 1]);
    let managed = points("axes = { step = [\"connect_qp\", \"rdma_cm_connect\", \"rdma_cm_disconnect\"] }");
    assert_eq!(managed.iter().map(PointSpec::uses_rdma_cm).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(batches(&managed), [1, 1, 1]);
    let given = points("axes = { step = \"poll_empty\", batch = [1, 128, \"step\"] }");
    assert_eq!(batches(&given), [1, 128, 64]);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    for (pattern, rest, words) in [
        (
            "ping-pong",
            "axes = { step = \"post_send\" }",
            "plans/x.toml:7: experiment \"calls\" asks for step with the pattern \"ping-pong\", which is not possible: it is for \
             the pattern \"overhead\"",
        ),
        (
            "stream",
            "axes = { batch = 4 }",
            "asks for batch with the pattern \"stream\", which is not possible: it is for",
        ),
        ("overhead", "axes = { step = \"poll_recv\" }", "unknown step \"poll_recv\" in"),
        ("overhead", "duration = \"1s\"", "calls for a duration, which is not possible: batches are counted"),
        ("overhead", "iterations = 4194305", "more than 4194304 batches of calls, which is not possible"),
        (
            "overhead",
            "axes = { poll = \"event\" }",
            "calls of a rank that sleeps, which is not possible: a sleep is no part",
        ),
        ("overhead", "axes = { queue_pairs = 2 }", "calls with several queue pairs, which is not possible"),
        (
            "overhead",
            "axes = { signal_interval = 2 }",
            "which is not possible: every send of a batch asks for its completion",
        ),
        (
            "overhead",
            "axes = { signal_interval = \"half\" }",
            "every send of a batch asks for its completion: give 1",
        ),
        ("overhead", "axes = { setup = \"rdma_cm\" }", "calls through RDMA CM, which is not possible"),
        (
            "overhead",
            "axes = { step = [\"create_qp\", \"rdma_cm_connect\"], service = [\"RC\", \"UD\"] }",
            "rdma_cm_connect over UD, which is not possible: RDMA CM connects only RC",
        ),
        ("overhead", "axes = { batch = 0 }", "batch of experiment \"calls\" is 0: it must be at least 1"),
        (
            "overhead",
            "axes = { batch = 129 }",
            "batches of 129 calls, which is not possible: the queues hold 128 requests: shorten the batch, or raise tx_depth",
        ),
        (
            "overhead",
            "axes = { memory = \"device\" }",
            "register_cold of the device's memory, which is not possible: it exists already: give memory = \"process\"",
        ),
        (
            "overhead",
            "axes = { step = \"register_cold\", size_bytes = 0 }",
            "register_cold of 0 B, which is not possible: a memory region has at least 1 byte",
        ),
        (
            "overhead",
            "axes = { step = \"register_cold\", size_bytes = \"1GiB\", batch = 8 }",
            "batches that register more than 4 GiB, which is not possible: all regions of a batch exist at the same time",
        ),
        (
            "overhead",
            "axes = { pause_ns = 5 }",
            "pause_ns with the pattern \"overhead\", which is not possible",
        ),
    ] {
        let error = resolved(pattern, rest).expect_err(rest).to_string();
        assert!(error.contains(words), "{rest}: {error}");
    }
    // A batch of calls that use no queue may be longer than a queue.
    let long = points("axes = { step = \"create_cq\", batch = 200 }");
    assert_eq!(Settings::of(&long[0]).batch(&long[0]), 200);
    // Steps that need no receive work with every operation.
    assert_eq!(points("axes = { step = [\"post_send\", \"poll_send\"], operation = \"read\" }").len(), 2);
}
