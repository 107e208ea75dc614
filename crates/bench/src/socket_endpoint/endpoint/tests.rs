//! Access of tests to an endpoint.

use std::os::fd::AsRawFd;

use super::SocketEndpoint;
use crate::Error;

impl SocketEndpoint {
    /// Returns how many bytes wake a receiver on the first lane.
    pub(crate) fn wakes_for(&self) -> usize {
        let mut bytes = 0i32;
        let mut length = size_of::<i32>() as libc::socklen_t;
        let socket = self.lanes[0].borrowed().as_raw_fd();
        // SAFETY: the number is writable and of that length.
        let got = unsafe {
            libc::getsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                (&raw mut bytes).cast(),
                &raw mut length,
            )
        };
        assert_eq!(got, 0);
        bytes as usize
    }

    /// Takes the messages of one lane only; returns how many.
    pub(crate) fn take_on(&mut self, lane: usize) -> Result<u64, Error> {
        let mut taken = 0;
        while self.fill(lane, false)? {
            while self.take(lane)?.is_some() {
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Returns the size of the first lane's send buffer.
    pub(crate) fn send_buffer_bytes(&self) -> usize {
        rustix::net::sockopt::socket_send_buffer_size(self.lanes[0].borrowed()).unwrap()
    }
}
