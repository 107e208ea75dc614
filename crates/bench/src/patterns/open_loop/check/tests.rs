use std::path::Path;

use super::super::settings::Settings;
use super::*;
use crate::plan::{Options, Plan, resolve};
use crate::point::{Length, Load, PointSpec};

fn points(rest: &str) -> Result<Vec<PointSpec>, Error> {
    let head = "name = \"x\"\ntitle = \"X\"\n\n[[experiment]]\nname = \"load\"\npattern = \"open-loop\"";
    let plan = Plan::parse(&format!("{head}\n{rest}"), "plans/x.toml", Path::new("."))?;
    resolve(&plan, &Options::default()).map(|resolved| resolved.points)
}

#[test]
fn rates_and_loads_are_axes_with_defaults() {
    let alone = points("").unwrap().remove(0);
    let asked = |point: &PointSpec| (Settings::of(point).rate_hz, Settings::of(point).loaders);
    assert_eq!((asked(&alone), alone.axes.get("load_bytes")), ((10_000, 0), None));
    assert_eq!((alone.length, alone.warmup), (Length::Iterations(10_000), 1000), "a second's");
    assert_eq!(alone.ranks(), 2);
    let loaded = points("axes = { loaders = 3 }").unwrap().remove(0);
    let Settings { load, load_bytes, .. } = Settings::of(&loaded);
    assert_eq!((load, load_bytes, loaded.ranks()), (Load::Incast, 65536, 5));
    let all = points(
        "duration = \"100ms\"\naxes = { rate_hz = [10, \"20k\", \"1M\"], loaders = [0, \"2..3\"], load = \"outcast\" }",
    )
    .unwrap();
    let of: Vec<_> = all.iter().map(|point| (asked(point), point.length, point.ranks())).collect();
    assert_eq!(of[0], ((10, 0), Length::Iterations(1), 2), "one at least");
    assert_eq!(of[5], ((20_000, 3), Length::Iterations(2000), 5));
    assert_eq!(of[8], ((1_000_000, 3), Length::Iterations(100_000), 5));
    assert!(all.iter().all(|point| Settings::of(point).load == Load::Outcast));
    let given = points("iterations = 300\nwarmup = 7").unwrap().remove(0);
    assert_eq!((given.length, given.warmup), (Length::Iterations(300), 7));
}

#[test]
fn what_cannot_be_asked_at_a_rate_is_refused_with_a_reason() {
    for (rest, words) in [
        (
            "axes = { operation = \"write\" }",
            "plans/x.toml:7: experiment \"load\" asks for RDMA Write at a set rate, which is not possible: several may be \
             outstanding, and memory shows only the last: use write_imm",
        ),
        (
            "axes = { rate_hz = 0 }",
            "a rate of 0/s, which is not possible: give 1 to 50000000 messages per second",
        ),
        ("axes = { rate_hz = \"60M\" }", "a rate of 60000000/s, which is not possible"),
        (
            "axes = { rate_hz = \"10 K\" }",
            "plans/x.toml:7: rate_hz in [[experiment]]: cannot read \"10 K\" as a rate",
        ),
        (
            "iterations = 1000\naxes = { rate_hz = 10 }",
            "1000 messages and 100 warm-up messages at 10/s, which is not possible: that takes 110 s, but the point's time limit \
             is 60 s: raise timeout, or measure fewer messages",
        ),
        ("axes = { loaders = 513 }", "more than 512 loaders, which is not possible: each is a process"),
        (
            "axes = { load_bytes = 0 }",
            "a load of empty messages, which is not possible: give at least 1 byte",
        ),
        (
            "axes = { queue_pairs = 2 }",
            "messages at a set rate over several queue pairs, which is not possible",
        ),
        ("axes = { signal_interval = 2 }", "unsignalled messages at a set rate, which is not possible"),
        (
            "axes = { operation = \"read\", poll = \"event\" }",
            "fetches at a set rate by a rank that sleeps, which is not possible",
        ),
        (
            "axes = { load = \"anycast\" }",
            "unknown load \"anycast\" in [[experiment]]: did you mean \"incast\"?",
        ),
        ("axes = { peers = 2 }", "peers with the pattern \"open-loop\", which is not possible"),
    ] {
        let error = points(rest).expect_err(rest).to_string();
        assert!(error.contains(words), "{rest}: {error}");
    }
}
