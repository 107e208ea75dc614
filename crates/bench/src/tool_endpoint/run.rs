//! Runs another program within a time limit, reads its output, and waits until its server listens.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::Error;
use crate::fault::PointError;
use crate::process::child::{Process, Streams};

/// How often to check whether a server listens.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
/// More than a tool prints in a test of an hour.
const PRINTED_MAX: usize = 16 << 20;

/// A running program. It is killed with its child processes when this is dropped.
pub(super) struct Program {
    name: String,
    process: Process,
    streams: Streams,
    /// What it has printed to standard output and standard error.
    said: [Vec<u8>; 2],
}

impl Program {
    /// Starts a program.
    pub(super) fn start(words: &[String]) -> Result<Self, Error> {
        let name = words.first().cloned().unwrap_or_default();
        let (process, streams) = Process::start(words).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let reason = format!("{name} is not installed on a rank's host (`apt install {name}`)");
                Error::Impossible { reason }
            }
            _ => Error::System { what: format!("start {name}"), cause: error },
        })?;
        Ok(Self { name, process, streams, said: [Vec::new(), Vec::new()] })
    }

    /// Returns what it prints until it ends, which must be within `within` and with success.
    pub(super) fn output(mut self, within: Duration) -> Result<String, PointError> {
        let deadline = Deadline::after(within);
        loop {
            let open = self.take()?;
            if !open[0] && !open[1] {
                break;
            }
            if deadline.is_over() {
                let within_s = within.as_secs_f64();
                return Err(PointError::Failed(format!("{} did not end within {within_s:.1} s", self.name)));
            }
            if self.said.iter().any(|text| text.len() > PRINTED_MAX) {
                return Err(PointError::Failed(format!("{} printed too much", self.name)));
            }
            // A closed stream is not polled: it would wake this thread at once.
            let streams = [self.streams.output.as_fd(), self.streams.errors.as_fd()];
            let open = streams.into_iter().zip(open).filter(|(_, is_open)| *is_open);
            let mut wanted: Vec<_> =
                open.map(|(stream, _)| PollFd::from_borrowed_fd(stream, PollFlags::IN)).collect();
            let _ = poll(&mut wanted, Some(&deadline.timespec()));
        }
        let ended = self.process.end(deadline);
        if !self.process.has_succeeded() {
            return Err(self.failed(&ended));
        }
        Ok(String::from_utf8_lossy(&self.said[0]).into_owned())
    }

    /// Reads its output; returns which of the two streams are still open.
    fn take(&mut self) -> Result<[bool; 2], Error> {
        let streams: [&mut dyn Read; 2] = [&mut self.streams.output, &mut self.streams.errors];
        let mut open = [false; 2];
        for ((stream, said), is_open) in streams.into_iter().zip(&mut self.said).zip(&mut open) {
            *is_open = match stream.read_to_end(said) {
                Ok(_) => false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => true,
                Err(cause) => {
                    return Err(Error::System { what: format!("read from {}", self.name), cause });
                }
            };
        }
        Ok(open)
    }

    /// Returns the error of a program that ended wrongly, with its last line of errors, or else of
    /// output.
    fn failed(&self, ended: &str) -> PointError {
        let last = |text: &Vec<u8>| {
            let text = String::from_utf8_lossy(text).into_owned();
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        let said = self.said.iter().rev().find_map(last).unwrap_or_else(|| "it printed nothing".to_owned());
        PointError::Failed(format!("{} {ended}: {said}", self.name))
    }
}

/// Returns the first line that a program prints for its version.
pub(super) fn version(name: &str, within: Duration) -> Result<String, Error> {
    let printed = Program::start(&[name.to_owned(), "--version".to_owned()])?.output(within);
    let printed = printed.map_err(|error| match error {
        PointError::NotMeasured(reason) | PointError::Failed(reason) => Error::Impossible { reason },
    })?;
    let first = printed.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(first.unwrap_or(name).to_owned())
}

/// Waits until a server listens.
pub(super) fn await_listening(server: &mut Program, port: u16, within: Duration) -> Result<(), PointError> {
    let deadline = Deadline::after(within);
    while !is_taken(port) {
        if server.process.is_dead() {
            server.take()?;
            return Err(server.failed(&server.process.end(deadline)));
        }
        if deadline.is_over() {
            let within_s = within.as_secs_f64();
            let why =
                format!("the server of {} did not listen on port {port} within {within_s:.0} s", server.name);
            return Err(PointError::Failed(why));
        }
        // Its output is read, so that this thread wakes when it ends.
        server.take()?;
        let mut wanted = [PollFd::from_borrowed_fd(server.streams.output.as_fd(), PollFlags::IN)];
        let _ = poll(&mut wanted, Some(&PAUSE));
    }
    Ok(())
}

/// Returns whether any process listens on a TCP port of this network namespace, or has it for
/// datagrams (proc_net(5)).
fn is_taken(port: u16) -> bool {
    let ends = format!(":{port:04X}");
    let listens = |file: &str, state: &str| {
        let text = std::fs::read_to_string(format!("/proc/self/net/{file}")).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&ends)) && words.nth(1) == Some(state)
        })
    };
    // 0A is TCP_LISTEN; 07 is a socket that is not connected.
    ["tcp", "tcp6"].iter().any(|file| listens(file, "0A"))
        || ["udp", "udp6"].iter().any(|file| listens(file, "07"))
}
