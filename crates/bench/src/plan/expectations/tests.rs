//! Expectations that cannot be judged, each with the error that its author reads.

use std::path::Path;

use measure::schema::fields;

use super::*;
use crate::plan::{Options, resolve};

const PLAN: &str = "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"lat\"\npattern = \"ping-pong\"\n\
                    axes = { service = [\"RC\", \"UC\"], size_bytes = [4, 8] }\n[[expect]]\n";

fn resolved(lines: &str) -> Result<Vec<Expectation>, String> {
    let plan = Plan::parse(&format!("{PLAN}{lines}"), "x.toml", Path::new("."));
    let plan = plan.map_err(|error| error.to_string())?;
    let resolved = resolve(&plan, &Options::default()).map_err(|error| error.to_string())?;
    Ok(resolved.expectations)
}

#[track_caller]
fn refusal(lines: &str) -> String {
    resolved(lines).expect_err("the expectation is wrong")
}

const P99: &str = "quantity = \"p99\"\nbound = \"<= 5 us\"\n";

#[test]
fn an_expectation_is_kept_for_the_record() {
    let lines = format!("{P99}experiments = [\"lat\"]\nwhere = {{ size_bytes = \"8B\" }}\nreason = \"R\"");
    let [expectation] = &resolved(&lines).unwrap()[..] else { panic!("one expectation") };
    assert_eq!(expectation.to_string(), "latency.p99_ns <= 5 us");
    assert_eq!(expectation.only["size_bytes"], 8);
    assert_eq!(
        (&expectation.experiments[..], expectation.reason.as_deref()),
        (&["lat".to_owned()][..], Some("R"))
    );
    assert_eq!(resolved("quantity = \"no_loss\"").unwrap()[0].to_string(), "messages_lost <= 0");
}

#[test]
fn the_keys_are_those_of_the_record() {
    let mut names: Vec<String> = fields::<Expectation>().into_iter().map(|field| field.name).collect();
    names.sort_unstable();
    assert_eq!(names, KEYS);
}

#[test]
fn a_wrong_key_or_value_is_refused_at_its_line() {
    let start = "the expectation \"latency.p99_ns <= 5 us\" cannot be judged: ";
    for (lines, error) in [
        (
            "quanttiy = \"p99\"",
            "x.toml:8: unknown key \"quanttiy\" in [[expect]]: did you mean \"quantity\"?".to_owned(),
        ),
        ("bound = \"<= 1\"", "x.toml:7: [[expect]] has no \"quantity\": add quantity = \"p99\"".to_owned()),
        ("quantity = \"p99\"", "x.toml:7: [[expect]] has no \"bound\": add bound = \"<= 5 us\"".to_owned()),
        ("quantity = 4", "x.toml:8: quantity in [[expect]] must be text, not 4".to_owned()),
        (
            &format!("{P99}where = {{ sizebytes = 4 }}"),
            format!("x.toml:7: {start}unknown axis \"sizebytes\": did you mean \"size_bytes\"?"),
        ),
        (
            &format!("{P99}experiments = [\"latt\"]"),
            format!("x.toml:7: {start}unknown experiment \"latt\": did you mean \"lat\"?"),
        ),
        (
            &format!("{P99}where = {{ size_bytes = 16 }}"),
            format!("x.toml:7: {start}the plan has no point with size_bytes 16"),
        ),
    ] {
        assert_eq!(refusal(lines), error);
    }
    let bound = refusal("quantity = \"p99\"\nbound = \"5 us\"");
    assert!(bound.starts_with("x.toml:9: bound in [[expect]]: \"5 us\" is no bound"), "{bound}");
}

#[test]
fn a_wrong_quantity_or_unit_is_refused_with_what_is_right() {
    let with = |quantity: &str, bound: &str| {
        let error = refusal(&format!("quantity = {quantity:?}\nbound = {bound:?}"));
        error.split_once(" cannot be judged: ").map(|(_, reason)| reason.to_owned()).expect(&error)
    };
    assert_eq!(with("p98", "<= 5 us"), "unknown quantity \"p98\": did you mean \"p99\"?");
    let path = with("latency.p99", "<= 5 us");
    assert!(path.starts_with("unknown quantity \"latency.p99\": did you mean \"latency.p99"), "{path}");
    assert_eq!(with("p99", "<= 5"), "latency.p99_ns is a time: give a time such as \"5 us\"");
    assert_eq!(
        with("throughput", ">= 90 %"),
        "throughput.bytes_per_s is a bandwidth: give a bandwidth such as \"12 Gb/s\" or a part of the link such as \
         \"90 % of link\""
    );
}

#[test]
fn an_expectation_of_the_command_line_names_its_flag() {
    let plan = Plan::parse(PLAN.trim_end_matches("[[expect]]\n"), "x.toml", Path::new(".")).unwrap();
    let judged = |text: &str| {
        let plan = plan.clone().expect(text).map_err(|error| error.to_string())?;
        resolve(&plan, &Options::default())
            .map(|resolved| resolved.expectations.len())
            .map_err(|e| e.to_string())
    };
    assert_eq!(judged("p99 <= 5us"), Ok(1));
    assert_eq!(
        judged("missed <= 2.5").unwrap_err().split(": ").last(),
        Some("give a share such as \"0.1 %\"")
    );
    assert!(judged("p99").unwrap_err().starts_with("--expect \"p99\": \"p99\" is no quantity with a bound"));
    let unit = judged("p99 <= 5").unwrap_err();
    assert!(
        unit.starts_with("--expect \"p99 <= 5\": the expectation \"latency.p99_ns <= 5\" cannot"),
        "{unit}"
    );
}

#[test]
fn a_bound_that_is_stated_twice_is_judged_once() {
    let lines =
        format!("{P99}[[expect]]\n{P99}reason = \"R\"\n[[expect]]\n{P99}where = {{ size_bytes = 4 }}");
    let kept: Vec<bool> = resolved(&lines).unwrap().iter().map(|kept| kept.only.is_empty()).collect();
    assert_eq!(kept, [true, false]);
    let plan = Plan::parse(&format!("{PLAN}quantity = \"no_loss\""), "x.toml", Path::new(".")).unwrap();
    let plan = plan.expect("lost <= 0").unwrap();
    assert_eq!(resolve(&plan, &Options::default()).unwrap().expectations.len(), 1);
}
