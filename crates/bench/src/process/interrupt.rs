//! SIGINT and SIGTERM of the coordinator: the run ends cleanly, agents killed and finished points
//! on disk.
//!
//! The handler writes a byte to a pipe that every wait watches, so an interrupted wait ends at once
//! and nobody wakes up to look at a flag while a point is measured. A second signal ends the
//! process on the spot.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::{Error, signal};

/// Sets how this process takes the signals that say something else than "end", whatever it has
/// inherited.
///
/// Where SIGCHLD is ignored, the kernel reaps children by itself: how they ended is then unknown,
/// and their numbers soon belong to other processes. Where SIGXFSZ is ignored, a file that reaches
/// the limit of its size is an error with a sentence and not a death; agents inherit that.
///
/// # Errors
///
/// If the system refuses.
pub fn take_inherited_signals() -> io::Result<()> {
    signal::install(libc::SIGCHLD, &signal::action(libc::SIG_DFL, 0))?;
    signal::install(libc::SIGXFSZ, &signal::action(libc::SIG_IGN, 0))?;
    Ok(())
}

/// The handlers, installed as long as it lives. One at a time.
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
        PIPE.store(write.as_raw_fd(), Ordering::SeqCst);
        let mut interrupt = Self { read, _write: write, previous: Vec::new() };
        let ours = signal::action(on_signal as extern "C" fn(libc::c_int) as usize, libc::SA_RESTART);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            interrupt.previous.push((signal, signal::install(signal, &ours)?));
        }
        Ok(interrupt)
    }

    /// The signal that has arrived, in words.
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
            // Nothing can be done about a failure here, and none is possible for a handler that was
            // installed.
            let _ = signal::install(*signal, previous);
        }
        PIPE.store(-1, Ordering::SeqCst);
    }
}

/// Only async-signal-safe calls: atomics, write and _exit.
extern "C" fn on_signal(signal: libc::c_int) {
    if RECEIVED.swap(signal, Ordering::SeqCst) != 0 {
        // SAFETY: _exit may be called in a handler. Agents end by themselves when their input
        // closes.
        unsafe { libc::_exit(128 + signal) }
    }
    // SAFETY: the errno of the interrupted code is kept; write may be called in a handler, the byte
    // is a live static, and the worst that a closed descriptor does is EBADF.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(Ordering::SeqCst), [1u8].as_ptr().cast(), 1);
        *libc::__errno_location() = errno;
    }
}

static RECEIVED: AtomicI32 = AtomicI32::new(0);
static PIPE: AtomicI32 = AtomicI32::new(-1);
