//! Failures that other tools report by a number, provoked on any device: what the program reports.

use std::fs;
use std::time::{Duration, Instant};

use measure::record::Status;
use rustix::process::Signal;

use super::processes::signal;
use super::{Scratch, collect};

/// How long the disturbed point takes without a failure, and its time limit.
const DURATION_S: u64 = 4;
const TIMEOUT_S: u64 = 5;
/// Time from the start of a run's record, before its first point, to the middle of that point.
const MIDDLE: Duration = Duration::from_millis(1500);

/// Starts an agent, writes its process ID, and outlives it: a peer that is gone without closing its
/// connection, as behind an ssh that hangs. (A background process of a shell reads nothing unless
/// its input is redirected.)
const WRAPPER: &str =
    "host=$1; shift; exec 3<&0; \"$@\" <&3 3<&- & echo $! >\"pid-$host\"; wait $!; exec sleep 60\n";

/// Measures one long point between two agents and sends a signal to rank 1's agent in the middle of
/// it. Returns the error of the point, which must come within the point's time limit.
#[track_caller]
pub(crate) fn disturbed(device: &str, pattern: &str, service: &str, by: Signal) -> String {
    let scratch = Scratch::on_one_cpu();
    scratch.write("wrapper.sh", WRAPPER);
    scratch.write(
        "plan.toml",
        format!(
            "name = \"disturbed\"\ntitle = \"Disturbed\"\n[[experiment]]\nname = \"one\"\npattern = \"{pattern}\"\n\
             duration = \"{DURATION_S}s\"\ntimeout = \"{TIMEOUT_S}s\"\n[experiment.axes]\nservice = [\"{service}\"]\n\
             size_bytes = [64]\n"
        ),
    );
    let via = ["--hosts", "zero,one", "--via", "sh wrapper.sh {host}"];
    let child = scratch
        .program([&["run", "plan.toml", "--out", "record", "-d", device][..], &via].concat())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !fs::read_to_string(scratch.at("record/run.json")).is_ok_and(|run| run.contains("tick_hz")) {
        assert!(start.elapsed() < Duration::from_secs(60), "the agents did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(MIDDLE);
    let agent: i32 = fs::read_to_string(scratch.at("pid-one")).unwrap().trim().parse().unwrap();
    let disturbed = Instant::now();
    signal(agent, by);
    let ended = collect(child);
    // Stopped processes cannot end by themselves.
    signal(agent, Signal::CONT);
    assert!(disturbed.elapsed() < Duration::from_secs(TIMEOUT_S + 10), "{:?}", disturbed.elapsed());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let (_, points) = scratch.record("record");
    let [point] = &points[..] else { panic!("{points:?}") };
    let Status::Failed { error } = &point.status else { panic!("it was not disturbed: {:?}", point.status) };
    scratch.assert_nothing_left();
    error.clone()
}

/// Asserts that all of these words are in a text.
#[track_caller]
pub(crate) fn assert_words(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

/// A peer that is killed sends no acknowledgements: status 12, or no completion at all on devices
/// that retry for ever.
#[track_caller]
pub(crate) fn a_peer_that_has_gone(device: &str) -> String {
    let text = disturbed(device, "stream", "RC", Signal::KILL);
    let words = [
        "the peer has ended, its address is",
        "`rdmascope devices` on both hosts, -x",
        "(RC from GID ",
        "path MTU ",
    ];
    assert_words(&text, &words);
    if text.contains("status") {
        let words = [
            "rank 0: message ",
            "could not be sent: transport retry counter exceeded (the peer does not answer) (status 12)",
            "nothing came back to 8 attempts of 67 ms each: ",
        ];
        assert_words(&text, &words);
    } else {
        assert_words(&text, &["rank 0: nothing was acknowledged for ", "retries for ever such as Soft-RoCE"]);
    }
    text
}

/// A peer that is stopped answers as long as it has receives, then "receiver not ready" for ever.
pub(crate) fn a_peer_that_takes_nothing(device: &str) {
    let text = disturbed(device, "stream", "RC", Signal::STOP);
    let words = [
        "rank 0: nothing was acknowledged for ",
        " s, which is the point's time limit: ",
        "posts no receives (RNR, which is retried for ever)",
    ];
    assert_words(&text, &words);
}

/// A service without acknowledgements loses messages without an error.
pub(crate) fn a_message_that_is_lost(device: &str, service: &str) {
    let text = disturbed(device, "ping-pong", service, Signal::KILL);
    let way = format!("({service} from GID ");
    let words = [
        "rank 0: nothing arrived for ",
        " s, which is the point's time limit: ",
        "which this service does not repeat: measure RC",
        &way,
    ];
    assert_words(&text, &words);
}
