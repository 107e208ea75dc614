//! Blocks over TCP connections, which take turns.
//!
//! A header of eight bytes precedes each block. Each connection has its own reading thread, so that
//! a sink receives while it writes, and a source receives answers while it sends. A thread ends
//! with its connection, which is shut down when the link is dropped.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;

use measure::clock::Deadline;
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::{ANSWER_BLOCK_BYTES, Inlet, Kind, LinkEnd, Outlet, Patience, UNREAD_BYTES_MAX};
use crate::Error;
use crate::transfer::block::{Block, Owned};
use crate::transfer::told::LinkTold;

/// A received block with its kind and length, or why there are no more.
type Arrival = io::Result<(Kind, usize, Owned)>;

/// The connections of a rank.
struct Connections {
    streams: Vec<TcpStream>,
    arrivals: Vec<Receiver<Arrival>>,
    patience: Patience,
}

impl Drop for Connections {
    /// Ends the threads, which may be reading.
    fn drop(&mut self) {
        for stream in &self.streams {
            // It fails if the connection has already ended.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The bytes of a header: one for the kind, three zeros, and four for the length of the block.
const HEADER_BYTES: usize = 8;

impl Connections {
    /// Starts to read the connections, each at most `ahead` blocks of `bytes` bytes ahead.
    fn new(
        streams: Vec<TcpStream>,
        patience: Patience,
        (ahead, bytes): (usize, usize),
    ) -> Result<(Self, Vec<SyncSender<Owned>>), Error> {
        let failed = Error::system("read a connection");
        let mut arrivals = Vec::new();
        let mut free = Vec::new();
        for stream in &streams {
            let (arrives, arrived) = sync_channel(ahead);
            let (gives, given) = sync_channel(ahead);
            let stream = stream.try_clone().map_err(failed)?;
            stream.set_write_timeout(Some(super::SILENCE)).map_err(failed)?;
            thread::Builder::new()
                .name("connection".to_owned())
                .spawn(move || read(stream, &given, (ahead, bytes), &arrives))
                .map_err(failed)?;
            arrivals.push(arrived);
            free.push(gives);
        }
        Ok((Self { streams, arrivals, patience }, free))
    }

    /// Returns the next block of a connection. Waits for it if `waits` is set.
    fn arrival(&self, lane: usize, waits: bool) -> Result<Option<(Kind, usize, Owned)>, Error> {
        let arrived = match waits {
            true => match self.arrivals[lane].recv_timeout(self.patience.silence().remaining()) {
                Ok(arrived) => arrived,
                Err(RecvTimeoutError::Timeout) => return Err(self.patience.is_over()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.has_ended()),
            },
            false => match self.arrivals[lane].try_recv() {
                Ok(arrived) => arrived,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Err(self.has_ended()),
            },
        };
        arrived.map(Some).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => self.patience.is_wrong(&error.to_string()),
            io::ErrorKind::UnexpectedEof => self.has_ended(),
            _ => self.patience.is_gone(&error.to_string()),
        })
    }

    fn has_ended(&self) -> Error {
        self.patience.is_gone("it closed the connection")
    }

    /// Sends a header and its block together.
    fn send(&self, lane: usize, kind: Kind, bytes: &[u8]) -> Result<(), Error> {
        let header = header(kind, bytes.len());
        let mut stream = &self.streams[lane];
        let both = [io::IoSlice::new(&header), io::IoSlice::new(bytes)];
        let sent = loop {
            match stream.write_vectored(&both) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let rest = sent.and_then(|sent| match sent.checked_sub(HEADER_BYTES) {
            Some(sent) => stream.write_all(&bytes[sent..]),
            None => stream.write_all(&header[sent..]).and_then(|()| stream.write_all(bytes)),
        });
        rest.map_err(|error| self.has_failed(&error))
    }

    /// Returns the error for a failed send.
    fn has_failed(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.patience.is_over(),
            _ => self.patience.is_gone(&error.to_string()),
        }
    }

    /// Sends a header alone. The bytes that it announces must follow.
    fn announce(&self, lane: usize, kind: Kind, bytes: usize) -> Result<(), Error> {
        let header = header(kind, bytes);
        let mut left = &header[..];
        while !left.is_empty() {
            match send(&self.streams[lane], left, SendFlags::MORE | SendFlags::NOSIGNAL) {
                Ok(sent) => left = &left[sent..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.has_failed(&errno.into())),
            }
        }
        Ok(())
    }

    /// Lets the kernel send at most `bytes` bytes of a file. Returns how many it has sent, and the
    /// error if it could not read the file.
    fn splice(
        &self,
        lane: usize,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<(usize, io::Result<()>), Error> {
        let mut at = offset;
        let mut left = bytes;
        while left > 0 {
            match sendfile(&self.streams[lane], file, Some(&mut at), left) {
                Ok(0) => break,
                Ok(sent) => left -= sent,
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::AGAIN | Errno::PIPE | Errno::CONNRESET | Errno::TIMEDOUT)) => {
                    return Err(self.has_failed(&errno.into()));
                }
                Err(errno) => {
                    let words = format!("sendfile failed: {}", io::Error::from(errno));
                    return Ok((bytes - left, Err(io::Error::other(words))));
                }
            }
        }
        Ok((bytes - left, Ok(())))
    }
}

