//! Whether the time stamps of both ranks are right: what a link model adds to each kind of latency,
//! and how half of a round trip compares with the one-way latency.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::process;
use crate::stats::median;

/// Names for `--only`.
pub(super) const NAMES: [&str; 2] = ["one-way-link", "one-way-half"];

/// The number of rounds, of which the median counts.
const ROUNDS: usize = 5;
/// The smallest latency of a link model, in ns, and what is added to it: the device takes the same
/// path with all of them.
const BASE_NS: f64 = 1000.0;
const MORE_NS: [f64; 3] = [500.0, 4000.0, 20_000.0];
/// The time from post to post, longer than any round trip here: the caches are then equally cold
/// with every link model.
const PAUSE: &str = "60us";
/// The largest error of a time stamp.
const ERROR_NS_MAX: f64 = 100.0;
/// The largest relative difference of half a round trip and the one-way median, on a link of 2 us.
/// Without a link model the time stamp itself, which is no part of a round trip, takes as long.
const HALF_ERROR_MAX: f64 = 0.05;

/// Measures what has a name that contains `only`.
pub(super) fn run(scratch: &Path, only: &str, broken: &mut Vec<String>) -> Result<()> {
    let [link, half] = NAMES.map(|name| name.contains(only));
    if link {
        println!("one-way latency that a link model adds: set and measured, medians in ns");
        for more_ns in MORE_NS {
            latency(scratch, more_ns, broken)?;
            fetch(scratch, more_ns, broken)?;
        }
    }
    if half {
        println!("half of a round trip and one-way latency, one message at a time, 32 B, medians in ns");
        for link in ["none", "latency=2us"] {
            for service in ["RC", "UC", "UD"] {
                round_trip(scratch, service, link, broken)?;
            }
        }
    }
    Ok(())
}

/// Checks what a higher latency of the link adds to the one-way latency and to the completion
/// latency: twice as much over RC, which acknowledges messages, and nothing over UC.
fn latency(scratch: &Path, more_ns: f64, broken: &mut Vec<String>) -> Result<()> {
    for (service, ways) in [("RC", 2.0), ("UC", 0.0)] {
        let link = |ns: f64| format!("latency={ns}ns");
        let [one_way, completion] = added(scratch, service, &[], [&link(BASE_NS), &link(BASE_NS + more_ns)])?;
        check(&format!("latency={more_ns} {service} one_way"), one_way, more_ns, broken);
        check(&format!("latency={more_ns} {service} completion"), completion, ways * more_ns, broken);
    }
    Ok(())
}

/// Checks that a delay between post and fetch is part of `one_way` and not of `one_way_send`.
fn fetch(scratch: &Path, more_ns: f64, broken: &mut Vec<String>) -> Result<()> {
    let link = |ns: f64| format!("latency={BASE_NS}ns,fetch={ns}ns");
    let stamped = ["--stamp", "sent"];
    let [one_way, sent] = added(scratch, "UC", &stamped, [&link(BASE_NS), &link(BASE_NS + more_ns)])?;
    check(&format!("fetch={more_ns} UC one_way"), one_way, more_ns, broken);
    check(&format!("fetch={more_ns} UC one_way_send"), sent, 0.0, broken);
    Ok(())
}

/// What the second link adds to the first two kinds of latency.
fn added(scratch: &Path, service: &str, more: &[&str], links: [&str; 2]) -> Result<[f64; 2]> {
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let [base, more] = links.map(|link| {
            let words = ["one-way", "send", "-c", service, "-n", "5000", "--pause", PAUSE, "--link", link];
            let point = point(scratch, &[&words[..], more].concat())?;
            Ok::<_, anyhow::Error>([median_ns(&point, 0)?, median_ns(&point, 1)?])
        });
        let base = base?;
        let more = more?;
        (0..2).for_each(|kind| found[kind].push(more[kind] - base[kind]));
    }
    let [first, second] = found.map(|mut found| median(&mut found).context("no round"));
    Ok([first?, second?])
}

fn check(what: &str, found_ns: f64, told_ns: f64, broken: &mut Vec<String>) {
    println!("  {what:<32} set {told_ns:6.0}, measured {found_ns:6.0}, {:+.0}", found_ns - told_ns);
    if (found_ns - told_ns).abs() > ERROR_NS_MAX {
        broken.push(format!("{what} adds {found_ns:.0} instead of {told_ns:.0} ns"));
    }
}

fn round_trip(scratch: &Path, service: &str, link: &str, broken: &mut Vec<String>) -> Result<()> {
    let mut ratios = Vec::new();
    let mut halves = Vec::new();
    let mut ones = Vec::new();
    let linked: &[&str] = if link == "none" { &[] } else { &["--link", link] };
    let same = [&["-c", service, "-s", "32", "-n", "20000"], linked].concat();
    for _ in 0..ROUNDS {
        let half = point(scratch, &[&["lat", "send", "--imm"], &same[..]].concat())?;
        let one_way = point(scratch, &[&["one-way", "send"], &same[..]].concat())?;
        let half =
            half.pointer("/latency/p50_ns").and_then(Value::as_f64).context("the point has no median")?;
        let one_way = median_ns(&one_way, 0)?;
        ratios.push(half / one_way);
        halves.push(half);
        ones.push(one_way);
    }
    let ratio = median(&mut ratios).context("no round")?;
    let half = median(&mut halves).unwrap_or(0.0);
    let one_way = median(&mut ones).unwrap_or(0.0);
    println!("  {service} link {link:<12} half {half:6.0}, one way {one_way:6.0}, ratio {ratio:.3}");
    if link != "none" && (ratio - 1.0).abs() > HALF_ERROR_MAX {
        broken.push(format!(
            "half of a round trip over {service} with the link {link} is {ratio:.2} of the one-way latency"
        ));
    }
    Ok(())
}

/// The median of a kind of latency, by its place in the record: `one_way` is the first.
fn median_ns(point: &Value, kind: usize) -> Result<f64> {
    let found = point.pointer(&format!("/kinds/{kind}/latency/p50_ns")).and_then(Value::as_f64);
    found.with_context(|| format!("the point has no median of kind {kind}: {point}"))
}

/// The one point of a benchmark.
fn point(scratch: &Path, words: &[&str]) -> Result<Value> {
    process::point(words, &scratch.join("one-way"))
}
