//! The traffic with one agent, without blocking: queued requests out, replies and lines for the
//! user in.

use std::collections::VecDeque;
use std::io;

use measure::clock::Deadline;
use rustix::event::PollFd;

use super::frame::{Decoder, FRAME_BYTES_MAX, Frame, Greeting, quotable};
use super::link::{ChildLink, Link, Wants};
use super::message::{Reply, Request};
use super::sink::Sink;
use crate::Error;

/// The coordinator's side of an agent. Dropping it ends the agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) rank: u32,
    link: Box<dyn Link>,
    /// Bytes that the link has not taken yet.
    unsent: VecDeque<u8>,
    decoder: Decoder,
    greeting: Option<Greeting>,
    output_ended: bool,
    lines_ended: bool,
    /// The unfinished line for the user, from a child's standard error.
    line: Vec<u8>,
    /// The last whole line, quoted.
    last_line: Option<String>,
}

impl Agent {
    /// Starts an agent by this command.
    pub(super) fn start(rank: u32, host: &str, words: &[String]) -> Result<Self, Error> {
        Ok(Self::new(rank, Box::new(Self::child(rank, host, words)?)))
    }

    /// Starts an agent whose rank changes: errors name it by its host alone.
    pub(super) fn start_unranked(place: u32, host: &str, words: &[String]) -> Result<Self, Error> {
        Ok(Self::new(place, Box::new(Self::child(place, host, words)?.unranked())))
    }

    fn child(rank: u32, host: &str, words: &[String]) -> Result<ChildLink, Error> {
        ChildLink::start(host, words).map_err(|cause| Error::Spawn {
            rank,
            command: words.first().cloned().unwrap_or_default(),
            cause,
        })
    }

    /// Wraps the link to an agent that already runs.
    pub(super) fn new(rank: u32, link: Box<dyn Link>) -> Self {
        Self {
            rank,
            link,
            unsent: Greeting::ours().to_line().into_bytes().into(),
            decoder: Decoder::default(),
            greeting: None,
            output_ended: false,
            lines_ended: false,
            line: Vec::new(),
            last_line: None,
        }
    }

    /// Returns the name of the agent in errors.
    pub(super) fn name(&self) -> String {
        self.link.name(self.rank)
    }

    /// Whether a new agent can take the place of this one.
    pub(super) fn is_replaceable(&self) -> bool {
        self.link.is_replaceable()
    }

    /// Whether the agent is ended when another agent has failed.
    pub(super) fn ends_with_others(&self) -> bool {
        self.link.ends_with_others()
    }

    /// Returns the last line that the agent printed besides its messages, for the end of an error.
    pub(super) fn said(&self) -> String {
        if self.greeting.is_none() && self.decoder.is_partial() {
            return format!("; it printed {}", self.decoder.first_line());
        }
        self.last_line.as_ref().map_or_else(String::new, |line| format!("; it last said {line}"))
    }

    pub(super) fn send(&mut self, request: &Request) -> Result<(), Error> {
        let what = || format!("send a request to {}", self.name());
        let mut bytes = Vec::new();
        request.to_frame().write(&mut bytes).map_err(|cause| Error::System { what: what(), cause })?;
        self.unsent.extend(bytes);
        Ok(())
    }