fn header(kind: Kind, bytes: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0] = match kind {
        Kind::Packed => 0,
        Kind::Raw => 1,
    };
    header[4..].copy_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes());
    header
}

/// Reads blocks, at most `ahead` of them ahead, until the connection ends or the link is dropped.
/// Memory for a block is allocated when it is needed: most connections need little.
fn read(
    mut stream: TcpStream,
    free: &Receiver<Owned>,
    (ahead, bytes): (usize, usize),
    arrives: &SyncSender<Arrival>,
) {
    let mut made = 0;
    loop {
        let block = match free.try_recv() {
            Ok(block) => block,
            Err(TryRecvError::Empty) if made < ahead => {
                made += 1;
                Owned::new(bytes)
            }
            Err(TryRecvError::Empty) => match free.recv() {
                Ok(block) => block,
                Err(_) => return,
            },
            Err(TryRecvError::Disconnected) => return,
        };
        let arrived = read_one(&mut stream, block);
        let is_last = arrived.is_err();
        if arrives.send(arrived).is_err() || is_last {
            return;
        }
    }
}

fn read_one(stream: &mut TcpStream, mut block: Owned) -> Arrival {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let [kind, 0, 0, 0, length @ ..] = header else { return Err(wrong("sent a broken header")) };
    let kind = match kind {
        0 => Kind::Packed,
        1 => Kind::Raw,
        _ => return Err(wrong("sent a block of an unknown kind")),
    };
    let bytes = u32::from_le_bytes(length) as usize;
    let room = block.bytes_mut().get_mut(..bytes).ok_or_else(|| wrong("sent a block that is too long"))?;
    stream.read_exact(room)?;
    Ok((kind, bytes, block))
}

/// The source's side of TCP connections.
pub(crate) struct TcpOutlet {
    connections: Connections,
    block: Owned,
    /// The blocks that the kernel has sent from files; `None` without sendfile(2).
    spliced: Option<u64>,
    posted: u64,
    answers: Vec<SyncSender<Owned>>,
}

/// The blocks of answers that a source reads ahead.
const ANSWERS_AHEAD: usize = UNREAD_BYTES_MAX / ANSWER_BLOCK_BYTES;

impl TcpOutlet {
    /// Makes an outlet of connected streams, with blocks of `bytes` bytes. `splices` is whether the
    /// kernel sends files over the connections (sendfile(2)).
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn new(
        streams: Vec<TcpStream>,
        bytes: usize,
        splices: bool,
        patience: Patience,
    ) -> Result<Self, Error> {
        let (connections, answers) =
            Connections::new(streams, patience, (ANSWERS_AHEAD, ANSWER_BLOCK_BYTES))?;
        Ok(Self { connections, block: Owned::new(bytes), spliced: splices.then_some(0), posted: 0, answers })
    }

    /// Returns the connection of the next block.
    fn next_lane(&mut self) -> Result<usize, Error> {
        self.connections.patience.look()?;
        let lane = self.posted % self.connections.streams.len() as u64;
        self.posted += 1;
        Ok(lane as usize)
    }
}

