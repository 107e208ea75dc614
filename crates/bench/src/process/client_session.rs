//! The client of a server that was started by hand, as the server serves it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::agent::{self, Requests, SessionEnd, Worker};
use super::interrupt::Interrupt;
use super::message::Request;
use super::rank_set::ARRANGE_TIMEOUT;
use super::secure::{Channel, Opener, PAYLOAD_BYTES_MAX, Record, Sealer};
use super::wait::wait;
use crate::Error;

/// The client, which has shown that it has the key.
pub struct ClientSession {
    stream: TcpStream,
    address: SocketAddr,
    channel: Channel,
    /// Longest silence between two points.
    idle: Duration,
}

/// What both threads of a server know: the one that reads, and the one that measures and answers.
struct Shared {
    stream: TcpStream,
    client: SocketAddr,
    sealer: Mutex<Sealer>,
    /// Points that were measured.
    measured: AtomicU64,
    /// Why reading ended.
    ended: Mutex<Option<End>>,
    /// Whether that has been said.
    told: AtomicBool,
}

/// Why reading ended.
enum End {
    /// How the client did it, in words.
    Client(String),
    /// The signal that came.
    Signal(String),
}

impl ClientSession {
    pub(super) fn new(stream: TcpStream, address: SocketAddr, channel: Channel) -> Self {
        Self { stream, address, channel, idle: IDLE_TIMEOUT }
    }

    /// Where it comes from.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves it to the end; gives how many points were measured for it. Where it goes away, goes
    /// silent or a signal comes while the worker measures, `abandoned` hears why on another thread,
    /// and the process then ends with exit status 1: nobody can stop a measurement that has begun.
    ///
    /// # Errors
    ///
    /// [`Error::ClientLost`] or [`Error::Stopped`], if that happens at any other time.
    pub fn serve<W: Worker>(
        self,
        worker: W,
        interrupt: Option<Arc<Interrupt>>,
        abandoned: impl FnOnce(Error) + Send + 'static,
    ) -> Result<u64, Error> {
        let Channel { sealer, opener } = self.channel;
        let shared = Arc::new(Shared {
            stream: self.stream,
            client: self.address,
            sealer: Mutex::new(sealer),
            measured: AtomicU64::new(0),
            ended: Mutex::new(None),
            told: AtomicBool::new(false),
        });
        let input = Input {
            shared: Arc::clone(&shared),
            opener,
            interrupt,
            ready: VecDeque::new(),
            idle: self.idle,
            patience: self.idle,
            deadline: Deadline::after(self.idle),
            point: self.idle,
        };
        let orphaned = {
            let shared = Arc::clone(&shared);
            move || {
                if let Some(error) = shared.farewell() {
                    abandoned(error);
                    // SAFETY: _exit has no preconditions. Nothing of value is left to unwind: the
                    // client is gone.
                    unsafe { libc::_exit(EXIT_ABANDONED) }
                }
            }
        };
        let output = Output(Arc::clone(&shared));
        let served = agent::serve_requests(input, output, worker, &shared.measured, orphaned);
        let result = match served {
            Ok(SessionEnd::Quit) => Ok(shared.measured.load(Ordering::Relaxed)),
            Ok(SessionEnd::HangUp) => Err(shared.last_farewell()),
            Err(error) => {
                shared.end(End::Client(format!("could not be served ({error})")));
                Err(shared.last_farewell())
            }
        };
        // The client waits for this. It fails where the connection is gone already.
        let _ = shared.stream.shutdown(Shutdown::Both);
        result
    }
}

impl Shared {
    /// Keeps the first reason.
    fn end(&self, end: End) {
        lock(&self.ended).get_or_insert(end);
    }

    /// Gives a sign of life. While the thread that measures sends an answer, that answer is one;
    /// right after it, the thread may not have let the channel go yet.
    fn answer_probe(&self) -> io::Result<()> {
        let mut bytes = Vec::new();
        let deadline = Deadline::after(LETTING_GO);
        while !deadline.is_over() {
            let Ok(mut sealer) = self.sealer.try_lock() else {
                std::thread::yield_now();
                continue;
            };
            sealer.seal(&Record::Probe, &mut bytes);
            return send(&self.stream, &bytes);
        }
        Ok(())
    }

    /// [`Shared::farewell`] for the thread that measured. The other one may be about it, and ends
    /// the process.
    fn last_farewell(&self) -> Error {
        loop {
            match self.farewell() {
                Some(error) => return error,
                None => std::thread::park(),
            }
        }
    }

    /// The error for a client that was not served to the end, once. The client is told of a signal.
    fn farewell(&self) -> Option<Error> {
        if self.told.swap(true, Ordering::SeqCst) {
            return None;
        }
        let client = self.client;
        let points = self.measured.load(Ordering::Relaxed);
        Some(match lock(&self.ended).take() {
            Some(End::Signal(signal)) => {
                // Unless an answer is being written that it does not take.
                if let Ok(mut sealer) = self.sealer.try_lock() {
                    let mut bytes = Vec::new();
                    sealer.seal(&Record::Words(format!("stopped by {signal}")), &mut bytes);
                    let _ = (&self.stream).write(&bytes);
                }
                Error::Stopped { signal, client, points }
            }
            Some(End::Client(how)) => Error::ClientLost { client, how, points },
            None => Error::ClientLost { client, how: "closed the connection".to_owned(), points },
        })
    }
}

