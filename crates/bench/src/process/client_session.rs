//! The server's side of the session with its client.

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
use super::message::{Reply, Request};
use super::rank_set::ARRANGE_TIMEOUT;
use super::secure::{Channel, Opener, PAYLOAD_BYTES_MAX, Record, Sealer};
use super::wait::wait;
use crate::Error;

/// A client that has proved that it has the key.
pub struct ClientSession {
    stream: TcpStream,
    address: SocketAddr,
    channel: Channel,
    /// The longest silence between two points.
    idle: Duration,
    /// Returns in words the call that the measuring thread waits in, where that call cannot be
    /// interrupted.
    stuck: Option<fn() -> String>,
}

/// The state that the two threads of a server share: one reads, the other measures and answers.
struct Shared {
    stream: TcpStream,
    client: SocketAddr,
    sealer: Mutex<Sealer>,
    /// The number of measured points.
    measured: AtomicU64,
    /// Why reading ended.
    ended: Mutex<Option<End>>,
    /// Whether the end has been reported.
    told: AtomicBool,
    /// Whether a request has arrived that is not answered yet.
    is_asked: AtomicBool,
}

/// Why reading ended.
enum End {
    /// How the client ended it, in words.
    Client(String),
    /// The signal that arrived.
    Signal(String),
}

impl ClientSession {
    pub(super) fn new(stream: TcpStream, address: SocketAddr, channel: Channel) -> Self {
        Self { stream, address, channel, idle: IDLE_TIMEOUT, stuck: None }
    }

    /// Returns a session whose points may wait in calls that cannot be interrupted. If a point has
    /// not ended at its time limit, the session sends the words of `stuck` to the client as an
    /// error, and this process ends.
    #[must_use]
    pub(super) fn that_may_be_stuck(self, stuck: fn() -> String) -> Self {
        Self { stuck: Some(stuck), ..self }
    }

