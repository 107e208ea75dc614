//! A server that waits for its client, as users start it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{DEADLINE, Ended, PROGRAM, Scratch, collect};

/// A server, and the lines that it has printed so far.
pub(crate) struct Server {
    child: Option<Child>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Server {
    /// Starts a server on a free port and waits until it prints its client's command.
    pub(crate) fn start(scratch: &Scratch, arguments: &[&str]) -> Self {
        Self::of(scratch.program([arguments, &["-p", "0"]].concat()))
    }

    /// Starts a server with this command and waits until it prints its client's command.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok();
        });
        let mut server = Self { child: Some(child), lines, seen: Vec::new() };
        server.wait_for("rdmascope ");
        server
    }

    /// Waits for a line that starts with a text; returns it.
    pub(crate) fn wait_for(&mut self, start: &str) -> String {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the server does not say {start:?}: {:?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the server ended: {:?}", self.seen),
            }
            if let Some(line) = self.seen.last().filter(|line| line.starts_with(start)) {
                return line.clone();
            }
        }
    }

    /// Returns the lines that the server has printed.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Returns the words of the client's command, without the program's name.
    pub(crate) fn words(&self) -> Vec<String> {
        let command = self.seen.iter().find(|line| line.starts_with("rdmascope ")).unwrap();
        command.split(' ').skip(1).map(str::to_owned).collect()
    }

    /// Returns the client's command, with more arguments.
    pub(crate) fn client(&self, scratch: &Scratch, more: &[&str]) -> Command {
        let mut command = scratch.command(*PROGRAM);
        command.args(self.words()).args(more);
        command
    }

    pub(crate) fn port(&self) -> u16 {
        let words = self.words();
        let at = words.iter().position(|word| word == "-p").unwrap();
        words[at + 1].parse().unwrap()
    }

    pub(crate) fn key(&self) -> String {
        let words = self.words();
        let at = words.iter().position(|word| word == "--key").unwrap();
        words[at + 1].clone()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.as_ref().unwrap().id().cast_signed()
    }

    /// Waits for the end of the server.
    pub(crate) fn end(mut self) -> Ended {
        // The thread of `of` reads standard output.
        let mut ended = collect(self.child.take().unwrap());
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(5)) {
            self.seen.push(line);
        }
        ended.stdout = self.seen.iter().map(|line| format!("{line}\n")).collect();
        ended
    }
}

impl Drop for Server {
    /// Leaves nothing behind if a test fails before the end.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
