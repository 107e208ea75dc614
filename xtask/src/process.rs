//! Runs programs, or a server with its client, with a limit on their time.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

/// The longest time until a server listens, and until a program ends.
const LISTENS_WITHIN: Duration = Duration::from_secs(20);
const ENDS_WITHIN: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);

/// A program that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Waits for the exit status until an instant. The wait sleeps: polling would keep a CPU from
    /// being idle and make the timed program faster.
    pub(crate) fn ended_before(&mut self, end: Instant) -> Result<Option<ExitStatus>> {
        if let Some(status) = self.0.try_wait()? {
            return Ok(Some(status));
        }
        let process = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty())?;
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().try_into()?, tv_nsec: left.subsec_nanos().into() };
        retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)))?;
        Ok(self.0.try_wait()?)
    }

    /// Waits for the exit status.
    fn ended(&mut self) -> Result<ExitStatus> {
        let status = self.ended_before(Instant::now() + ENDS_WITHIN)?;
        status.with_context(|| format!("it is still running after {} s", ENDS_WITHIN.as_secs()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, waits until it listens on a port, runs its client and returns what the client
/// prints. If `ends` is true, the server must then end by itself. `cpus` are the CPUs of the client
/// and the server.
pub(crate) fn pair(
    cpus: [&str; 2],
    server: &[&str],
    port: u16,
    client: &[&str],
    ends: bool,
) -> Result<String> {
    let mut server = Running(pinned(server, cpus[1]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    match listens_or_ends(&mut server, port)? {
        Start::Listens => {}
        Start::Ended(status) => bail!("the server ended ({status}) before it listened"),
        Start::Neither => bail!("the server did not listen on port {port} in time"),
    }
    let text = printed(&mut pinned(client, cpus[0]), "the client")?;
    if ends {
        server.ended().context("the server did not end")?;
    }
    Ok(text)
}

/// Runs a program that needs no server and chooses its CPUs itself, and returns what it prints.
pub(crate) fn alone(words: &[&str], name: &str) -> Result<String> {
    printed(Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()), name)
}

/// Runs a program and returns what it prints, if it succeeds.
pub(crate) fn printed(command: &mut Command, name: &str) -> Result<String> {
    let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    let mut printed = child.0.stdout.take().context("standard output has no pipe")?;
    // The output fits into the pipe, so it need not be read while the program runs.
    let status = child.ended().with_context(|| format!("{name} did not end"))?;
    let mut text = String::new();
    printed.read_to_string(&mut text)?;
    if !status.success() {
        let mut errors = String::new();
        let mut said = child.0.stderr.take().context("standard error has no pipe")?;
        said.read_to_string(&mut errors)?;
        let last = errors.lines().last().or(text.lines().last());
        bail!("{name} failed ({status}): {}", last.unwrap_or("it printed nothing"));
    }
    Ok(text)
}

fn pinned(words: &[&str], cpu: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cpu]).args(words).stdin(Stdio::null());
    command
}

/// The result of the start of a server.
pub(crate) enum Start {
    Listens,
    /// The server ended before it listened.
    Ended(ExitStatus),
    /// The server neither listened nor ended in time.
    Neither,
}

/// Waits until a server listens on a TCP port, or ends.
pub(crate) fn listens_or_ends(server: &mut Running, port: u16) -> Result<Start> {
    is_so_or_ends(server, || listens(port))
}

/// Waits until a server under `rdmascope exec` listens on a port of RDMA CM, or ends.
pub(crate) fn listens_by_manager_or_ends(server: &mut Running, port: u16) -> Result<Start> {
    is_so_or_ends(server, || {
        let list = fs::read("/proc/net/unix").unwrap_or_default();
        String::from_utf8_lossy(&list).lines().any(|line| is_managed_listener(line, port))
    })
}

fn is_so_or_ends(server: &mut Running, is_so: impl Fn() -> bool) -> Result<Start> {
    let end = Instant::now() + LISTENS_WITHIN;
    while !is_so() {
        if let Some(status) = server.ended_before(Instant::now() + PAUSE)? {
            return Ok(Start::Ended(status));
        }
        if Instant::now() > end {
            return Ok(Start::Neither);
        }
    }
    Ok(Start::Listens)
}

/// Whether a process listens on a TCP port or has a UDP port. Reads lists of the kernel: a
/// connection would disturb the server.
fn listens(port: u16) -> bool {
    let of = |path: &str, state: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| is_listener(line, port, state))
    };
    let tcp = of("/proc/net/tcp", LISTENING) || of("/proc/net/tcp6", LISTENING);
    tcp || of("/proc/net/udp", UNCONNECTED) || of("/proc/net/udp6", UNCONNECTED)
}

/// `TCP_LISTEN` of the kernel, and `TCP_CLOSE`, which unconnected UDP sockets have.
const LISTENING: &str = "0A";
const UNCONNECTED: &str = "07";

/// Whether a line of /proc/net/tcp or udp shows a socket with a port and a state.
fn is_listener(line: &str, port: u16, state: &str) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let local = words.next().and_then(|address| address.rsplit(':').next());
    local == Some(&format!("{port:04X}")) && words.nth(1) == Some(state)
}

/// Whether a line of /proc/net/unix shows the socket of softdev's RDMA CM that listens on a port:
/// `@rdmascope-cm-VERSION/USER/listen/SPACE/PORT/ADDRESS`.
fn is_managed_listener(line: &str, port: u16) -> bool {
    let mut parts = line.rsplit(' ').next().unwrap_or_default().split('/');
    let is_ours = parts.next().is_some_and(|first| first.starts_with("@rdmascope-cm-"));
    is_ours
        && parts.nth(1) == Some("listen")
        && parts.nth(1).and_then(|digits| digits.parse().ok()) == Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_by_rdma_cm_is_told_from_other_sockets() {
        let line = "000000006a271b56: 00000002 00000000 00010000 0005 01 8328184 \
                    @rdmascope-cm-1/0/listen/0106/23020/00000000000000000000ffff00000000";
        assert!(is_managed_listener(line, 23020));
        assert!(!is_managed_listener(line, 106) && !is_managed_listener(line, 2302));
        assert!(!is_managed_listener(&line.replace("listen", "claim"), 23020));
        assert!(!is_managed_listener("0000: 2 0 1 5 1 7 /run/listen/0106/23020/0", 23020));
        assert!(!is_managed_listener("", 23020));
    }

    #[test]
    fn a_listener_is_told_from_a_connection() {
        let line =
            "   0: 00000000:4853 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1";
        assert!(is_listener(line, 18515, LISTENING));
        assert!(!is_listener(line, 18516, LISTENING) && !is_listener(line, 18515, UNCONNECTED));
        assert!(!is_listener(&line.replace(" 0A ", " 01 "), 18515, LISTENING));
        assert!(!is_listener("  sl  local_address rem_address   st tx_queue rx_queue", 18515, LISTENING));
    }

    #[test]
    fn a_listener_of_this_process_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(port));
        drop(listener);
        // A child of another test keeps this process's descriptors until it executes its program.
        let end = Instant::now() + Duration::from_secs(10);
        while listens(port) && Instant::now() < end {
            std::thread::yield_now();
        }
        assert!(!listens(port));
    }
}
