//! Finds processes by their environment, which `/proc` shows.

use std::fs;
use std::time::{Duration, Instant};

use bench::process::launcher;

use super::TOKEN;

/// A process of a test.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) command: String,
}

/// Returns the living processes that have a token.
pub(crate) fn with_token(token: &str) -> Vec<Process> {
    let mut found: Vec<Process> = launcher::processes_with(TOKEN, token)
        .into_iter()
        .map(|(pid, _)| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            Process { pid: pid.as_raw_nonzero().get(), command }
        })
        .collect();
    found.sort();
    found
}

/// Returns the agents among them, by rank: `--cpu` identifies agents, which start in order of rank.
pub(crate) fn agents(token: &str) -> Vec<Process> {
    with_token(token).into_iter().filter(|process| process.command.contains(" agent ")).collect()
}

/// Waits until no process has a token; returns the processes that have it for longer than allowed.
pub(crate) fn gone_within(token: &str, patience: Duration) -> Vec<Process> {
    let start = Instant::now();
    loop {
        let left = with_token(token);
        if left.is_empty() || start.elapsed() > patience {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal.
pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