    /// Returns the descriptors to wait for.
    pub(super) fn interest(&self) -> Vec<PollFd<'_>> {
        self.link.interest(Wants {
            to_send: !self.unsent.is_empty(),
            to_read: self.takes_output(),
            to_end: !self.output_ended,
            lines: !self.lines_ended,
        })
    }

    /// Reads and writes as much as is possible without waiting. Passes whole lines for the user to
    /// `sink`.
    pub(super) fn transfer(&mut self, sink: &mut dyn Sink) {
        // Checked before reading: the output of a dead process can be read to its end.
        let dead = self.link.is_dead();
        self.write();
        let mut bytes = [0; TRANSFER_BYTES];
        while self.takes_output() {
            match some(self.link.read(&mut bytes)) {
                Some(0) => self.output_ended = true,
                Some(count) => self.decoder.push(&bytes[..count]),
                None if dead => self.output_ended = true,
                None => break,
            }
        }
        // One read for each call: an agent that prints without end cannot block the deadlines.
        match some(self.link.read_lines(&mut bytes)) {
            Some(0) => self.lines_ended = true,
            Some(count) => self.take_lines(&bytes[..count], sink),
            None => self.lines_ended |= dead,
        }
    }

    /// Returns the next reply, once it is whole. `doing` is for the error.
    pub(super) fn reply(&mut self, doing: &str) -> Result<Option<Reply>, Error> {
        match self.next() {
            Ok(Some(frame)) => match Reply::from_frame(frame) {
                Ok(reply) => Ok(Some(reply)),
                Err(err) => Err(self.unusable(err)),
            },
            Ok(None) if self.output_ended => Err(self.ended(doing)),
            Ok(None) => Ok(None),
            Err(err) => Err(self.unusable(err)),
        }
    }

    /// Returns the version of the agent's program, once it has greeted.
    pub(super) fn version(&self) -> Option<&str> {
        self.greeting.as_ref().map(|greeting| greeting.version.as_str())
    }

    /// Asks the agent for a sign of life.
    pub(super) fn probe(&mut self) {
        self.link.probe();
    }

    /// Whether nothing has arrived since the last probe.
    pub(super) fn is_mute(&self) -> bool {
        self.link.is_mute()
    }

    /// Waits for the agent to end by itself.
    pub(super) fn finish(&mut self, deadline: Deadline) {
        self.link.finish(deadline);
    }

    /// Ends the agent.
    pub(super) fn kill(&mut self) {
        self.link.kill();
    }

    /// Whether the output has ended but last lines may still arrive.
    pub(super) fn has_last_words(&self) -> bool {
        self.output_ended && !self.lines_ended
    }

    /// Whether to read the output. No more than one frame is kept unread, so that an agent that
    /// writes without end blocks.
    fn takes_output(&self) -> bool {
        !self.output_ended && self.decoder.unread_bytes() < FRAME_BYTES_MAX
    }

    fn write(&mut self) {
        while !self.unsent.is_empty() {
            let (bytes, _) = self.unsent.as_slices();
            match self.link.write(bytes) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                // The agent closed its input. Either its output ends next or the deadline passes.
                // Both errors say more than this one.
                Err(_) => self.unsent.clear(),
            }
        }
        let _ = self.link.flush();
    }

    fn next(&mut self) -> Result<Option<Frame>, Error> {
        if self.greeting.is_none() {
            let Some(greeting) = self.decoder.greeting()? else { return Ok(None) };
            greeting.check()?;
            self.greeting = Some(greeting);
        }
        self.decoder.frame()
    }

    /// Passes whole lines on, and a longer line in pieces of [`LINE_BYTES_MAX`].
    fn take_lines(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
            }
            if (*byte == b'\n' || self.line.len() == LINE_BYTES_MAX) && !self.line.is_empty() {
                // A remote terminal ends a line with a carriage return, too.
                let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
                let text = String::from_utf8_lossy(line).replace(|c: char| c.is_control() && c != '\t', "?");
                sink.agent_line(&self.link.speaker(self.rank), &text);
                self.last_line = Some(quotable(&self.line));
                self.line.clear();
            }
        }
    }

    fn ended(&self, doing: &str) -> Error {
        if self.greeting.is_none() && self.decoder.is_partial() {
            let line = self.decoder.first_line();
            return self.unusable(Error::NoGreeting { line });
        }
        let how = self.link.end(Deadline::after(LAST_WORDS_TIMEOUT));
        let how = if self.decoder.is_partial() { format!("{how} in the middle of a message") } else { how };
        Error::AgentEnded { who: self.name(), how, doing: doing.to_owned(), said: self.said() }
    }

    fn unusable(&self, cause: Error) -> Error {
        Error::BadAgent { who: self.name(), cause: Box::new(cause) }
    }
}

/// Returns the number of bytes that were read; none where there is nothing to read now. An error is
/// taken as the end of the stream.
fn some(read: io::Result<usize>) -> Option<usize> {
    match read {
        Ok(count) => Some(count),
        Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        Err(_) => Some(0),
    }
}

/// The time that an agent has to end, and to say why, after its output has ended.
pub(super) const LAST_WORDS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
/// The most bytes of one read: the capacity of a pipe.
const TRANSFER_BYTES: usize = 64 << 10;
/// The longest line that is not split, in bytes.
const LINE_BYTES_MAX: usize = 4096;
