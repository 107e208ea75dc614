//! A socket of an endpoint, of either type.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::datagram::Datagram;
use super::stop_and_wait::StopAndWait;
use super::stream::Stream;
use super::zero_copy::ZeroCopyBuffers;
use crate::endpoint::Mark;
use crate::endpoint::header::Header;

/// One socket.
pub(super) enum Lane {
    Datagram(Box<Datagram>),
    Stream(Stream),
}

/// Does the same with a socket of either type.
macro_rules! either {
    ($lane:expr, $one:ident => $done:expr) => {
        match $lane {
            Lane::Datagram($one) => $done,
            Lane::Stream($one) => $done,
        }
    };
}

impl Lane {
    /// Posts a message; `false` if there is no room for it.
    #[inline(always)]
    pub(super) fn send(&mut self, mark: Mark, waits: bool) -> io::Result<bool> {
        either!(self, one => one.send(mark, waits))
    }

    /// Posts a message that is not measured; `false` if there is no room for it.
    pub(super) fn greet(&mut self, number: Option<u32>, waits: bool) -> io::Result<bool> {
        either!(self, one => one.greet(number, waits))
    }

    /// The message that is sent next. Of one that is sent in part only it is that one.
    #[inline(always)]
    pub(super) fn next_message(&mut self) -> &mut [u8] {
        either!(self, one => one.next_message())
    }

    /// The message that was taken last; empty before the first.
    #[inline(always)]
    pub(super) fn taken_message(&self) -> &[u8] {
        either!(self, one => one.taken_message())
    }

    /// Sends what is left of what was posted, if anything is; whether that is all.
    #[inline(always)]
    pub(super) fn finish(&mut self, waits: bool) -> io::Result<bool> {
        either!(self, one => one.finish(waits))
    }

    /// The same with what waits for a list to be full, and until what was lent is back.
    pub(super) fn flush(&mut self, waits: bool) -> io::Result<bool> {
        either!(self, one => one.flush(waits))
    }

    /// Whether a message, or a list of them, is sent in part only.
    #[inline(always)]
    pub(super) fn has_rest(&self) -> bool {
        either!(self, one => one.is_unfinished())
    }

    /// What it has lent to the kernel instead of having it copied, if it does that.
    pub(super) fn zero_copy(&self) -> Option<&ZeroCopyBuffers> {
        match self {
            Self::Datagram(_) => None,
            Self::Stream(stream) => stream.zero_copy.as_deref(),
        }
    }

    /// Whether it waits for what it has lent, and not for room.
    pub(super) fn awaits_lent(&self) -> bool {
        self.zero_copy().is_some_and(|buffers| buffers.is_out)
    }

    /// Where messages alternate over what may lose them, how far it is.
    pub(super) fn stop_and_wait(&self) -> Option<&StopAndWait> {
        match self {
            Self::Datagram(datagram) => datagram.stop_and_wait.as_ref(),
            Self::Stream(_) => None,
        }
    }

    /// Receives what has come, or where it waits, what will come; `false` if that is nothing.
    #[inline(always)]
    pub(super) fn fill(&mut self, waits: bool) -> io::Result<bool> {
        either!(self, one => one.fill(waits))
    }

    /// Takes the next message of what was received.
    #[inline(always)]
    pub(super) fn take(&mut self) -> io::Result<Option<Header>> {
        match self {
            Self::Datagram(datagram) => datagram.take(),
            Self::Stream(stream) => Ok(stream.take()),
        }
    }

    /// Bytes of a stream, or datagrams, that have come.
    pub(super) fn received(&self) -> u64 {
        either!(self, one => one.received)
    }

    /// Counts what comes twice or late from here on.
    pub(super) fn recount(&mut self) {
        if let Self::Datagram(datagram) = self {
            datagram.track.recount();
        }
    }

    /// Bytes that the kernel has taken.
    pub(super) fn written(&self) -> u64 {
        match self {
            Self::Datagram(datagram) => datagram.posted() * datagram.mode.size as u64,
            Self::Stream(stream) => stream.written,
        }
    }

    /// Messages that the kernel has taken whole.
    pub(super) fn posted(&self) -> u64 {
        either!(self, one => one.posted())
    }

    /// Bytes that the peer's kernel has acknowledged, or of datagrams that have left the socket, of
    /// those that were posted.
    pub(super) fn acknowledged(&self) -> io::Result<u64> {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the descriptor is open and the number writable (tcp(7), unix(7)).
        if unsafe { libc::ioctl(self.descriptor(), libc::TIOCOUTQ, &raw mut waiting) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(self.written().saturating_sub(u64::try_from(waiting).unwrap_or(0)))
    }

    /// What its kernel says of segments that it sent again, in words; empty where it says nothing
    /// (`TCP_INFO`, tcp(7)).
    pub(super) fn retransmitted(&self) -> String {
        // SAFETY: all zeroes is a valid tcp_info.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the structure is writable and of that length.
        let got = unsafe {
            libc::getsockopt(
                self.descriptor(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        if got != 0 || !matches!(self, Self::Stream(_)) || info.tcpi_unacked == 0 {
            return String::new();
        }
        format!(
            " ({} segments are not acknowledged, and were sent again {} times)",
            info.tcpi_unacked, info.tcpi_retransmits
        )
    }

    /// Its descriptor's number.
    pub(super) fn descriptor(&self) -> i32 {
        self.borrowed().as_raw_fd()
    }

    /// Its descriptor.
    pub(super) fn borrowed(&self) -> BorrowedFd<'_> {
        either!(self, one => one.socket.as_fd())
    }
}
