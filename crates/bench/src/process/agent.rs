//! The agent: reads requests, lets a [`Worker`] carry them out, and answers.
//!
//! An agent lives and dies with its coordinator: when its input ends, the agent ends within
//! [`HANGUP_GRACE`], even in the middle of a measurement. Between points it may wait some seconds
//! longer for its guard, which reverts the changes to the host. One thread waits for the end of the
//! input. It is blocked in a read and costs the measurement nothing.
//!
//! # Invariants
//!
//! * The thread that measures shares its table of descriptors with no long-lived thread: otherwise
//!   each of its system calls would count references to them (`process/agent.rs`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use measure::clock::Deadline;
use measure::conditions::{Condition, Wanted};

use super::frame::{Decoder, Greeting};
use super::message::{
    Calibrated, CalibrationStep, Description, Hello, Neighbour, Outcome, Prepared, Reply, Request,
};
use crate::Error;
use crate::cut;
pub use crate::fault::PointError;
use crate::point::PointSpec;

/// The code that measures. The agent calls it from one thread, in this order for each point:
/// `prepare`, `connect`, `run`, `reset`. After an error, any but the last may be left out.
/// `calibrate` is called between points.
pub trait Worker {
    /// Describes the device and the host. `rank` is the rank of this worker.
    fn describe(&mut self, rank: u32) -> Result<Description, PointError>;

    /// Measures the points to come as this rank, pinned to a CPU if one is named.
    fn become_rank(&mut self, _rank: u32, _cpu: Option<u32>) -> Result<(), PointError> {
        Ok(())
    }

    /// Arranges the conditions of the points to come. `ranks` are the CPUs of the ranks of this
    /// host. Returns the outcome of each technique; empty for a worker without a machine.
    fn arrange(&mut self, _: &Wanted, _ranks: &[u32]) -> Vec<Condition> {
        Vec::new()
    }

    /// Checks the arranged conditions again. Returns the techniques whose outcome has changed.
    fn verify(&mut self) -> Vec<Condition> {
        Vec::new()
    }

    /// Sets a point up as far as possible without the other ranks. Returns what they need to
    /// connect.
    fn prepare(&mut self, spec: &PointSpec) -> Result<Prepared, PointError>;

    /// Connects to the other ranks of the point. `ranks` has what they returned from `prepare`.
    fn connect(&mut self, ranks: &[Neighbour]) -> Result<(), PointError>;

    /// Measures the point.
    fn run(&mut self) -> Result<Outcome, PointError>;

    /// Continues work that other ranks may still wait for, such as a message that this rank has
    /// sent. Returns whether there may be more work, so that this has to be called again.
    fn tend(&mut self) -> bool {
        false
    }

    /// Does a step of the measurement of the core-to-core latency. No point is set up then.
    fn calibrate(&mut self, step: &CalibrationStep) -> Result<Calibrated, PointError>;

    /// Takes the point down, whether or not it succeeded. Also called where there is no point.
    fn reset(&mut self);
}

/// The stream that requests come from.
pub(super) trait Requests: Read + Send + 'static {
    /// Is called once by the thread that alone reads the stream from then on.
    fn begin(&mut self) {}

    /// Is called when a request has been read, before the next one is awaited.
    fn heed(&mut self, request: &Request);
}

/// The standard input of a child. It has no deadline, and its end means that the coordinator is
/// gone.
struct Standard<R>(R);

impl<R: AsFd + Read + Send + 'static> Requests for Standard<R> {
    /// Gives this thread its own table of descriptors, with only the descriptors that it needs.
    /// While two threads share a table, each system call of the thread that measures counts
    /// references to the descriptors that it uses. This takes some 20 ns, where a message takes as
    /// little as a few hundred.
    fn begin(&mut self) {
        // Standard error stays open for the message of a panic.
        let own = self.0.as_fd().as_raw_fd().unsigned_abs();
        let told = libc::STDERR_FILENO.unsigned_abs();
        let others = [(told + 1, own.saturating_sub(1)), (own.max(told) + 1, u32::MAX)];
        for (first, last) in others.into_iter().filter(|(first, last)| first <= last) {
            // SAFETY: the descriptors belong to this thread alone, which uses none of them. A
            // kernel without this call (before 5.9) does nothing.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
        }
    }

    fn heed(&mut self, _: &Request) {}
}

