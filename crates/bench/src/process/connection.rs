//! The coordinator's side of an authenticated connection to a server that was started by hand.
//!
//! # Invariants
//!
//! * The coordinator cannot start a server again: it waits until a failed point has ended, and a
//!   lost server ends the run with its finished points kept.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::link::{Link, Wants};
use super::secure::{Channel, Opener, PAYLOAD_BYTES_MAX, Record, Sealer};
use super::wait::wait;
use crate::Error;

/// The connection to a server. It cannot be opened again.
pub(super) struct Connection {
    /// `node7:7362`.
    place: String,
    stream: TcpStream,
    sealer: Sealer,
    opener: Opener,
    /// Bytes that were sealed and not yet sent: at most one record.
    outgoing: VecDeque<u8>,
    /// Bytes that were opened and not yet read.
    incoming: VecDeque<u8>,
    /// The server's [`Record::Words`], a line each.
    lines: VecDeque<u8>,
    /// Whether nothing has arrived since the last probe.
    is_mute: bool,
    /// How the connection ended, if it has.
    ended: Option<String>,
}

impl Connection {
    /// Wraps `stream`, which must be non-blocking.
    pub(super) fn new(place: String, stream: TcpStream, channel: Channel) -> Self {
        let Channel { sealer, opener } = channel;
        let (outgoing, incoming, lines) = Default::default();
        let mut connection =
            Self { place, stream, sealer, opener, outgoing, incoming, lines, is_mute: false, ended: None };
        // A rank may have introduced itself right after the handshake.
        connection.open_all();
        connection
    }

    /// Whether the connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Ends the connection for a reason that the network does not show.
    pub(super) fn lose(&mut self, how: String) {
        self.ended.get_or_insert(how);
        // It fails if the connection is already gone.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads from the network.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; RECEIVE_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.ended = Some("closed the connection".to_owned()),
            Ok(count) => {
                self.is_mute = false;
                self.opener.push(&bytes[..count]);
                self.open_all();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            Err(error) => self.ended = Some(format!("was lost ({error})")),
        }
        Ok(())
    }

    /// Opens the records that are complete. An invalid record ends the connection.
    fn open_all(&mut self) {
        if let Err(error) = self.open() {
            self.ended = Some(format!("was cut off because {error}"));
        }
    }

    /// Opens the records that are complete.
    fn open(&mut self) -> Result<(), Error> {
        while let Some(record) = self.opener.next()? {
            match record {
                Record::Stream(bytes) => self.incoming.extend(bytes),
                Record::Words(words) => {
                    self.lines.extend(words.into_bytes());
                    self.lines.push_back(b'\n');
                }
                // Its arrival is the sign of life.
                Record::Probe => {}
            }
        }
        Ok(())
    }
}

impl Link for Connection {
    fn name(&self, _: u32) -> String {
        format!("the server {}", self.place)
    }

    fn speaker(&self, rank: u32) -> String {
        format!("rank {rank} {}", self.place)
    }

    fn is_replaceable(&self) -> bool {
        false
    }

    fn interest(&self, wants: Wants) -> Vec<PollFd<'_>> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::OUT, wants.to_send || !self.outgoing.is_empty());
        // The end of a stream stays readable, so that waiting for left lines returns at once.
        flags.set(PollFlags::IN, wants.to_read || (wants.lines && self.ended.is_some()));
        if flags.is_empty() { Vec::new() } else { vec![PollFd::new(&self.stream, flags)] }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let piece = &bytes[..bytes.len().min(PAYLOAD_BYTES_MAX)];
        let mut sealed = Vec::new();
        self.sealer.seal(&Record::Stream(piece.to_vec()), &mut sealed);
        self.outgoing.extend(sealed);
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(piece.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let count = self.stream.write(self.outgoing.as_slices().0)?;
            self.outgoing.drain(..count);
        }
        Ok(())
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.incoming.is_empty() && self.ended.is_none() {
            self.receive()?;
        }
        self.incoming.read(bytes)
    }

    fn read_lines(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.lines.is_empty() && self.ended.is_none() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.lines.read(bytes)
    }

    fn probe(&mut self) {
        let mut sealed = Vec::new();
        self.sealer.seal(&Record::Probe, &mut sealed);
        self.outgoing.extend(sealed);
        self.is_mute = self.ended.is_none();
        // The rest is sent with the next record. A lost connection shows when it is read.
        let _ = self.flush();
    }

    fn is_mute(&self) -> bool {
        self.is_mute
    }

    /// Unknown until the end of the connection has been read.
    fn is_dead(&self) -> bool {
        false
    }

    fn end(&self, _: Deadline) -> String {
        self.ended.clone().unwrap_or_else(|| "closed the connection".to_owned())
    }

    /// Waits until the server closes the connection, which it does after [`Request::Quit`]. If the
    /// coordinator closed the connection first, that request might be lost.
    ///
    /// [`Request::Quit`]: super::message::Request::Quit
    fn finish(&mut self, deadline: Deadline) {
        while self.ended.is_none() && !deadline.is_over() {
            let _ = self.flush();
            match self.receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut flags = PollFlags::IN;
                    flags.set(PollFlags::OUT, !self.outgoing.is_empty());
                    if wait(vec![PollFd::new(&self.stream, flags)], deadline, None).is_err() {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    fn kill(&mut self) {
        self.lose("was disconnected".to_owned());
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("place", &self.place)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The most bytes of one read: a record.
const RECEIVE_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests;
