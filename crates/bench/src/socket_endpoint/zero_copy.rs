//! Sending without a copy (`MSG_ZEROCOPY`; Documentation/networking/msg_zerocopy.rst of Linux).
//!
//! The kernel refers to a message where it is, until it says on the socket's error queue that it
//! does not any more: so each of those under way has a place of its own. Where it copies all the
//! same, as it does within a host, it says that, too.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};

use crate::endpoint::FILL;

/// Bytes of all messages that may be under way, about what the buffers of both ends hold.
const BYTES: usize = 8 << 20;
/// Fewest and most of them: of many small ones, the kernel keeps a note of each
/// (`net.core.optmem_max`).
const MESSAGES: std::ops::RangeInclusive<usize> = 2..=128;
/// As in linux/errqueue.h.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Messages that are lent to the kernel.
pub(super) struct ZeroCopyBuffers {
    /// For each place, how many calls there were when the last one was made that referred to it.
    until: Vec<u64>,
    /// The place of the message that is sent, and whether that has begun.
    turn: usize,
    is_begun: bool,
    /// Calls that the kernel took, and those of which all before are done.
    calls: u64,
    done: u64,
    /// Ranges of calls that are done before others are: from, and how many.
    early: Vec<(u64, u64)>,
    /// Calls whose bytes the kernel has copied all the same.
    copied: u64,
    /// Whether nothing more can be sent before some are done.
    pub(super) is_out: bool,
}

impl ZeroCopyBuffers {
    /// Places for messages of a size, and what is in them.
    pub(super) fn new(size: usize) -> (Self, Vec<u8>) {
        let count = (BYTES / size.max(1)).clamp(*MESSAGES.start(), *MESSAGES.end());
        let buffers = Self {
            until: vec![0; count],
            turn: 0,
            is_begun: false,
            calls: 0,
            done: 0,
            early: Vec::with_capacity(count),
            copied: 0,
            is_out: false,
        };
        (buffers, vec![FILL; count * size])
    }

    /// The place of the message that is sent.
    #[inline]
    pub(super) fn turn(&self) -> usize {
        self.turn
    }

    /// Goes on to the place of the next message; `false` if that is still lent.
    pub(super) fn next(&mut self, socket: &OwnedFd, waits: bool) -> io::Result<bool> {
        if self.is_begun {
            self.turn = (self.turn + 1) % self.until.len();
            self.is_begun = false;
        }
        if self.until[self.turn] > self.done {
            self.collect(socket)?;
        }
        if self.until[self.turn] > self.done && waits {
            self.wait(socket)?;
        }
        self.is_out = self.until[self.turn] > self.done;
        Ok(!self.is_out)
    }

    /// A call that took some of the message.
    #[inline]
    pub(super) fn took(&mut self) {
        self.calls += 1;
        self.until[self.turn] = self.calls;
        self.is_begun = true;
    }

    /// The kernel has no room for another note.
    pub(super) fn is_refused(&mut self, socket: &OwnedFd, waits: bool) -> io::Result<()> {
        let before = self.done;
        self.collect(socket)?;
        if self.done == before && waits {
            self.wait(socket)?;
        }
        self.is_out = self.done == before && self.calls > self.done;
        Ok(())
    }

    /// Whether all is done that was lent.
    pub(super) fn is_back(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        if self.calls > self.done {
            self.collect(socket)?;
        }
        self.is_out = self.calls > self.done;
        Ok(!self.is_out)
    }

    /// Calls that were made, and those whose bytes were copied all the same, as far as is known.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.calls, self.copied)
    }

    /// Waits until the kernel says something, or a signal comes.
    fn wait(&mut self, socket: &OwnedFd) -> io::Result<()> {
        // What is on the error queue is told without being asked for.
        let _ = poll(&mut [PollFd::new(socket, PollFlags::empty())], None);
        self.collect(socket)
    }

    /// Takes note of all that the kernel has said.
    fn collect(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while let Some(note) = note(socket)? {
            // Its numbers wrap, ours do not.
            let from = self.done + u64::from(note.ee_info.wrapping_sub(self.done as u32));
            let count = u64::from(note.ee_data.wrapping_sub(note.ee_info)) + 1;
            if note.ee_code == SO_EE_CODE_ZEROCOPY_COPIED {
                self.copied += count;
            }
            self.early.push((from, count));
            while let Some(next) = self.early.iter().position(|(from, _)| *from == self.done) {
                self.done += self.early.swap_remove(next).1;
            }
        }
        Ok(())
    }
}

/// Memory for what comes with a note, aligned as that must be.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// The next note of a call's end on a socket's error queue.
fn note(socket: &OwnedFd) -> io::Result<Option<libc::sock_extended_err>> {
    loop {
        let mut control = Control([0; 128]);
        // SAFETY: all zeroes is a valid header.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the header is writable and says how long its memory is.
        if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) } < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                io::ErrorKind::Interrupted => continue,
                _ => Err(error),
            };
        }
        // SAFETY: the kernel has filled the header in.
        let first = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
        // SAFETY: where it is one, the kernel has written all of it.
        let Some(about) = (unsafe { first.as_ref() }) else { continue };
        let is_error = matches!(
            (about.cmsg_level, about.cmsg_type),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        );
        if !is_error {
            continue;
        }
        // SAFETY: what follows the head of such a message is one of these, aligned or not.
        let error = unsafe { libc::CMSG_DATA(first).cast::<libc::sock_extended_err>().read_unaligned() };
        if error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY {
            return Ok(Some(error));
        }
    }
}
