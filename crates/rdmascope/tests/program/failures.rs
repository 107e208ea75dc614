//! Failures that other tools report by a number, on softdev: each is reported within its deadline,
//! with cause and remedy.

use crate::support::Scratch;
use crate::support::failures::{a_message_that_is_lost, a_peer_that_has_gone, a_peer_that_takes_nothing};

#[test]
fn a_peer_that_has_gone_is_status_12() {
    let text = a_peer_that_has_gone("softdev0");
    assert!(
        text.contains("(status 12)") && !text.contains("4791"),
        "softdev gives up, and sends no UDP: {text}"
    );
}

#[test]
fn a_peer_that_takes_nothing_is_said_to_be_not_ready() {
    a_peer_that_takes_nothing("softdev0");
}

#[test]
fn a_lost_message_of_an_unreliable_service_is_a_loss() {
    a_message_that_is_lost("softdev0", "UD");
}

#[test]
fn a_gid_that_is_not_there_is_told_with_those_that_are() {
    let scratch = Scratch::on_one_cpu();
    let words = ["port 1 of softdev0 has no GID 200 in use", "the GIDs in use are 0", "`rdmascope devices`"];
    let ended = scratch.run(&["lat", "send", "--local", "-d", "softdev0", "-x", "200", "-n", "20"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    crate::support::failures::assert_words(ended.stderr.lines().last().unwrap(), &words);
    scratch.assert_nothing_left();
}

#[test]
fn a_port_that_is_not_there_is_told_with_those_that_are() {
    let scratch = Scratch::on_one_cpu();
    let ended = scratch.run(&["lat", "send", "--local", "-d", "softdev0", "-i", "2", "-n", "20"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("softdev0 has no port 2: it has only port 1"), "{ended:?}");
    scratch.assert_nothing_left();
}
