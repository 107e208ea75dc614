//! The link to one agent: the standard streams of a child, or a connection to a server that was
//! started by hand.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::child::{Process, Streams};

/// The bytes to and from an agent, the lines that it prints besides them, and its end. Only methods
/// with a deadline block; reads and writes are those of a non-blocking stream. Dropping the link
/// ends the agent.
pub(super) trait Link: fmt::Debug {
    /// Returns the name of the agent in errors: `the agent of rank 1 (pid 123)`.
    fn name(&self, rank: u32) -> String;

    /// Returns the label of the agent's lines: `rank 1`, and its place.
    fn speaker(&self, rank: u32) -> String;

    /// Whether a new agent can take the place of this one.
    fn is_replaceable(&self) -> bool;

    /// Whether the agent is ended when another agent has failed, by a launcher that ends all.
    fn ends_with_others(&self) -> bool {
        false
    }

    /// Returns the descriptors to wait for.
    fn interest(&self, wants: Wants) -> Vec<PollFd<'_>>;

    /// Sends as many bytes as is possible now.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends the bytes that [`Link::write`] has accepted but not sent.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Reads the bytes that have arrived; 0 is the end.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Reads lines for the user; 0 is the end.
    fn read_lines(&mut self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Asks the agent for a sign of life, where a stopped process does not show by itself. A child
    /// needs no probe: it is killed if it does not answer in time.
    fn probe(&mut self) {}

    /// Whether nothing has arrived since the last probe.
    fn is_mute(&self) -> bool {
        false
    }

    /// Whether the agent has ended, so that it writes nothing more.
    fn is_dead(&self) -> bool;

    /// Waits for the agent to end until the deadline. Returns how it ended, in words.
    fn end(&self, deadline: Deadline) -> String;

    /// Waits until the deadline for the agent to end by itself.
    fn finish(&mut self, deadline: Deadline);

    /// Ends the agent.
    fn kill(&mut self);
}

/// The events of a [`Link`] to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    /// Room to send.
    pub(super) to_send: bool,
    /// Bytes to read.
    pub(super) to_read: bool,
    /// The end of the agent.
    pub(super) to_end: bool,
    /// Lines for the user.
    pub(super) lines: bool,
}

/// A child of this process: the agent itself, or a command such as ssh that runs the agent.
#[derive(Debug)]
pub(super) struct ChildLink {
    host: String,
    /// Whether its agent has the same rank in all points.
    is_ranked: bool,
    process: Process,
    streams: Streams,
}

impl ChildLink {
    /// Starts a child by this command. `host` is empty without `--via`.
    pub(super) fn start(host: &str, words: &[String]) -> io::Result<Self> {
        let (process, streams) = Process::start(words)?;
        Ok(Self { host: host.to_owned(), is_ranked: true, process, streams })
    }

    /// Makes errors name the agent by its host alone, since its rank changes.
    pub(super) fn unranked(self) -> Self {
        Self { is_ranked: false, ..self }
    }
}

impl Link for ChildLink {
    fn name(&self, rank: u32) -> String {
        if !self.is_ranked {
            return format!("the agent of {} (pid {})", self.host, self.process.pid());
        }
        let at = if self.host.is_empty() { String::new() } else { format!(" on {}", self.host) };
        format!("the agent of rank {rank}{at} (pid {})", self.process.pid())
    }

    fn speaker(&self, rank: u32) -> String {
        if !self.is_ranked {
            return self.host.clone();
        }
        if self.host.is_empty() { format!("rank {rank}") } else { format!("rank {rank} {}", self.host) }
    }

    fn is_replaceable(&self) -> bool {
        true
    }

    fn interest(&self, wants: Wants) -> Vec<PollFd<'_>> {
        let Streams { input, output, errors } = &self.streams;
        let input = wants.to_send.then(|| (input.as_fd(), PollFlags::OUT));
        let output = wants.to_read.then(|| (output.as_fd(), PollFlags::IN));
        let errors = wants.lines.then(|| (errors.as_fd(), PollFlags::IN));
        let death = self.process.death().filter(|_| wants.to_end).map(|fd| (fd, PollFlags::IN));
        let all = [input, output, errors, death].into_iter().flatten();
        all.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.streams.input.write(bytes)
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.streams.output.read(bytes)
    }

    fn read_lines(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.streams.errors.read(bytes)
    }

    fn is_dead(&self) -> bool {
        self.process.is_dead()
    }

    fn end(&self, deadline: Deadline) -> String {
        self.process.end(deadline)
    }

    fn finish(&mut self, deadline: Deadline) {
        self.process.end(deadline);
    }

    fn kill(&mut self) {
        self.process.kill();
    }
}
