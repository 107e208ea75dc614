//! Datagrams that one system call sends or receives (sendmmsg(2), recvmmsg(2)).

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

/// Memory of datagrams, all of the same room, with what the kernel is told of it.
pub(super) struct Datagrams {
    bytes: Box<[u8]>,
    room: usize,
    headers: Box<[libc::mmsghdr]>,
    _elements: Box<[libc::iovec]>,
}

// SAFETY: the pointers are to the boxes that the value owns, which stay where they are when it
// moves.
unsafe impl Send for Datagrams {}

impl Datagrams {
    /// So many datagrams, each of so much room.
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

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.headers.len()
    }

    /// The room of one.
    #[inline]
    pub(super) fn room_of(&mut self, index: usize) -> &mut [u8] {
        &mut self.bytes[index * self.room..(index + 1) * self.room]
    }

    /// The same, to read.
    #[inline]
    pub(super) fn room(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.room..(index + 1) * self.room]
    }

    /// What came as one.
    #[inline]
    pub(super) fn received(&self, index: usize) -> &[u8] {
        let length = self.headers[index].msg_len as usize;
        &self.bytes[index * self.room..][..length.min(self.room)]
    }

    /// All bytes of some of them, which follow each other.
    #[inline]
    pub(super) fn bytes_of(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range.start * self.room..range.end * self.room]
    }

    /// Sends some of them; gives how many of those.
    #[inline]
    pub(super) fn send(&mut self, socket: &OwnedFd, range: Range<usize>, flags: i32) -> io::Result<usize> {
        let headers = &mut self.headers[range];
        // SAFETY: the headers are writable, and what they point to lives as long as this value.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Receives as many as there are, at least one; gives how many.
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
