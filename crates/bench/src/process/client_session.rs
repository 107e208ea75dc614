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
use super::message::{Reply, Request};
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
    /// Says what the thread that measures waits for, where that cannot be interrupted.
    stuck: Option<fn() -> String>,
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
    /// Whether a request has come that is not answered.
    is_asked: AtomicBool,
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
        Self { stream, address, channel, idle: IDLE_TIMEOUT, stuck: None }
    }

    /// A session whose points may wait in calls that nothing can interrupt. Where a point has not
    /// ended at the end of its time, the client is told what it waits for, in the words of `stuck`,
    /// and this process ends.
    #[must_use]
    pub(super) fn that_may_be_stuck(self, stuck: fn() -> String) -> Self {
        Self { stuck: Some(stuck), ..self }
    }

    /// Says something before the client has asked for anything.
    ///
    /// # Errors
    /// If the client is gone.
    pub(super) fn say(&mut self, words: String) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.channel.sealer.seal(&Record::Words(words), &mut bytes);
        send(&self.stream, &bytes).map_err(Error::system("introduce this rank to the coordinator"))
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
    /// Where the thread that measures may wait for ever.
    stuck: Option<Stuck>,
}

/// What is said of a thread that waits for ever.
struct Stuck {
    words: fn() -> String,
    /// When the point that is set up should have ended.
    end: Deadline,
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

    /// Whether the thread that measures should have ended a point, and waits.
    fn is_stuck(&self) -> bool {
        let is_asked = self.shared.is_asked.load(Ordering::SeqCst);
        is_asked && self.stuck.as_ref().is_some_and(|stuck| stuck.end.is_over())
    }

    /// Says so in place of the thread that cannot, and ends the process: nothing else ends that
    /// thread.
    fn give_up(&mut self) -> End {
        let error = self.stuck.as_ref().map_or_else(String::new, |stuck| (stuck.words)());
        let mut frame = Vec::new();
        let said = Reply::Failed { error }.to_frame().write(&mut frame);
        let mut bytes = Vec::new();
        lock(&self.shared.sealer).seal(&Record::Stream(frame), &mut bytes);
        // Where the client is gone, nobody has to be told.
        if said.is_ok() && send(&self.shared.stream, &bytes).is_ok() {
            let _ = self.shared.stream.shutdown(Shutdown::Write);
        }
        // SAFETY: _exit has no preconditions. The other thread waits in a library and has nothing
        // that must be unwound.
        unsafe { libc::_exit(EXIT_ABANDONED) }
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

impl Stuck {
    /// When to look whether a point has ended, no later than a deadline. A point that should have
    /// ended and is not asked for is looked for no more.
    fn look(&self, latest: Deadline) -> Deadline {
        if self.end.is_over() { latest } else { self.end.earlier(latest) }
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
        self.0.is_asked.store(false, Ordering::SeqCst);
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
/// How much longer than a point's own time limit a thread may wait that cannot be interrupted: less
/// than the coordinator's patience, and more than those take that notice the limit by themselves.
const STUCK_AFTER: Duration = Duration::from_millis(700);
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
