//! Findings that cannot be answered, each with the error that its author reads.

use std::path::Path;

use crate::plan::{Options, Plan, resolve};

const PLAN: &str = "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"lat\"\npattern = \"ping-pong\"\n\
                    axes = { service = [\"RC\", \"UC\"], size_bytes = [4, 8] }\n[[finding]]\nclaim = \"C\"\n";

fn resolved(finding: &str, set: &[&str]) -> Result<usize, String> {
    let text = format!("{PLAN}{finding}");
    let plan = Plan::parse(&text, "x.toml", Path::new(".")).map_err(|error| error.to_string())?;
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let resolved = resolve(&plan, &Options { quick: false, set }).map_err(|error| error.to_string())?;
    Ok(resolved.findings.len())
}

/// The text after `the finding "C" cannot be answered: `.
fn refusal(finding: &str) -> String {
    let error = resolved(finding, &[]).expect_err("the finding is wrong");
    let (place, reason) = error.split_once(": the finding \"C\" cannot be answered: ").expect(&error);
    assert_eq!(place, "x.toml:7");
    reason.to_owned()
}

const CHANGE: &str = "kind = \"change\"\nexperiments = [\"lat\"]\nholds = \"< 0 %\"\n";
const BOTH: &str = "of = { service = \"UC\" }\nagainst = { service = \"RC\" }\n";

#[test]
fn a_finding_is_kept_for_the_record() {
    assert_eq!(resolved(&format!("{CHANGE}{BOTH}each = [\"size_bytes\"]"), &[]), Ok(1));
}

#[test]
fn names_are_known_or_the_nearest_is_given() {
    let change = |lines: &str| refusal(&format!("{CHANGE}{BOTH}{lines}"));
    assert_eq!(change("each = [\"size\"]"), "unknown axis \"size\": did you mean \"size_bytes\"?");
    assert_eq!(change("where = { servce = \"RC\" }"), "unknown axis \"servce\": did you mean \"service\"?");
    assert_eq!(
        change("quantity = \"latency.p50\""),
        "unknown quantity \"latency.p50\": did you mean \"latency.p50_ns\"?"
    );
    let wrong = CHANGE.replace("\"lat\"", "\"lta\"");
    assert_eq!(refusal(&format!("{wrong}{BOTH}")), "unknown experiment \"lta\": did you mean \"lat\"?");
    let of = |of: &str| refusal(&format!("{CHANGE}of = {{ {of} }}\nagainst = {{ service = \"RC\" }}"));
    assert_eq!(of("experiment = \"lta\""), "unknown experiment \"lta\": did you mean \"lat\"?");
    assert_eq!(of("quantity = 4"), "its quantity 4 is not a text");
    assert_eq!(of("sevice = \"UC\""), "unknown axis \"sevice\": did you mean \"service\"?");
}

#[test]
fn every_kind_has_its_keys() {
    assert_eq!(refusal(CHANGE), "it has no \"of\", which the kind \"change\" needs");
    let both_and_x = format!("{CHANGE}{BOTH}x = \"size_bytes\"");
    assert_eq!(refusal(&both_and_x), "its kind \"change\" has no \"x\": leave it out");
    let kind = |kind: &str, lines: &str| {
        refusal(&format!("kind = \"{kind}\"\nexperiments = [\"lat\"]\nholds = \"> 5 %\"\n{lines}"))
    };
    assert_eq!(kind("step", "x = \"size_bytes\""), "it has no \"between\", which the kind \"step\" needs");
    assert_eq!(kind("step", "x = \"size_bytes\"\nbetween = [8, 4]"), "its step from 8 to 4 does not rise");
    assert_eq!(
        kind("order", "order = [{ service = \"UC\" }]"),
        "its order has one series: give two or more, the least first"
    );
    assert_eq!(
        kind("order", "order = [{ service = \"UC\" }, { service = \"RC\" }]\nto = 4"),
        "it has a from or to but no x: add x = \"size_bytes\""
    );
    let error = resolved("kind = \"change\"\nexperiments = [\"lat\"]", &[]).unwrap_err();
    assert_eq!(error, "x.toml:7: the finding \"C\" cannot be answered: missing field \"holds\"");
    let error = resolved("kid = 4", &[]).unwrap_err();
    assert_eq!(error, "x.toml:9: unknown key \"kid\" in [[finding]]: did you mean \"kind\"?");
}

#[test]
fn a_range_is_one_of_what_is_made() {
    let value = |quantity: &str, lines: &str| {
        let head = "kind = \"value\"\nexperiments = [\"lat\"]\n";
        refusal(&format!("{head}quantity = \"{quantity}\"\n{lines}"))
    };
    assert_eq!(
        value("latency.p50_ns", "holds = \"< 5 %\""),
        "holds is \"< 5 %\", but a value of latency.p50_ns is a time, such as 5 us"
    );
    assert_eq!(
        value("latency.share_above.10000", "holds = \"< 5 us\""),
        "holds is \"< 5 us\", but a value of latency.share_above.10000 is in %"
    );
    assert_eq!(
        value("latency.count", "holds = \"> 5\"\nunit = \"us\""),
        "its unit us is not a unit of latency.count"
    );
    assert_eq!(
        value("throughput.bytes_per_s", "holds = \"> 5\"\nunit = \"us\""),
        "its unit us is not a unit of throughput.bytes_per_s"
    );
    let rates = format!(
        "{CHANGE}{BOTH}each = [\"size_bytes\"]\nquantity = \"throughput.bytes_per_s\"\nunit = \"Gb/s\""
    );
    assert_eq!(resolved(&rates, &[]), Ok(1));
    let line = "kind = \"linear\"\nexperiments = [\"lat\"]\neach = [\"service\"]\nx = \"size_bytes\"\n";
    assert_eq!(
        refusal(&format!("{line}holds = \"> 90 %\"")),
        "holds is \"> 90 %\", but a linear of latency.p50_ns is plain numbers"
    );
    assert_eq!(
        value("latency.count", "holds = \"five\""),
        "\"five\" is no range: give one such as \"< -30 %\", \">= 5\", \"-5 % .. 5 %\" or \"< 2 us\""
    );
}

#[test]
fn what_is_asked_for_is_in_the_plan_and_not_mixed() {
    assert_eq!(
        refusal(&format!("{CHANGE}{BOTH}")),
        "it needs one number, but its points differ in size_bytes: give size_bytes a value in where or in the selection, \
         or add it to each"
    );
    let far = format!(
        "{CHANGE}of = {{ service = \"UD\" }}\nagainst = {{ service = \"RC\" }}\neach = [\"size_bytes\"]"
    );
    assert_eq!(refusal(&far), "the plan has no point with service \"UD\" in lat");
    // The report says which points are missing because of `--set`.
    let each = format!("{CHANGE}{BOTH}each = [\"size_bytes\"]");
    assert_eq!(resolved(&each, &["service=RC"]), Ok(1));
}
