//! Valid and wrong environments.

use std::path::Path;

use measure::conditions::{Aspm, Cpuset, IrqAffinity, Memory, Numa, Scheduler, Stress, Turbo};

use super::*;
use crate::plan::{Options, Resolved, resolve};

const HEAD: &str = "name = \"x\"\ntitle = \"X\"\n";

fn resolved(environments: &str, axes: &str, set: &[&str]) -> Result<Resolved, Error> {
    let text = format!(
        "{HEAD}{environments}\n[[experiment]]\nname = \"lat\"\npattern = \"ping-pong\"\n[experiment.axes]\n{axes}\n"
    );
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    resolve(&Plan::parse(&text, "plans/x.toml", Path::new("."))?, &Options { quick: false, set })
}

#[track_caller]
fn refusal(lines: &str, axes: &str) -> String {
    let environment =
        if lines.is_empty() { String::new() } else { format!("[[environment]]\nname = \"own\"\n{lines}") };
    resolved(&environment, axes, &[]).expect_err("the plan is wrong").to_string()
}

#[test]
fn every_key_of_an_environment_is_read() {
    let environment = "[[environment]]\nname = \"own\"\naspm = \"performance\"\ncpu_dma_latency_us = 0\n\
                       cpuset = \"shield\"\ngovernor = \"performance\"\nirq_affinity = \"away\"\nmemory = \"locked\"\n\
                       numa = \"device\"\nscheduler = \"fifo:50\"\nstress = \"cpu\"\n\
                       tuned = \"latency-performance\"\nturbo = \"off\"";
    let points = resolved(environment, "environment = \"own\"", &[]).unwrap().points;
    let expected = Wanted {
        aspm: Some(Aspm::Performance),
        cpu_dma_latency_us: Some(0),
        cpuset: Some(Cpuset::Shield),
        governor: Some("performance".to_owned()),
        ipoib_mode: None,
        irq_affinity: Some(IrqAffinity::Away),
        memory: Some(Memory::Locked),
        numa: Some(Numa::Device),
        scheduler: Some(Scheduler::Fifo(50)),
        stress: Some(Stress::Cpu),
        tuned: Some("latency-performance".to_owned()),
        turbo: Some(Turbo::Off),
    };
    assert_eq!(points[0].conditions, expected);
    assert_eq!(
        names_of::<Wanted>().len(),
        expected.techniques().len() + 1,
        "the text has a key for each technique except the one that is an axis"
    );
    assert!(refusal("ipoib_mode = \"connected\"", "environment = \"own\"").contains("ipoib_mode"));
}

#[test]
fn the_environment_is_the_outermost_axis_and_stands_in_the_record() {
    let own = "[[environment]]\nname = \"own\"\nmemory = \"locked\"";
    let axes = "size_bytes = [4, 8]\nenvironment = [\"as_is\", \"event\", \"own\"]";
    let resolved = resolved(own, axes, &[]).unwrap();
    let shown: Vec<_> = resolved
        .points
        .iter()
        .map(|point| format!("{} {}", point.axes["environment"].as_str().unwrap(), point.message.size_bytes))
        .collect();
    assert_eq!(shown, ["as_is 4", "as_is 8", "event 4", "event 8", "own 4", "own 8"]);
    assert!(resolved.points[0].conditions.is_as_is());
    assert_eq!(Some(&resolved.points[2].conditions), Wanted::built_in("event").as_ref());
    let environments = &resolved.plan["environments"];
    assert_eq!(environments["own"], json!({"memory": "locked"}));
    assert_eq!((&environments["as_is"], &environments["optimised"]), (&json!({}), &Value::Null));
}

#[test]
fn a_point_without_an_environment_is_as_it_was() {
    let resolved = resolved("", "size_bytes = 4", &[]).unwrap();
    assert!(resolved.points[0].conditions.is_as_is());
    assert!(!resolved.points[0].axes.contains_key("environment"));
    let sent = serde_json::to_value(&resolved.points[0]).unwrap();
    assert!(sent.get("conditions").is_none(), "{sent}");
}

#[test]
fn an_environment_can_be_set_and_a_built_in_one_replaced() {
    let own = "[[environment]]\nname = \"optimised\"\nturbo = \"off\"";
    let points = resolved(own, "size_bytes = 4", &["environment=as_is,optimised"]).unwrap().points;
    assert_eq!(points.len(), 2);
    assert_eq!(points[1].conditions, Wanted { turbo: Some(Turbo::Off), ..Wanted::default() });
}

#[test]
fn what_is_miswritten_is_refused_with_the_nearest() {
    for (lines, sentence) in [
        (
            "govenor = \"x\"",
            "plans/x.toml:5: unknown key \"govenor\" in [[environment]]: did you mean \"governor\"?",
        ),
        ("turbo = \"of\"", "plans/x.toml:5: unknown turbo \"of\" in [[environment]]: did you mean \"off\"?"),
        ("stress = \"disk\"", "plans/x.toml:5: unknown stress \"disk\" in [[environment]]: use one of cpu"),
        ("memory = true", "plans/x.toml:5: memory in [[environment]] must be text, not true"),
        (
            "cpu_dma_latency_us = -1",
            "plans/x.toml:5: cpu_dma_latency_us in [[environment]] must be a whole number of microseconds below 2^31, \
             not -1",
        ),
        (
            "scheduler = \"fifo\"",
            "plans/x.toml:5: scheduler in [[environment]]: \"fifo\" has no priority from 1 to 99: write fifo:50",
        ),
        (
            "tuned = \"--help\"",
            "plans/x.toml:5: tuned in [[environment]] must be a name made of letters, digits, '-', '_' and '.', not the \
             text \"--help\"",
        ),
        ("numa = { a = 1 }", "plans/x.toml:5: numa in [[environment]] must be one value, not a table"),
        (
            "[[environment]]\nname = \"own\"",
            "plans/x.toml:5: the environment \"own\" cannot be defined: another environment has this name",
        ),
        (
            "[[environment]]\nname = \"as_is\"",
            "plans/x.toml:5: the environment \"as_is\" cannot be defined: the name is reserved for the environment that \
             changes nothing",
        ),
        (
            "[[environment]]\nturbo = \"on\"",
            "plans/x.toml:5: [[environment]] has no \"name\": add name = \"tuned\"",
        ),
    ] {
        assert_eq!(refusal(lines, ""), sentence);
    }
    assert_eq!(
        refusal("", "environment = \"optimized\""),
        "plans/x.toml:8: unknown environment \"optimized\" in experiment \"lat\": did you mean \"optimised\"?"
    );
    assert_eq!(
        refusal("", "environment = 3"),
        "plans/x.toml:8: environment in [[experiment]] must be text, not 3"
    );
}
