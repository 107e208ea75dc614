//! Starting what is measured: ahead of whoever else wants the CPUs, and so that it does not outlive
//! this program, however that ends.

use std::convert::Infallible;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Signal, getppid};
use serde_json::Value;

use crate::{process, shell};

/// The word of `cargo xtask bench` that makes it become another program: see [`start`].
pub(super) const START: &str = "--start";
/// Makes the kernel kill a program when whoever has started it ends, if he has not ended already.
const WITH_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
/// Gives it the lowest real-time priority, and the next. Threads of one priority take turns: MPI
/// libraries have some that their main thread waits for while it polls.
const FIRST: [&str; 3] = ["chrt", "--rr", "1"];
/// Leaves a program without the user's cache directory.
const WITHOUT_CACHE: [&str; 5] = ["env", "-u", "XDG_CACHE_HOME", "-u", "HOME"];
const BEFORE_THE_FIRST: [&str; 3] = ["chrt", "--rr", "2"];

/// Whether what is measured may have real-time priority. Then nobody else gets between, as on an
/// idle machine; the kernel keeps a twentieth of the time for all others (sched(7),
/// `sched_rt_runtime_us`).
pub(super) fn is_first() -> bool {
    static IS_FIRST: OnceLock<bool> = OnceLock::new();
    *IS_FIRST.get_or_init(|| shell::works(&[&FIRST[..], &["true"]].concat()))
}

/// What the client of a server prints; both end by themselves. The client is on the first of the
/// CPUs.
pub(super) fn pair(cpus: &[String; 2], server: &[&str], port: u16, client: &[&str]) -> Result<String> {
    let server = ours(&first(server))?;
    let client = ours(&first(client))?;
    let [server, client] =
        [&server, &client].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
    process::pair([&cpus[0], &cpus[1]], &server, port, &client, true)
}

/// What a program prints that places its own processes.
pub(super) fn alone(words: &[&str]) -> Result<String> {
    run(words, &first(words))
}

/// Runs rdmascope with some words; its record is left in a directory, where none of before stays.
/// It remembers nothing of the host: rounds are compared with each other under any placement that
/// lasts, also one that was better before.
pub(super) fn rdmascope(words: &[&str], out: &Path) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let program = built("rdmascope");
    let place = out.to_string_lossy();
    let words = [&[program.as_str()], words, &["--out", &place]].concat();
    run(&words, &first(&[&WITHOUT_CACHE[..], &words].concat()))?;
    Ok(())
}

/// Runs a benchmark of rdmascope between this host's ranks and takes its one point.
pub(super) fn point(words: &[&str], out: &Path) -> Result<Value> {
    rdmascope(&[words, &["--local"]].concat(), out)?;
    recorded(out)
}

/// The one point of a record.
pub(super) fn recorded(out: &Path) -> Result<Value> {
    let points = fs::read_to_string(out.join("points.jsonl"))?;
    Ok(serde_json::from_str(points.lines().next().context("no point was measured")?)?)
}

/// What a program prints that starts those of [`rank`] and has to get a word in while they poll.
pub(super) fn launcher(words: &[&str]) -> Result<String> {
    let before = if is_first() { &BEFORE_THE_FIRST[..] } else { &[] };
    run(words, &[before, words].concat())
}

/// The words of a program that somebody else starts: it goes first, and ends with whoever that is.
pub(super) fn rank<'a>(words: &[&'a str]) -> Vec<&'a str> {
    first(&[&WITH_PARENT[..], words].concat())
}

/// Becomes another program, one that ends with the one that has started this: `PARENT PROGRAM
/// WORD...`.
///
/// # Errors
/// When that has ended, or the program cannot be started.
pub(super) fn start(words: &[String]) -> Result<Infallible> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let [parent, program, words @ ..] = words else { bail!("{START} needs a process and a program") };
    let is_there = getppid().is_some_and(|pid| pid.as_raw_nonzero().to_string() == *parent);
    ensure!(is_there, "process {parent} has ended before it could start {program}");
    Err(Command::new(program).args(words).exec()).with_context(|| format!("{program} cannot be started"))
}

fn run(named: &[&str], words: &[&str]) -> Result<String> {
    let name = named[0].rsplit('/').next().unwrap_or(named[0]);
    let words = ours(words)?;
    process::alone(&words.iter().map(String::as_str).collect::<Vec<_>>(), name)
}

/// The words of a program that ends with this one.
fn ours(words: &[&str]) -> Result<Vec<String>> {
    let program = shell::program()?.to_string_lossy().into_owned();
    let start = [program, "bench".to_owned(), START.to_owned(), std::process::id().to_string()];
    Ok(start.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect())
}

fn first<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [if is_first() { &FIRST[..] } else { &[] }, words].concat()
}

/// A program of ours.
pub(super) fn built(name: &str) -> String {
    shell::root().join("target/release").join(name).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_started_for_who_has_gone() {
        let told = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            start(&words).unwrap_err().to_string()
        };
        assert_eq!(told(&["1"]), "--start needs a process and a program");
        assert_eq!(told(&["0", "true"]), "process 0 has ended before it could start true");
    }

    #[test]
    fn ranks_end_with_their_launcher() {
        let words = rank(&["prog", "lat"]);
        assert!(words.ends_with(&["setpriv", "--pdeathsig", "KILL", "prog", "lat"]), "{words:?}");
        assert_eq!(words.starts_with(&FIRST), is_first());
    }
}