impl<R: Read> Read for Standard<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

/// How [`serve_requests`] ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SessionEnd {
    /// The coordinator sent [`Request::Quit`].
    Quit,
    /// The input ended first.
    HangUp,
}

/// The time that an agent has to end by itself after its input has ended.
pub const HANGUP_GRACE: Duration = Duration::from_millis(100);

/// Serves requests until [`Request::Quit`] or the end of `input`.
///
/// # Errors
///
/// If the input is not from a coordinator of this version, or the output fails.
pub fn serve<R, O, W>(input: R, output: O, worker: W) -> Result<(), Error>
where
    R: AsFd + Read + Send + 'static,
    O: Write,
    W: Worker,
{
    // SAFETY: _exit has no preconditions. Nothing of value is left to unwind: the coordinator is
    // gone.
    let orphaned = || unsafe { libc::_exit(EXIT_ORPHANED) };
    serve_requests(Standard(input), output, worker, &AtomicU64::new(0), orphaned).map(drop)
}

/// Serves requests and counts the measured points. `orphaned` is called on another thread if the
/// input has ended and the worker does not return.
pub(super) fn serve_requests<R, O, W>(
    mut input: R,
    mut output: O,
    mut worker: W,
    measured: &AtomicU64,
    orphaned: impl FnOnce() + Send + 'static,
) -> Result<SessionEnd, Error>
where
    R: Requests,
    O: Write,
    W: Worker,
{
    let failed = Error::system("write to the coordinator");
    output.write_all(Greeting::ours().to_line().as_bytes()).and_then(|()| output.flush()).map_err(failed)?;
    let (requests, received) = mpsc::sync_channel(1);
    // Dropped when this function returns, which tells the reader that there is nothing to end.
    let (_serving, hangup) = mpsc::channel::<()>();
    std::thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || {
            input.begin();
            read(input, &requests);
            drop(requests);
            if hangup.recv_timeout(HANGUP_GRACE) == Err(RecvTimeoutError::Timeout) {
                orphaned();
            }
        })
        .map_err(Error::system("start a thread"))?;
    while let Some(request) = next_request(&received, || worker.tend()) {
        let reply = match request? {
            Request::Quit => return Ok(SessionEnd::Quit),
            request => answer(&mut worker, &request),
        };
        if matches!(reply, Reply::Done(_)) {
            measured.fetch_add(1, Ordering::Relaxed);
        }
        write(&mut output, reply).map_err(failed)?;
    }
    Ok(SessionEnd::HangUp)
}