/// Requests out of the channel, each with a deadline.
struct Input {
    shared: Arc<Shared>,
    opener: Opener,
    interrupt: Option<Arc<Interrupt>>,
    /// Opened and not yet read.
    ready: VecDeque<u8>,
    /// How long a request may take that no point's time limit stands for.
    idle: Duration,
    /// How long the next request may take in all, and until when.
    patience: Duration,
    deadline: Deadline,
    /// How long the steps of the point that is set up may take.
    point: Duration,
}

impl Input {
    /// Waits until something has come. False at the end.
    fn receive(&mut self) -> bool {
        // Also before the first read: requests may have come right behind the handshake.
        let end = match self.open() {
            Ok(()) if !self.ready.is_empty() => return true,
            Ok(()) => match self.take_in() {
                Ok(()) => return true,
                Err(end) => end,
            },
            Err(error) => End::Client(format!("was cut off because {error}")),
        };
        self.shared.end(end);
        false
    }

    /// Reads what has come, or waits until something may have.
    fn take_in(&mut self) -> Result<(), End> {
        let mut bytes = [0; RECEIVE_BYTES];
        match (&self.shared.stream).read(&mut bytes) {
            Ok(0) => Err(End::Client("closed the connection".to_owned())),
            Ok(count) => {
                self.opener.push(&bytes[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let fds = vec![PollFd::new(&self.shared.stream, PollFlags::IN)];
                match wait(fds, self.deadline, self.interrupt.as_deref()) {
                    Ok(_) if !self.deadline.is_over() => Ok(()),
                    Ok(_) => Err(End::Client(format!("sent nothing for {} s", self.patience.as_secs()))),
                    Err(Error::Interrupted { signal }) => Err(End::Signal(signal)),
                    Err(error) => Err(End::Client(format!("was lost ({error})"))),
                }
            }
            Err(error) => Err(End::Client(format!("was lost ({error})"))),
        }
    }

    /// Opens the records that are whole.
    fn open(&mut self) -> Result<(), Error> {
        while let Some(record) = self.opener.next()? {
            match record {
                Record::Stream(bytes) => self.ready.extend(bytes),
                // A client has nothing to say but requests.
                Record::Words(_) => {}
                Record::Probe => self.shared.answer_probe().map_err(Error::system("answer the client"))?,
            }
        }
        Ok(())
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() && self.receive() {}
        self.ready.read(bytes)
    }
}

impl Requests for Input {
    fn heed(&mut self, request: &Request) {
        self.patience = match request {
            Request::Prepare(spec) => {
                let point = Duration::try_from_secs_f64(spec.timeout_s).unwrap_or(Duration::MAX);
                self.point = point.saturating_add(POINT_GRACE);
                self.point
            }
            // While the point runs nothing is heard, for nothing must be said.
            Request::Connect { .. } | Request::Run => self.point,
            Request::Arrange { .. } => self.idle + ARRANGE_TIMEOUT,
            Request::Hello { .. }
            | Request::Verify
            | Request::Calibrate(_)
            | Request::Reset
            | Request::Quit => self.idle,
        };
        self.deadline = Deadline::after(self.patience);
    }
}

/// Replies into the channel.
struct Output(Arc<Shared>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PAYLOAD_BYTES_MAX)];
        let mut sealed = Vec::new();
        let mut sealer = lock(&self.0.sealer);
        sealer.seal(&Record::Stream(piece.to_vec()), &mut sealed);
        send(&self.0.stream, &sealed)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends all of a record, to a client that takes it.
fn send(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let mut deadline = Deadline::after(SEND_TIMEOUT);
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => {
                bytes = &bytes[count..];
                deadline = Deadline::after(SEND_TIMEOUT);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !deadline.is_over() => {
                // A signal is the reading thread's.
                wait(vec![PollFd::new(&stream, PollFlags::OUT)], deadline, None).map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::other(format!("it took nothing for {} s", SEND_TIMEOUT.as_secs())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a thread that panicked left is as good as any: it is only counted, sealed and worded.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest silence of a client between two points, and before the first: it may have an agent to
/// start and a disk to wait for, and its user may have stopped the output for a moment.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How much longer than a point's own time limit its client may be silent: it waits for its other
/// rank.
const POINT_GRACE: Duration = Duration::from_secs(30);
/// Longest time in which a client may take not a byte of an answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// What one read takes in.
const RECEIVE_BYTES: usize = 4096;
/// Between the last byte of an answer and the moment in which its thread lets the channel go lie
/// microseconds, or a turn of the scheduler.
const LETTING_GO: Duration = Duration::from_millis(100);
/// Exit status of a server whose client was gone in the middle of a measurement.
const EXIT_ABANDONED: libc::c_int = 1;

#[cfg(test)]
mod tests;
