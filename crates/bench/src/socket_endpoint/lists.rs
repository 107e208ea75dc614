//! Lists of datagrams that one system call sends or receives (sendmmsg(2), recvmmsg(2)).

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

/// Memory for datagrams of the same size, with the kernel's description of it.
pub(super) struct Datagrams {
    bytes: Box<[u8]>,
    room: usize,
    headers: Box<[libc::mmsghdr]>,
    _elements: Box<[libc::iovec]>,
}

// SAFETY: the pointers refer to boxes that the value owns, which do not move with it.
unsafe impl Send for Datagrams {}

impl Datagrams {
    /// Creates `count` datagrams with `room` bytes each.
    pub(super) fn new(count: usize, room: usize, fill: u8) -> Self {
        let mut bytes = vec![fill; count * room].into_boxed_slice();
        let element = |one: &mut [u8]| libc::iovec { iov_base: one.as_mut_ptr().cast(), iov_len: room };
        let mut elements: Box<[_]> = bytes.chunks_exact_mut(room).map(element).collect();
        let header = |element: &mut libc::iovec| {
            // SAFETY: all zeroes is a valid mmsghdr: no name, no elements, no control data.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = element;
            header.msg_hdr.msg_iovlen = 1;
            header
        };
        let headers = elements.iter_mut().map(header).collect();
        Self { bytes, room, headers, _elements: elements }
    }

    /// Returns the number of datagrams.
    pub(super) fn count(&self) -> usize {
        self.headers.len()
    }

    /// Returns the memory of one datagram.
    #[inline]
    pub(super) fn room_of(&mut self, index: usize) -> &mut [u8] {
        &mut self.bytes[index * self.room..(index + 1) * self.room]
    }

    /// Returns the memory of one datagram for reading.
    #[inline]
    pub(super) fn room(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.room..(index + 1) * self.room]
    }

    /// Returns the received bytes of one datagram.
    #[inline]
    pub(super) fn received(&self, index: usize) -> &[u8] {
        let length = self.headers[index].msg_len as usize;
        &self.bytes[index * self.room..][..length.min(self.room)]
    }

    /// Returns all bytes of adjacent datagrams.
    #[inline]
    pub(super) fn bytes_of(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range.start * self.room..range.end * self.room]
    }

    /// Sends some of the datagrams; returns how many were sent.
    #[inline]
    pub(super) fn send(&mut self, socket: &OwnedFd, range: Range<usize>, flags: i32) -> io::Result<usize> {
        let headers = &mut self.headers[range];
        // SAFETY: the headers are writable, and what they point to lives as long as this value.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Receives at least one datagram, and at most all; returns how many.
    #[inline]
    pub(super) fn receive(&mut self, socket: &OwnedFd, flags: i32) -> io::Result<usize> {
        let headers = &mut self.headers;
        // SAFETY: the headers are writable, and so is what they point to, which lives as long as
        // this value. No timeout is given.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                flags | libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}
