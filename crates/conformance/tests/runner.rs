//! Tests the runner's output: this program runs itself with cases that pass, fail, panic and hang.

use std::time::{Duration, Instant};

use conformance::node::{peer, serve};
use conformance::rig::op;
use conformance::runner::{DEPARTURES_VARIABLE, LIMIT_VARIABLE, Skip, Trial, run, this_program};
use conformance::subject::Origin;
use conformance::{Node, Subject};

/// Environment variable that is set for the program that runs the cases.
const INNER_VARIABLE: &str = "RDMASCOPE_RUNNER_TEST";

fn main() {
    if peer().is_some() {
        return serve(&subject());
    }
    if std::env::var_os(INNER_VARIABLE).is_some() {
        cases();
    }
    if std::env::args().any(|a| a == "--list") {
        return println!("one_hanging_case_does_not_take_the_others_with_it: test");
    }
    let (status, output) = inner("skip");
    let expected = [
        "running 8 tests",
        "test good ... ok",
        "test departs ... SKIPPED (rxe: it does otherwise)",
        "test hangs ... hangs",
        "test hangs_afar ... hangs",
        "test bad ... FAILED",
        "test hangs_too ... SKIPPED (rxe: it waits)",
        "test kept ... SKIPPED (rxe: so it was)",
        "test last ... ok",
        "failed: hangs",
        "failed: hangs_afar",
        "failed: bad",
        "test result: FAILED. 2 passed; 3 failed; 3 skipped",
    ];
    assert_eq!((status, &output[..]), (Some(101), &expected.map(String::from)[..]));
    let (status, output) = inner("run");
    let expected = [
        "running 8 tests",
        "test good ... ok",
        "test departs ... fails, a known departure",
        "test hangs ... hangs",
        "test hangs_afar ... hangs",
        "test bad ... FAILED",
        "test hangs_too ... hangs",
        "test kept ... NO LONGER A DEPARTURE",
        "test last ... ok",
        "failed: hangs",
        "failed: hangs_afar",
        "failed: bad",
        "remove from the departures: kept",
        "test result: FAILED. 3 passed; 3 failed; 2 skipped",
    ];
    assert_eq!((status, &output[..]), (Some(101), &expected.map(String::from)[..]));
    println!("test one_hanging_case_does_not_take_the_others_with_it ... ok");
}

/// Runs the cases in another process. Returns its exit status and its output lines, without times.
fn inner(departures: &str) -> (Option<i32>, Vec<String>) {
    let start = Instant::now();
    let mut command = this_program();
    command.env(INNER_VARIABLE, "yes").env(LIMIT_VARIABLE, "1").env(DEPARTURES_VARIABLE, departures);
    let output = command.output().expect("it starts again");
    // The process of a far node that is left behind would keep the output open.
    assert!(start.elapsed() < Duration::from_secs(60), "a hanging case is abandoned after a second");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().filter(|line| !line.is_empty()).map(|line| {
        let cut =
            line.find("; finished in").or_else(|| line.rfind(" (").filter(|_| !line.contains("SKIPPED")));
        line[..cut.unwrap_or(line.len())].to_owned()
    });
    (output.status.code(), lines.collect())
}

fn cases() -> ! {
    let trial = |name: &str, why: Option<&str>, run: fn()| {
        let skipped = why.map(|why| Skip { why: format!("rxe: {why}"), at_times: false });
        Trial { name: name.to_owned(), skipped, run: Box::new(run) }
    };
    run(&[
        trial("good", None, || {}),
        trial("departs", Some("it does otherwise"), || panic!("it does")),
        trial("hangs", None, hang),
        trial("hangs_afar", None, hang_afar),
        trial("bad", None, || panic!("it is bad")),
        trial("hangs_too", Some("it waits"), hang),
        trial("kept", Some("so it was"), || {}),
        trial("last", None, || {}),
    ]);
}

/// Waits for a thread that never ends, whatever flag this program sets.
fn hang() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                std::thread::park();
            }
        });
    });
}

/// Waits for a far node that answers after minutes.
fn hang_afar() {
    let mut far = Node::remote(&subject());
    let channel = far.channel() as u64;
    far.call(op::READY, &[channel, 200_000]);
}

fn subject() -> Subject {
    Subject { provider: &softdev::PROVIDER, device: "softdev0".to_owned(), origin: Origin::default() }
}
