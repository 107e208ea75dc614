//! A socket of an endpoint, for byte streams or datagrams.

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

/// Runs the same expression on a socket of either type.
macro_rules! either {
    ($lane:expr, $one:ident => $done:expr) => {
        match $lane {
            Lane::Datagram($one) => $done,
            Lane::Stream($one) => $done,
        }
    };
}

impl Lane {
    /// Posts a message; returns `false` if there is no room.
    #[inline(always)]
    pub(super) fn send(&mut self, mark: Mark, waits: bool) -> io::Result<bool> {
        either!(self, one => one.send(mark, waits))
    }

    /// Posts a message that is not measured; returns `false` if there is no room.
    pub(super) fn greet(&mut self, number: Option<u32>, waits: bool) -> io::Result<bool> {
        either!(self, one => one.greet(number, waits))
    }

    /// Returns the next message to send, or the message that is partly sent.
    #[inline(always)]
    pub(super) fn next_message(&mut self) -> &mut [u8] {
        either!(self, one => one.next_message())
    }

    /// Returns the message that was taken last; it is empty before the first.
    #[inline(always)]
    pub(super) fn taken_message(&self) -> &[u8] {
        either!(self, one => one.taken_message())
    }

    /// Sends the rest of posted messages, if any; returns whether everything is sent.
    #[inline(always)]
    pub(super) fn finish(&mut self, waits: bool) -> io::Result<bool> {
        either!(self, one => one.finish(waits))
    }

    /// Also sends a list that is not full, and waits until lent memory is returned.
    pub(super) fn flush(&mut self, waits: bool) -> io::Result<bool> {
        either!(self, one => one.flush(waits))
    }

    /// Returns whether a message, or a list of messages, is only partly sent.
    #[inline(always)]
    pub(super) fn has_rest(&self) -> bool {
        either!(self, one => one.is_unfinished())
    }

    /// Returns the memory that it lends to the kernel, if it sends without a copy.
    pub(super) fn zero_copy(&self) -> Option<&ZeroCopyBuffers> {
        match self {
            Self::Datagram(_) => None,
            Self::Stream(stream) => stream.zero_copy.as_deref(),
        }
    }

    /// Returns whether it waits for lent memory, and not for room.
    pub(super) fn awaits_lent(&self) -> bool {
        self.zero_copy().is_some_and(|buffers| buffers.is_out)
    }

    /// Returns the state of alternating messages on a lossy lane.
    pub(super) fn stop_and_wait(&self) -> Option<&StopAndWait> {
        match self {
            Self::Datagram(datagram) => datagram.stop_and_wait.as_ref(),
            Self::Stream(_) => None,
        }
    }

    /// Receives what has arrived; with `waits`, waits for something to arrive. Returns `false` if
    /// nothing was received.
    #[inline(always)]
    pub(super) fn fill(&mut self, waits: bool) -> io::Result<bool> {
        either!(self, one => one.fill(waits))
    }

    /// Takes the next of the received messages.
    #[inline(always)]
    pub(super) fn take(&mut self) -> io::Result<Option<Header>> {
        match self {
            Self::Datagram(datagram) => datagram.take(),
            Self::Stream(stream) => Ok(stream.take()),
        }
    }

    /// Returns how many bytes of a byte stream, or how many datagrams, were received.
    pub(super) fn received(&self) -> u64 {
        either!(self, one => one.received)
    }

    /// Restarts the counts of duplicate and reordered messages.
    pub(super) fn recount(&mut self) {
        if let Self::Datagram(datagram) = self {
            datagram.track.recount();
        }
    }

    /// Returns how many bytes the kernel has taken.
    pub(super) fn written(&self) -> u64 {
        match self {
            Self::Datagram(datagram) => datagram.posted() * datagram.mode.size as u64,
            Self::Stream(stream) => stream.written,
        }
    }

    /// Returns how many messages the kernel has taken completely.
    pub(super) fn posted(&self) -> u64 {
        either!(self, one => one.posted())
    }

    /// Returns how many of the posted bytes the peer's kernel has acknowledged; of datagrams, how
    /// many have left the socket.
    pub(super) fn acknowledged(&self) -> io::Result<u64> {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the descriptor is open and the number writable (tcp(7), unix(7)).
        if unsafe { libc::ioctl(self.descriptor(), libc::TIOCOUTQ, &raw mut waiting) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(self.written().saturating_sub(u64::try_from(waiting).unwrap_or(0)))
    }

    /// Describes retransmitted segments as the kernel counts them (`TCP_INFO`, tcp(7)); empty if
    /// there are none.
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
            " ({} segments are not acknowledged and were retransmitted {} times)",
            info.tcpi_unacked, info.tcpi_retransmits
        )
    }

    /// Returns the number of its descriptor.
    pub(super) fn descriptor(&self) -> i32 {
        self.borrowed().as_raw_fd()
    }

    /// Returns its descriptor.
    pub(super) fn borrowed(&self) -> BorrowedFd<'_> {
        either!(self, one => one.socket.as_fd())
    }
}
