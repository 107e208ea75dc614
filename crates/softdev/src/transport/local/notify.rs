//! Telling a sleeper of a completion, through the pipe of a completion channel of this process or
//! of a peer.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::memory::arena::View;
use crate::memory::layout::SharedCq;
use crate::sys::limits::QP_INDEX_BITS;
use crate::transport::local::arming::{self, Pipe, give_back, is_armed, take};
use crate::transport::local::host::{Host, Peer};

/// Makes a pipe by which this process and its peers wake a sleeper. Returns its read end, its write
/// end and its inode. A write never blocks.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd, u64), Errno> {
    let (reading, writing) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&writing, true)?;
    let inode = rustix::fs::fstat(&writing)?.st_ino;
    Ok((reading, writing, inode))
}

/// A channel, and the queue whose events are written to it.
pub(crate) struct Events<'a> {
    pub(crate) pipe: BorrowedFd<'a>,
    pub(crate) view: &'a View,
    pub(crate) cq: &'a SharedCq,
}

impl Pipe for Events<'_> {
    type Error = Errno;

    fn write(&self) -> Result<bool, Errno> {
        match rustix::io::write(self.pipe, &self.cq.handle.load(Relaxed).to_ne_bytes()) {
            Err(Errno::AGAIN) => {
                self.view.header().owes.store(1, Relaxed);
                Ok(false)
            }
            written => written.map(|_| true),
        }
    }

    fn is_empty(&self) -> bool {
        rustix::io::ioctl_fionread(self.pipe).is_ok_and(|bytes| bytes == 0)
    }
}

/// Announces a completion in a queue of `view`'s process if the queue is armed. `peer` is `None`
/// for this process.
#[inline]
pub(crate) fn notify(host: &Host, view: &View, peer: Option<&Peer>, index: u32, solicited: bool) {
    if is_armed(&view.cq(index).armed) {
        announce(host, view, peer, index, solicited);
    }
}

#[cold]
fn announce(host: &Host, view: &View, peer: Option<&Peer>, index: u32, solicited: bool) {
    let cq = view.cq(index);
    let Some(asked) = take(&cq.armed, solicited) else { return };
    let fd = cq.channel_fd.load(Relaxed);
    let inode = cq.channel_inode.load(Relaxed);
    if fd < 0 {
        return;
    }
    let own;
    let peer = match peer {
        Some(peer) => peer,
        None => match host.peer_of(host.block << QP_INDEX_BITS) {
            Some(peer) => {
                own = peer;
                &own
            }
            None => return,
        },
    };
    let announced =
        host.through(peer, fd, inode, |pipe| arming::announce(&cq.owed, &Events { pipe, view, cq }));
    if !matches!(announced, Ok(Ok(()))) {
        // The peer or its channel is gone, or the system has no descriptor, not even the spare one.
        give_back(&cq.armed, asked);
    }
}
