//! Sending without a copy (`MSG_ZEROCOPY`; Documentation/networking/msg_zerocopy.rst of Linux).
//!
//! The kernel refers to a message in place until it reports on the socket's error queue that it no
//! longer does, so each message under way has a separate slot. The kernel also reports if it copies
//! after all, as it does within a host.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};

use crate::endpoint::FILL;

/// The bytes of all messages that may be under way: about the buffers of both ranks.
const BYTES: usize = 8 << 20;
/// The fewest and the most messages: the kernel keeps a note for each message
/// (`net.core.optmem_max`).
const MESSAGES: std::ops::RangeInclusive<usize> = 2..=128;
/// The values of linux/errqueue.h.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Messages that are lent to the kernel.
pub(super) struct ZeroCopyBuffers {
    /// For each slot, the number of calls when the last call referred to it.
    until: Vec<u64>,
    /// The slot of the message being sent, and whether sending has begun.
    turn: usize,
    is_begun: bool,
    /// The calls that the kernel took, and how many of them are done without a gap.
    calls: u64,
    done: u64,
    /// Ranges of calls that are done before earlier ones: the first, and how many.
    early: Vec<(u64, u64)>,
    /// The calls whose bytes the kernel copied after all.
    copied: u64,
    /// Whether nothing more can be sent before some calls are done.
    pub(super) is_out: bool,
}

impl ZeroCopyBuffers {
    /// Creates slots for messages of a size, and their memory.
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

    /// Returns the slot of the message being sent.
    #[inline]
    pub(super) fn turn(&self) -> usize {
        self.turn
    }

    /// Moves to the slot of the next message; returns `false` if that is still lent.
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

    /// Notes a call that took a part of the message.
    #[inline]
    pub(super) fn took(&mut self) {
        self.calls += 1;
        self.until[self.turn] = self.calls;
        self.is_begun = true;
    }

    /// Handles a kernel that has no room for another note.
    pub(super) fn is_refused(&mut self, socket: &OwnedFd, waits: bool) -> io::Result<()> {
        let before = self.done;
        self.collect(socket)?;
        if self.done == before && waits {
            self.wait(socket)?;
        }
        self.is_out = self.done == before && self.calls > self.done;
        Ok(())
    }

    /// Returns whether all lent memory is returned.
    pub(super) fn is_back(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        if self.calls > self.done {
            self.collect(socket)?;
        }
        self.is_out = self.calls > self.done;
        Ok(!self.is_out)
    }

    /// Returns how many calls were made, and how many were copied after all, as far as is known.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.calls, self.copied)
    }

    /// Waits until the kernel reports something, or a signal comes.
    fn wait(&mut self, socket: &OwnedFd) -> io::Result<()> {
        // The error queue is reported without being requested.
        let _ = poll(&mut [PollFd::new(socket, PollFlags::empty())], None);
        self.collect(socket)
    }

    /// Reads all notes of the kernel.
    fn collect(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while let Some(note) = note(socket)? {
            // The kernel's numbers wrap, `done` does not.
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

/// Memory for the control data of a note, with the required alignment.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Returns the next note of a finished call on a socket's error queue.
fn note(socket: &OwnedFd) -> io::Result<Option<libc::sock_extended_err>> {
    loop {
        let mut control = Control([0; 128]);
        // SAFETY: all zeroes is a valid header.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the header is writable and contains the length of its memory.
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
        // SAFETY: if the pointer is not null, the kernel has written the whole structure.
        let Some(about) = (unsafe { first.as_ref() }) else { continue };
        let is_error = matches!(
            (about.cmsg_level, about.cmsg_type),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        );
        if !is_error {
            continue;
        }
        // SAFETY: this structure follows the head of such a message, aligned or not.
        let error = unsafe { libc::CMSG_DATA(first).cast::<libc::sock_extended_err>().read_unaligned() };
        if error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY {
            return Ok(Some(error));
        }
    }
}
