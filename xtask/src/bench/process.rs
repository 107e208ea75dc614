//! Starting what is measured: ahead of whoever else wants the CPUs, and so that it does not outlive this program, however
//! that ends.

use std::sync::OnceLock;

use anyhow::Result;

use crate::parity::process;
use crate::shell;

/// Makes the kernel kill a program when the one that has started it ends.
const WITH_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
/// Gives it the lowest real-time priority, and the next.
const FIRST: [&str; 3] = ["chrt", "--fifo", "1"];
const BEFORE_THE_FIRST: [&str; 3] = ["chrt", "--fifo", "2"];

/// Whether what is measured may have real-time priority. Then nobody else gets between, as on an idle machine; the kernel
/// keeps a twentieth of the time for all others (sched(7), `sched_rt_runtime_us`).
pub(super) fn is_first() -> bool {
    static IS_FIRST: OnceLock<bool> = OnceLock::new();
    *IS_FIRST.get_or_init(|| shell::works(&[&FIRST[..], &["true"]].concat()))
}

/// What the client of a server prints; both end by themselves. The client is on the first of the CPUs.
pub(super) fn pair(cpus: &[String; 2], server: &[&str], port: u16, client: &[&str]) -> Result<String> {
    process::pair([&cpus[0], &cpus[1]], &mortal(server), port, &mortal(client), true)
}

/// What a program prints that places its own processes.
pub(super) fn alone(words: &[&str]) -> Result<String> {
    process::alone(&mortal(words), name(words))
}

/// The same of a program that starts [`mortal`] ones and has to get a word in while they poll.
pub(super) fn launcher(words: &[&str]) -> Result<String> {
    let before = if is_first() { &BEFORE_THE_FIRST[..] } else { &[] };
    process::alone(&[before, &WITH_PARENT[..], words].concat(), name(words))
}

/// The words of a program that ends with its parent and goes first.
pub(super) fn mortal<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let first = if is_first() { &FIRST[..] } else { &[] };
    [first, &WITH_PARENT[..], words].concat()
}

/// Whether a program is installed.
pub(super) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A program of ours.
pub(super) fn built(name: &str) -> String {
    shell::root().join("target/release").join(name).to_string_lossy().into_owned()
}

fn name<'a>(words: &[&'a str]) -> &'a str {
    words[0].rsplit('/').next().unwrap_or(words[0])
}
