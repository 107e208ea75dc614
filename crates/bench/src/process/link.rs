//! The way to one agent, whatever it is: a child's standard streams, or a connection to a server
//! that was started by hand.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::child::{Process, Streams};

/// Bytes to an agent and from it, lines that it says beside them, and its end. Nothing blocks but
/// what has a deadline; reading and writing are those of a non-blocking stream. Dropping it ends
/// the agent.
pub(super) trait Link: fmt::Debug {
    /// What errors call the agent: `the agent of rank 1 (pid 123)`.
    fn name(&self, rank: u32) -> String;

    /// Who says its lines: `rank 1`, and where that is.
    fn speaker(&self, rank: u32) -> String;

    /// Whether another one can take its place.
    fn is_replaceable(&self) -> bool;

    /// Whether it is ended where another has failed: by a launcher, which ends all.
    fn ends_with_others(&self) -> bool {
        false
    }

    /// What to wait for.
    fn interest(&self, wants: Wants) -> Vec<PollFd<'_>>;

    /// Sends what can be sent now.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends what [`Link::write`] has taken but not sent.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Reads what has come; 0 is the end.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Reads lines for the user; 0 is the end.
    fn read_lines(&mut self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Asks for a sign of life, where the end of a stopped process does not show by itself. A child
    /// is killed where it does not answer in time.
    fn probe(&mut self) {}

    /// Whether nothing has come since it was asked for a sign of life.
    fn is_mute(&self) -> bool {
        false
    }

    /// Whether nothing more will be written at the other end.
    fn is_dead(&self) -> bool;

    /// Waits for its end until the deadline, and says in words how it ended.
    fn end(&self, deadline: Deadline) -> String;

    /// Lets it end by itself until the deadline.
    fn finish(&mut self, deadline: Deadline);

    /// Ends it.
    fn kill(&mut self);
}

/// What there is to do with a [`Link`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    /// There is something to send.
    pub(super) to_send: bool,
    /// What comes is wanted.
    pub(super) to_read: bool,
    /// Its end is not known yet.
    pub(super) to_end: bool,
    /// Lines are wanted.
    pub(super) lines: bool,
}

/// A child of this process, or what it stands for at the other end of ssh and the like.
#[derive(Debug)]
pub(super) struct ChildLink {
    host: String,
    process: Process,
    streams: Streams,
}

impl ChildLink {
    /// Starts it with these words. `host` is empty where there is no `--via`.
    pub(super) fn start(host: &str, words: &[String]) -> io::Result<Self> {
        let (process, streams) = Process::start(words)?;
        Ok(Self { host: host.to_owned(), process, streams })
    }
}

impl Link for ChildLink {
    fn name(&self, rank: u32) -> String {
        let at = if self.host.is_empty() { String::new() } else { format!(" on {}", self.host) };
        format!("the agent of rank {rank}{at} (pid {})", self.process.pid())
    }

    fn speaker(&self, rank: u32) -> String {
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
