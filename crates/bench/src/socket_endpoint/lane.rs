//! A socket of an endpoint, of either type.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::datagram::Datagram;
use super::stream::Stream;
use super::zero_copy::ZeroCopyBuffers;
use crate::endpoint::Mark;
use crate::endpoint::header::Header;

/// One socket.
pub(super) enum Lane {
    Datagram(Box<Datagram>),
    Stream {
        stream: Stream,
        /// Number of the next message.
        next: u32,
    },
}

impl Lane {
    /// Posts a message; `false` if there is no room for it.
    #[inline(always)]
    pub(super) fn send(&mut self, mark: Mark, waits: bool) -> io::Result<bool> {
        match self {
            Self::Datagram(datagram) => datagram.send(mark, waits),
            Self::Stream { stream, next } => {
                if !stream.finish(waits)? || !stream.send(Header::of(mark, *next), waits)? {
                    return Ok(false);
                }
                *next = next.wrapping_add(1);
                Ok(true)
            }
        }
    }

    /// Posts a message that is not measured; `false` if there is no room for it.
    pub(super) fn greet(&mut self, number: Option<u32>, waits: bool) -> io::Result<bool> {
        match self {
            Self::Datagram(datagram) => datagram.greet(number, waits),
            Self::Stream { stream, .. } => {
                Ok(stream.finish(waits)?
                    && stream.send(Header::greeting(number.unwrap_or_default()), waits)?)
            }
        }
    }

    /// The message that is sent next. Of one that is sent in part only it is that one.
    #[inline(always)]
    pub(super) fn next_message(&mut self) -> &mut [u8] {
        match self {
            Self::Datagram(datagram) => datagram.next_message(),
            Self::Stream { stream, .. } => stream.next_message(),
        }
    }

    /// The message that was taken last; empty before the first.
    #[inline(always)]
    pub(super) fn taken_message(&self) -> &[u8] {
        match self {
            Self::Datagram(datagram) => datagram.taken_message(),
            Self::Stream { stream, .. } => stream.taken_message(),
        }
    }

    /// Sends what is left of what was posted, if anything is; whether that is all.
    #[inline(always)]
    pub(super) fn finish(&mut self, waits: bool) -> io::Result<bool> {
        match self {
            Self::Datagram(datagram) => datagram.finish(waits),
            Self::Stream { stream, .. } => stream.finish(waits),
        }
    }

    /// The same with what waits for a list to be full.
    pub(super) fn flush(&mut self, waits: bool) -> io::Result<bool> {
        match self {
            Self::Datagram(datagram) if datagram.is_gathering() => datagram.flush(waits),
            Self::Stream { stream, .. } => stream.flush(waits),
            other => other.finish(waits),
        }
    }

    /// Whether a message, or a list of them, is sent in part only.
    #[inline(always)]
    pub(super) fn has_rest(&self) -> bool {
        match self {
            Self::Datagram(datagram) => datagram.is_unfinished(),
            Self::Stream { stream, .. } => stream.is_unfinished(),
        }
    }

    /// What it has lent to the kernel instead of having it copied, if it does that.
    pub(super) fn zero_copy(&self) -> Option<&ZeroCopyBuffers> {
        match self {
            Self::Datagram(_) => None,
            Self::Stream { stream, .. } => stream.zero_copy(),
        }
    }

    /// Whether it waits for what it has lent, and not for room.
    pub(super) fn awaits_lent(&self) -> bool {
        self.zero_copy().is_some_and(|buffers| buffers.is_out)
    }

    /// Receives what has come, or where it waits, what will come; `false` if that is nothing.
    #[inline(always)]
    pub(super) fn fill(&mut self, waits: bool) -> io::Result<bool> {
        match self {
            Self::Datagram(datagram) => datagram.fill(waits),
            Self::Stream { stream, .. } => stream.fill(waits),
        }
    }

    /// Takes the next message of what was received.
    #[inline(always)]
    pub(super) fn take(&mut self) -> io::Result<Option<Header>> {
        match self {
            Self::Datagram(datagram) => datagram.take(),
            Self::Stream { stream, .. } => Ok(stream.take()),
        }
    }

    /// Bytes of a stream, or datagrams, that have come.
    pub(super) fn received(&self) -> u64 {
        match self {
            Self::Datagram(datagram) => datagram.received(),
            Self::Stream { stream, .. } => stream.received(),
        }
    }

    /// Counts what comes twice or late from here on.
    pub(super) fn recount(&mut self) {
        if let Self::Datagram(datagram) = self {
            datagram.track.recount();
        }
    }

    /// Bytes of a stream that the kernel has taken; datagrams go whole.
    pub(super) fn written(&self) -> u64 {
        match self {
            Self::Datagram(_) => 0,
            Self::Stream { stream, .. } => stream.written(),
        }
    }

    /// Messages that the kernel has taken whole.
    pub(super) fn posted(&self) -> u64 {
        match self {
            Self::Datagram(datagram) => u64::from(datagram.posted()),
            Self::Stream { stream, next } => u64::from(*next) - u64::from(stream.is_unfinished()),
        }
    }

    /// Bytes that the peer's kernel has acknowledged, or of datagrams that have left the socket, of those that were posted.
    pub(super) fn acknowledged(&self) -> io::Result<u64> {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the descriptor is open and the number writable (tcp(7), unix(7)).
        if unsafe { libc::ioctl(self.descriptor(), libc::TIOCOUTQ, &raw mut waiting) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let written = match self {
            Self::Datagram(datagram) => u64::from(datagram.posted()) * datagram.size(),
            Self::Stream { stream, .. } => stream.written(),
        };
        Ok(written.saturating_sub(u64::try_from(waiting).unwrap_or(0)))
    }

    /// What its kernel says of segments that it sent again, in words; empty where it says nothing (`TCP_INFO`, tcp(7)).
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
        if got != 0 || !matches!(self, Self::Stream { .. }) || info.tcpi_unacked == 0 {
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
        match self {
            Self::Datagram(datagram) => datagram.socket.as_fd(),
            Self::Stream { stream, .. } => stream.socket.as_fd(),
        }
    }
}
