//! A thread that receives everything that arrives, while its rank does something else: no adapter
//! receives the messages of a load.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};
use rustix::time::Timespec;

use super::lane::Lane;
use crate::Error;

/// How many bytes one call receives.
const AT_ONCE: usize = 256 << 10;
/// The time between checks whether the drain is over.
const LOOKS_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A drain, which runs until it is dropped.
pub(super) struct Drain {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    /// Starts to receive on these sockets.
    pub(super) fn start(lanes: &[Lane]) -> Result<Self, Error> {
        let failed = Error::system("receive the messages of loads");
        let sockets = lanes.iter().map(|lane| lane.borrowed().try_clone_to_owned());
        let sockets: Vec<OwnedFd> = sockets.collect::<Result<_, _>>().map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("drain".to_owned());
        let thread = thread.spawn(move || drain(sockets, &over)).map_err(failed)?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        // A panic of the thread has already been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn drain(mut sockets: Vec<OwnedFd>, is_over: &AtomicBool) {
    let mut bytes = vec![0; AT_ONCE];
    while !is_over.load(Relaxed) && !sockets.is_empty() {
        let mut ready: Vec<_> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        if poll(&mut ready, Some(&LOOKS_EVERY)).unwrap_or(0) == 0 {
            continue;
        }
        let has_some: Vec<bool> = ready.iter().map(|ready| !ready.revents().is_empty()).collect();
        let mut has_some = has_some.into_iter();
        // A peer that has closed its connection sends no more.
        sockets.retain(|socket| {
            let is_ready = has_some.next().unwrap_or(false);
            !is_ready || !matches!(recv(socket.as_fd(), &mut bytes[..], RecvFlags::DONTWAIT), Ok((0, _)))
        });
    }
}
