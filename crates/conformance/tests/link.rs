//! The conformance cases on softdev while it models a link: messages take time, and everything else
//! is unchanged.

use std::os::unix::process::CommandExt;

use conformance::node::{peer, serve};
use conformance::runner::again;
use conformance::subject::{LINK_VARIABLE, Subject};

/// A link so slow that every message is under way when its sender continues.
const LINK: &str = "8Gb/s,latency=5us,back=8us,fetch=1us,gap=200ns";

fn main() {
    if std::env::var_os(LINK_VARIABLE).is_none() {
        let error = again().env(LINK_VARIABLE, LINK).exec();
        panic!("this test cannot start itself with {LINK_VARIABLE}: {error}");
    }
    let far_end = peer();
    let subject = Subject::parse(far_end.as_deref().unwrap_or("softdev0"), |_| Ok(&softdev::PROVIDER));
    let subject = subject.expect("softdev is always there");
    if far_end.is_some() {
        serve(&subject);
    } else {
        conformance::run(&subject);
    }
}
