//! Starts the measured programs with real-time priority, and ends them with this program, however
//! it ends.

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
/// Makes the kernel kill a program when its parent ends, unless the parent has ended already.
const WITH_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
/// Gives a program the lowest real-time priority. Threads of one priority take turns: in MPI
/// libraries the main thread polls while it waits for other threads.
const FIRST: [&str; 3] = ["chrt", "--rr", "1"];
/// Hides the user's cache directory from a program.
const WITHOUT_CACHE: [&str; 5] = ["env", "-u", "XDG_CACHE_HOME", "-u", "HOME"];
/// Gives a program the next higher real-time priority.
const BEFORE_THE_FIRST: [&str; 3] = ["chrt", "--rr", "2"];

/// Whether measured programs may have real-time priority. Then other processes do not preempt them,
/// as on an idle machine; the kernel reserves a twentieth of the time for all others (sched(7),
/// `sched_rt_runtime_us`).
pub(super) fn is_first() -> bool {
    static IS_FIRST: OnceLock<bool> = OnceLock::new();
    *IS_FIRST.get_or_init(|| shell::works(&[&FIRST[..], &["true"]].concat()))
}

/// Runs a server and its client, and returns what the client prints. Both end by themselves. The
/// client runs on the first CPU.
pub(super) fn pair(cpus: &[String; 2], server: &[&str], port: u16, client: &[&str]) -> Result<String> {
    let server = ours(&first(server))?;
    let client = ours(&first(client))?;
    let [server, client] =
        [&server, &client].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
    process::pair([&cpus[0], &cpus[1]], &server, port, &client, true)
}

/// Runs a program that places its own processes, and returns what it prints.
pub(super) fn alone(words: &[&str]) -> Result<String> {
    run(words, &first(words))
}

/// Runs rdmascope with some words and replaces the record in a directory. rdmascope remembers
/// nothing about the host: rounds are compared with each other under any placement that lasts, even
/// if an earlier placement was better.
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

/// Runs a benchmark of rdmascope between ranks of this host and returns its one point.
pub(super) fn point(words: &[&str], out: &Path) -> Result<Value> {
    rdmascope(&[words, &["--local"]].concat(), out)?;
    recorded(out)
}

/// The one point of a record.
pub(super) fn recorded(out: &Path) -> Result<Value> {
    let points = fs::read_to_string(out.join("points.jsonl"))?;
    Ok(serde_json::from_str(points.lines().next().context("no point was measured")?)?)
}

/// Runs a launcher of [`rank`]s, which must run while they poll, and returns what it prints.
pub(super) fn launcher(words: &[&str]) -> Result<String> {
    let before = if is_first() { &BEFORE_THE_FIRST[..] } else { &[] };
    run(words, &[before, words].concat())
}

/// The words of a program that a launcher starts: it has real-time priority and ends with the
/// launcher.
pub(super) fn rank<'a>(words: &[&'a str]) -> Vec<&'a str> {
    first(&[&WITH_PARENT[..], words].concat())
}

/// Executes another program in this process, which ends with its parent: `PARENT PROGRAM WORD...`.
///
/// # Errors
/// If the parent has ended, or the program cannot be started.
pub(super) fn start(words: &[String]) -> Result<Infallible> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let [parent, program, words @ ..] = words else { bail!("{START} needs a process id and a program") };
    let is_there = getppid().is_some_and(|pid| pid.as_raw_nonzero().to_string() == *parent);
    ensure!(is_there, "process {parent} has ended before it could start {program}");
    Err(Command::new(program).args(words).exec()).with_context(|| format!("cannot start {program}"))
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

/// The path of a program of this repository.
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
        assert_eq!(told(&["1"]), "--start needs a process id and a program");
        assert_eq!(told(&["0", "true"]), "process 0 has ended before it could start true");
    }

    #[test]
    fn ranks_end_with_their_launcher() {
        let words = rank(&["prog", "lat"]);
        assert!(words.ends_with(&["setpriv", "--pdeathsig", "KILL", "prog", "lat"]), "{words:?}");
        assert_eq!(words.starts_with(&FIRST), is_first());
    }
}