/// Waits for a request, and meanwhile calls [`Worker::tend`] for the other ranks: at first without
/// a pause, which they would measure. Returns `None` where no more requests will come.
fn next_request(
    received: &Receiver<Result<Request, Error>>,
    mut tend: impl FnMut() -> bool,
) -> Option<Result<Request, Error>> {
    let without_pause = Deadline::after(TENDS_WITHOUT_PAUSE);
    while tend() {
        let pause = if without_pause.is_over() { TENDS_EVERY } else { Duration::ZERO };
        match received.recv_timeout(pause) {
            Ok(request) => return Some(request),
            Err(RecvTimeoutError::Timeout) => std::thread::yield_now(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    received.recv().ok()
}

/// How long [`Worker::tend`] is called without a pause.
const TENDS_WITHOUT_PAUSE: Duration = Duration::from_millis(1);
/// The pause between later calls.
const TENDS_EVERY: Duration = Duration::from_millis(1);

/// Returns the process's standard input and output for [`serve`]. From then on, other code such as
/// a library writes to standard error when it writes to standard output, and finds standard input
/// empty.
///
/// # Errors
///
/// If the system refuses the descriptors.
pub fn take_stdio() -> Result<(File, File), Error> {
    let take = || -> io::Result<(File, File)> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        replace(&File::open("/dev/null")?, libc::STDIN_FILENO)?;
        replace(&io::stderr(), libc::STDOUT_FILENO)?;
        Ok((input.into(), output.into()))
    };
    take().map_err(Error::system("set standard input and output aside"))
}

fn replace(by: &impl AsRawFd, descriptor: libc::c_int) -> io::Result<()> {
    // SAFETY: dup2 takes any numbers; `by` is open, and nothing in this process owns the standard
    // descriptors.
    if unsafe { libc::dup2(by.as_raw_fd(), descriptor) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Reads requests until the input ends, fails or turns out not to be from a coordinator.
fn read(mut input: impl Requests, requests: &SyncSender<Result<Request, Error>>) {
    let mut decoder = Decoder::default();
    let mut greeted = false;
    let mut bytes = [0; 4096];
    loop {
        match input.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => decoder.push(&bytes[..count]),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        while let Some(request) = next(&mut decoder, &mut greeted).transpose() {
            request.iter().for_each(|request| input.heed(request));
            match request {
                Ok(Request::Cut) => {
                    cut::request();
                    continue;
                }
                Ok(Request::Prepare(_)) => cut::clear(),
                _ => {}
            }
            let last = request.is_err();
            if requests.send(request).is_err() || last {
                return;
            }
        }
    }
}

fn next(decoder: &mut Decoder, greeted: &mut bool) -> Result<Option<Request>, Error> {
    if !*greeted {
        let Some(greeting) = decoder.greeting()? else { return Ok(None) };
        greeting.check()?;
        *greeted = true;
    }
    decoder.frame()?.map(|frame| Request::from_frame(&frame)).transpose()
}

fn answer(worker: &mut impl Worker, request: &Request) -> Reply {
    let reply = match request {
        Request::Hello { rank, .. } => worker
            .describe(*rank)
            .map(|description| Reply::Hello(Box::new(Hello { pid: std::process::id(), description }))),
        Request::Become { rank, cpu } => worker.become_rank(*rank, *cpu).map(|()| Reply::Idle),
        Request::Arrange { conditions, ranks } => {
            Ok(Reply::Arranged { conditions: worker.arrange(conditions, ranks) })
        }
        Request::Verify => Ok(Reply::Arranged { conditions: worker.verify() }),
        Request::Prepare(spec) => worker.prepare(spec).map(Reply::Prepared),
        Request::Connect { ranks } => worker.connect(ranks).map(|()| Reply::Connected),
        Request::Run => worker.run().map(|outcome| Reply::Done(Box::new(outcome))),
        Request::Calibrate(step) => worker.calibrate(step).map(Reply::Calibrated),
        // The thread that reads has heeded `Cut`.
        Request::Cut | Request::Reset | Request::Quit => {
            worker.reset();
            Ok(Reply::Idle)
        }
    };
    reply.unwrap_or_else(|err| match err {
        PointError::NotMeasured(reason) => Reply::NotMeasured { reason },
        PointError::Failed(error) => Reply::Failed { error },
    })
}

fn write(output: &mut impl Write, reply: Reply) -> io::Result<()> {
    match reply.to_frame().write(output) {
        // A reply that is too long is a failure of the worker, not of the stream.
        Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
            Reply::Failed { error: err.to_string() }.to_frame().write(output)?;
        }
        other => other?,
    }
    output.flush()
}

/// The exit status of an agent that was ended in the middle of its work because its coordinator was
/// gone.
const EXIT_ORPHANED: libc::c_int = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ranks_are_tended_to_until_a_request_comes() {
        let (requests, received) = mpsc::sync_channel(1);
        let pauses = Deadline::after(5 * TENDS_WITHOUT_PAUSE);
        let mut is_sent = false;
        let request = next_request(&received, || {
            if !is_sent && pauses.is_over() {
                is_sent = true;
                requests.send(Ok(Request::Run)).unwrap();
            }
            true
        });
        assert!(matches!(request, Some(Ok(Request::Run))), "{request:?}");
        requests.send(Ok(Request::Reset)).unwrap();
        let mut calls = 0;
        let request = next_request(&received, || {
            calls += 1;
            false
        });
        assert!(matches!(request, Some(Ok(Request::Reset))) && calls == 1, "{request:?} {calls}");
        drop(requests);
        assert!(next_request(&received, || true).is_none() && next_request(&received, || false).is_none());
    }
}