    /// Sends words to the client before its first request.
    ///
    /// # Errors
    /// If the client is gone.
    pub(super) fn say(&mut self, words: String) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.channel.sealer.seal(&Record::Words(words), &mut bytes);
        send(&self.stream, &bytes).map_err(Error::system("introduce this rank to the coordinator"))
    }

    /// Returns the address of the client.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the client until it quits. Returns the number of points that were measured for it.
    ///
    /// The client may be lost or go silent, or a signal may arrive, while the worker measures. Then
    /// `abandoned` is called with the reason on another thread, and the process ends with the exit
    /// status that it returns, because a running measurement cannot be stopped.
    ///
    /// # Errors
    ///
    /// [`Error::ClientLost`] or [`Error::Stopped`], if that happens while the worker is idle.
    pub fn serve<W: Worker>(
        self,
        worker: W,
        interrupt: Option<Arc<Interrupt>>,
        abandoned: impl FnOnce(Error) -> u8 + Send + 'static,
    ) -> Result<u64, Error> {
        let Channel { sealer, opener } = self.channel;
        let shared = Arc::new(Shared {
            stream: self.stream,
            client: self.address,
            sealer: Mutex::new(sealer),
            measured: AtomicU64::new(0),
            ended: Mutex::new(None),
            told: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
        });
        let stuck = self.stuck;
        let input = Input {
            shared: Arc::clone(&shared),
            opener,
            interrupt,
            ready: VecDeque::new(),
            idle: self.idle,
            patience: self.idle,
            deadline: Deadline::after(self.idle),
            point: self.idle,
            stuck: stuck.map(|words| Stuck { words, end: Deadline::after(Duration::MAX) }),
        };
        let orphaned = {
            let shared = Arc::clone(&shared);
            move || {
                if let Some(error) = shared.farewell() {
                    let status = abandoned(error);
                    // SAFETY: _exit has no preconditions. Nothing of value is left to unwind: the
                    // client is gone.
                    unsafe { libc::_exit(status.into()) }
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
        // The client waits for this. It fails if the connection is already gone.
        let _ = shared.stream.shutdown(Shutdown::Both);
        result
    }
}

impl Shared {
    /// Keeps the first reason.
    fn end(&self, end: End) {
        lock(&self.ended).get_or_insert(end);
    }

    /// Answers a probe. While the measuring thread sends an answer, that answer is a sign of life
    /// itself. Right after it, that thread may still hold the channel for a moment.
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

    /// [`Shared::farewell`] for the measuring thread. The reading thread may already be reporting
    /// the end, and then ends the process.
    fn last_farewell(&self) -> Error {
        loop {
            match self.farewell() {
                Some(error) => return error,
                None => std::thread::park(),
            }
        }
    }

    /// Returns, once only, the error for a client that was not served to the end. Tells the client
    /// if a signal is the reason.
    fn farewell(&self) -> Option<Error> {
        if self.told.swap(true, Ordering::SeqCst) {
            return None;
        }
        let client = self.client;
        let points = self.measured.load(Ordering::Relaxed);
        Some(match lock(&self.ended).take() {
            Some(End::Signal(signal)) => {
                // Locked while an answer is written that the client does not read.
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

/// The requests from the channel, each with a deadline.
struct Input {
    shared: Arc<Shared>,
    opener: Opener,
    interrupt: Option<Arc<Interrupt>>,
    /// Bytes that were opened and not yet read.
    ready: VecDeque<u8>,
    /// The longest wait for a request outside of a point.
    idle: Duration,
    /// The longest wait for the next request.
    patience: Duration,
    /// When that wait ends.
    deadline: Deadline,
    /// The longest wait for a request of the current point.
    point: Duration,
    /// Set where the measuring thread may wait without end.
    stuck: Option<Stuck>,
}

/// How to report a measuring thread that waits without end.
struct Stuck {
    words: fn() -> String,
    /// When the current point should have ended.
    end: Deadline,
}

impl Input {
    /// Waits until bytes have arrived. Returns false at the end.
    fn receive(&mut self) -> bool {
        // Opened before the first read, too: requests may have followed the handshake at once.
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

    /// Reads the bytes that have arrived, or waits until some may have.
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
                let look = self.stuck.as_ref().map_or(self.deadline, |stuck| stuck.look(self.deadline));
                match wait(fds, look, self.interrupt.as_deref()) {
                    Ok(_) if self.is_stuck() => Err(self.give_up()),
                    Ok(_) if !self.deadline.is_over() => Ok(()),
                    Ok(_) => Err(End::Client(format!("sent nothing for {} s", self.patience.as_secs()))),
                    Err(Error::Interrupted { signal }) => Err(End::Signal(signal)),
                    Err(error) => Err(End::Client(format!("was lost ({error})"))),
                }
            }
            Err(error) => Err(End::Client(format!("was lost ({error})"))),
        }
    }

    /// Whether the measuring thread is still waiting at the end of the point's time.
    fn is_stuck(&self) -> bool {
        let is_asked = self.shared.is_asked.load(Ordering::SeqCst);
        is_asked && self.stuck.as_ref().is_some_and(|stuck| stuck.end.is_over())
    }

    /// Reports the stuck thread to the client, and ends the process: nothing else ends the thread.
    fn give_up(&mut self) -> End {
        let error = self.stuck.as_ref().map_or_else(String::new, |stuck| (stuck.words)());
        let mut frame = Vec::new();
        let said = Reply::Failed { error }.to_frame().write(&mut frame);
        let mut bytes = Vec::new();
        lock(&self.shared.sealer).seal(&Record::Stream(frame), &mut bytes);
        // If the client is gone, this fails and does not matter.
        if said.is_ok() && send(&self.shared.stream, &bytes).is_ok() {
            let _ = self.shared.stream.shutdown(Shutdown::Write);
        }
        // SAFETY: _exit has no preconditions. The measuring thread waits in a library and has
        // nothing that must be unwound.
        unsafe { libc::_exit(EXIT_ABANDONED) }
    }

    /// Opens the records that are complete.
    fn open(&mut self) -> Result<(), Error> {
        while let Some(record) = self.opener.next()? {
            match record {
                Record::Stream(bytes) => self.ready.extend(bytes),
                // A client sends nothing but requests.
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
        self.shared.is_asked.store(true, Ordering::SeqCst);
        if let (Some(stuck), Request::Prepare(spec)) = (&mut self.stuck, request) {
            let point = Duration::try_from_secs_f64(spec.timeout_s).unwrap_or(Duration::MAX);
            stuck.end = Deadline::after(point.saturating_add(STUCK_AFTER));
        }
        self.patience = match request {
            Request::Prepare(spec) => {
                let point = Duration::try_from_secs_f64(spec.timeout_s).unwrap_or(Duration::MAX);
                self.point = point.saturating_add(POINT_GRACE);
                self.point
            }
            // The control connection is silent while the point runs.
            Request::Connect { .. } | Request::Run | Request::Cut => self.point,
            Request::Arrange { .. } => self.idle + ARRANGE_TIMEOUT,
            Request::Hello { .. }
            | Request::Become { .. }
            | Request::Verify
            | Request::Calibrate(_)
            | Request::Reset
            | Request::Quit => self.idle,
        };
        self.deadline = Deadline::after(self.patience);
    }
}

impl Stuck {
    /// Returns when to check whether a point has ended, `latest` at the latest. Once the point's
    /// end has passed, there is no further check.
    fn look(&self, latest: Deadline) -> Deadline {
        if self.end.is_over() { latest } else { self.end.earlier(latest) }
    }
}

/// The replies to the channel.
struct Output(Arc<Shared>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PAYLOAD_BYTES_MAX)];
        let mut sealed = Vec::new();
        let mut sealer = lock(&self.0.sealer);
        sealer.seal(&Record::Stream(piece.to_vec()), &mut sealed);
        self.0.is_asked.store(false, Ordering::SeqCst);
        send(&self.0.stream, &sealed)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends a whole record. Fails if the client accepts no byte for [`SEND_TIMEOUT`].
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
                // The reading thread handles signals.
                wait(vec![PollFd::new(&stream, PollFlags::OUT)], deadline, None).map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::other(format!("it read nothing for {} s", SEND_TIMEOUT.as_secs())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Locks a mutex even if a thread panicked while it held it: the values stay valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest silence of a client between two points, and before the first: the client may have to
/// start an agent or wait for a disk, and its user may have stopped the output for a moment.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time after a point's time limit at which a thread counts as stuck: before the coordinator
/// gives up, and after ranks that notice the limit by themselves have ended.
const STUCK_AFTER: Duration = Duration::from_millis(700);
/// How long after a point's time limit the client may be silent: it waits for its other rank.
const POINT_GRACE: Duration = Duration::from_secs(30);
/// The longest time in which a client may accept no byte of an answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of one read.
const RECEIVE_BYTES: usize = 4096;
/// The longest wait for the channel after the last byte of an answer. The measuring thread releases
/// it within microseconds, unless it is preempted.
const LETTING_GO: Duration = Duration::from_millis(100);
/// The exit status of a server whose client was lost in the middle of a measurement.
const EXIT_ABANDONED: libc::c_int = 1;

#[cfg(test)]
mod tests;