impl Outlet for TcpOutlet {
    fn block_bytes(&self) -> usize {
        self.block.bytes().len()
    }

    fn room(&mut self) -> Result<&mut dyn Block, Error> {
        Ok(&mut self.block)
    }

    fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error> {
        let lane = self.next_lane()?;
        self.connections.send(lane, kind, &self.block.bytes()[..bytes])
    }

    fn post_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<io::Result<usize>>, Error> {
        let Some(spliced) = self.spliced else { return Ok(None) };
        let lane = self.next_lane()?;
        self.connections.announce(lane, Kind::Raw, bytes)?;
        let (sent, told) = self.connections.splice(lane, file, offset, bytes)?;
        // Zeros fill the announced length. The sink later learns that the file is not complete.
        let mut stream = &self.connections.streams[lane];
        let filled = io::copy(&mut io::repeat(0).take((bytes - sent) as u64), &mut stream);
        filled.map_err(|error| self.connections.has_failed(&error))?;
        self.spliced = Some(spliced + 1);
        Ok(Some(told.map(|()| sent)))
    }

    fn answers(&mut self, waits: bool) -> Result<Option<Vec<u8>>, Error> {
        let Some((kind, bytes, block)) = self.connections.arrival(0, waits)? else { return Ok(None) };
        if kind != Kind::Packed {
            return Err(self.connections.patience.is_wrong("answered with a file"));
        }
        let answers = block.bytes()[..bytes].to_vec();
        // It fails if the thread has ended, which the next call reports.
        let _ = self.answers[0].send(block);
        Ok(Some(answers))
    }
}

impl LinkEnd for TcpOutlet {
    fn ends_at(&mut self, deadline: Deadline) {
        self.connections.patience.deadline = deadline;
    }

    fn told(&self) -> LinkTold {
        LinkTold {
            blocks: self.posted,
            block_bytes: self.block_bytes() as u64,
            sendfile_blocks: self.spliced,
            ..LinkTold::default()
        }
    }
}

/// The sink's side of TCP connections.
pub(crate) struct TcpInlet {
    connections: Connections,
    free: Vec<SyncSender<Owned>>,
    taken: u64,
    /// The current block.
    block: Option<Owned>,
    /// An empty block, for when there is no current one.
    nothing: Owned,
    bytes: usize,
}

impl TcpInlet {
    /// Makes an inlet of connected streams, with blocks of `bytes` bytes. Up to `ahead` blocks of
    /// each connection are received while one is unpacked.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn new(
        streams: Vec<TcpStream>,
        bytes: usize,
        ahead: usize,
        patience: Patience,
    ) -> Result<Self, Error> {
        let (connections, free) = Connections::new(streams, patience, (ahead.max(1), bytes))?;
        Ok(Self { connections, free, taken: 0, block: None, nothing: Owned::new(0), bytes })
    }

    fn lane(&self) -> usize {
        (self.taken % self.free.len() as u64) as usize
    }
}

impl Inlet for TcpInlet {
    fn take(&mut self) -> Result<(Kind, usize), Error> {
        self.connections.patience.look()?;
        let arrived = self.connections.arrival(self.lane(), true)?;
        let (kind, bytes, block) = arrived.ok_or_else(|| self.connections.has_ended())?;
        self.block = Some(block);
        Ok((kind, bytes))
    }

    fn block(&self) -> &dyn Block {
        self.block.as_ref().unwrap_or(&self.nothing)
    }

    fn release(&mut self) -> Result<(), Error> {
        if let Some(block) = self.block.take() {
            // It fails if the thread has ended, which the next call reports.
            let _ = self.free[self.lane()].send(block);
            self.taken += 1;
        }
        Ok(())
    }

    fn answer(&mut self, answers: &[u8]) -> Result<(), Error> {
        self.connections.send(0, Kind::Packed, answers)
    }
}

impl LinkEnd for TcpInlet {
    fn ends_at(&mut self, deadline: Deadline) {
        self.connections.patience.deadline = deadline;
    }

    fn told(&self) -> LinkTold {
        LinkTold { blocks: self.taken, block_bytes: self.bytes as u64, ..LinkTold::default() }
    }
}
