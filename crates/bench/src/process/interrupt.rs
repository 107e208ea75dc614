//! SIGINT and SIGTERM of the coordinator: the run ends cleanly, with the agents killed and the
//! finished points on disk.
//!
//! The handler writes a byte to a pipe that every wait watches. An interrupted wait thus ends at
//! once, and no thread wakes up to check a flag while a point is measured. A second signal ends the
//! process, unless it follows at once: timeout(1) sends its signal to the process and to its group.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::{Error, signal};

/// Sets the actions of SIGCHLD and SIGXFSZ, whatever this process has inherited.
///
/// SIGCHLD gets its default action. If it were ignored, the kernel would reap children by itself:
/// their exit status would be lost, and their process IDs could soon belong to other processes.
/// SIGXFSZ is ignored, also in agents, which inherit that. A file that reaches the limit of its
/// size is then an error with a sentence, and does not kill the process.
///
/// # Errors
///
/// If the system refuses.
pub fn take_inherited_signals() -> io::Result<()> {
    signal::install(libc::SIGCHLD, &signal::action(libc::SIG_DFL, 0))?;
    signal::install(libc::SIGXFSZ, &signal::action(libc::SIG_IGN, 0))?;
    Ok(())
}

/// The installed handlers. Dropping it restores the previous ones. Only one may exist at a time.
#[derive(Debug)]
pub struct Interrupt {
    read: OwnedFd,
    /// Kept open for the handler.
    _write: OwnedFd,
    previous: Vec<(libc::c_int, libc::sigaction)>,
}

impl Interrupt {
    /// Installs the handlers.
    ///
    /// # Errors
    ///
    /// If the system refuses the pipe or the handlers.
    pub fn install() -> Result<Self, Error> {
        Self::try_install().map_err(Error::system("install the handlers of SIGINT and SIGTERM"))
    }

    fn try_install() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        RECEIVED.store(0, Ordering::SeqCst);
        SINCE_MS.store(0, Ordering::SeqCst);
        PIPE.store(write.as_raw_fd(), Ordering::SeqCst);
        let mut interrupt = Self { read, _write: write, previous: Vec::new() };
        let ours = signal::action(on_signal as extern "C" fn(libc::c_int) as usize, libc::SA_RESTART);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            interrupt.previous.push((signal, signal::install(signal, &ours)?));
        }
        Ok(interrupt)
    }

    /// Returns the name of the signal that has arrived, if any.
    pub fn received(&self) -> Option<&'static str> {
        match RECEIVED.load(Ordering::SeqCst) {
            0 => None,
            libc::SIGINT => Some("SIGINT"),
            _ => Some("SIGTERM"),
        }
    }
}

impl AsFd for Interrupt {
    /// Readable once a signal has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for (signal, previous) in &self.previous {
            // A failure could not be handled here, and is impossible after the first installation.
            let _ = signal::install(*signal, previous);
        }
        PIPE.store(-1, Ordering::SeqCst);
    }
}

/// Handles a signal by async-signal-safe calls only: atomics, clock_gettime, write and _exit.
extern "C" fn on_signal(signal: libc::c_int) {
    let now_ms = now_ms();
    let first_ms = SINCE_MS.compare_exchange(0, now_ms, Ordering::SeqCst, Ordering::SeqCst);
    if first_ms.is_ok() {
        RECEIVED.store(signal, Ordering::SeqCst);
    }
    if first_ms.is_err_and(|first_ms| now_ms.saturating_sub(first_ms) > AGAIN_MS) {
        // SAFETY: _exit may be called in a handler. Agents end by themselves when their input
        // closes.
        unsafe { libc::_exit(128 + signal) }
    }
    // SAFETY: the errno of the interrupted code is kept; write may be called in a handler, the byte
    // is a live static, and a closed descriptor causes at worst EBADF.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(Ordering::SeqCst), [1u8].as_ptr().cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// The time of the monotonic clock, in ms.
fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// The time in which a second signal is taken as the first one, in ms.
const AGAIN_MS: u64 = 200;

static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// When the first signal came, in ms; 0 before.
static SINCE_MS: AtomicU64 = AtomicU64::new(0);
static PIPE: AtomicI32 = AtomicI32::new(-1);
