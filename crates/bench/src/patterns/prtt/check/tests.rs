use std::path::Path;

use super::super::settings::Settings;
use super::*;
use crate::plan::{Options, Plan, resolve};
use crate::point::{Length, PointSpec};

fn points(rest: &str) -> Result<Vec<PointSpec>, Error> {
    let head = "name = \"x\"\ntitle = \"X\"\n\n[[experiment]]\nname = \"loggp\"\npattern = \"prtt\"";
    let plan = Plan::parse(&format!("{head}\n{rest}"), "plans/x.toml", Path::new("."))?;
    resolve(&plan, &Options::default()).map(|resolved| resolved.points)
}

#[test]
fn n_and_d_are_axes_with_defaults() {
    let alone = points("").unwrap().remove(0);
    let shape = |point: &PointSpec| (Settings::of(point).burst, Settings::of(point).pause_ns);
    assert_eq!(
        (shape(&alone), alone.message.size_bytes, alone.message.signal_interval),
        ((Some(1), 0), 1, 1)
    );
    assert_eq!(alone.length, Length::Iterations(1000));
    let all =
        points("axes = { burst = [1, 16], pause_ns = [0, \"20us\"], operation = \"write_imm\" }").unwrap();
    let shapes: Vec<_> = all.iter().map(shape).collect();
    assert_eq!(shapes, [(Some(1), 0), (Some(1), 20_000), (Some(16), 0), (Some(16), 20_000)]);
    assert!(points("duration = \"1s\"").is_ok());
}

#[test]
fn what_no_round_can_be_is_refused_with_a_reason() {
    for (rest, words) in [
        (
            "axes = { operation = \"write\" }",
            "plans/x.toml:7: experiment \"loggp\" asks for bursts of RDMA Write, which is not possible: the receiver is not \
             notified, so it cannot answer: use send, send_imm or write_imm",
        ),
        (
            "axes = { burst = \"all\" }",
            "a burst of all messages, which is not possible: each burst is answered",
        ),
        (
            "axes = { burst = 129 }",
            "bursts of 129 messages, which is not possible: the queues hold 128 requests",
        ),
        (
            "tx_depth = 600\naxes = { burst = 513 }",
            "bursts of 513 messages, which is not possible: the queues hold 512",
        ),
        ("axes = { burst = 0 }", "burst of experiment \"loggp\" is 0: it must be at least 1"),
        ("axes = { queue_pairs = 2 }", "bursts over several queue pairs, which is not possible"),
        (
            "axes = { signal_interval = 4 }",
            "which is not possible: all sends complete before the next round: give 1",
        ),
        ("axes = { pause_ns = \"2min\" }", "a pause of more than a minute, which is not possible"),
        ("axes = { stamp = \"sent\" }", "stamp with the pattern \"prtt\", which is not possible"),
    ] {
        let error = points(rest).expect_err(rest).to_string();
        assert!(error.contains(words), "{rest}: {error}");
    }
}
