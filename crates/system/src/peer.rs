//! The peer credentials of a Unix socket.

use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// The credentials of the peer of a connected Unix socket (`SO_PEERCRED`, unix(7)). The kernel
/// takes them from the process that called connect(2), listen(2) or socketpair(2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Peer {
    user: u32,
    /// The peer's process ID. `None` if this process's PID namespace does not show the peer: the
    /// kernel then reports 0, for which rustix has no value.
    pub process: Option<NonZeroU32>,
}

impl Peer {
    /// Reads the credentials from the kernel; the peer cannot forge them.
    ///
    /// # Errors
    /// `ENOTSOCK` if the descriptor is not a socket.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
        let to = (&raw mut found).cast();
        // SAFETY: `found` is all integers, and the kernel writes at most its size.
        let returned = unsafe {
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut bytes)
        };
        if returned != 0 {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        Ok(Self { user: found.uid, process: NonZeroU32::new(found.pid.cast_unsigned()) })
    }

    /// Whether the peer's effective user is that of this process.
    pub fn is_of_own_user(&self) -> bool {
        self.user == rustix::process::geteuid().as_raw()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_process_and_its_user_are_told() {
        let (own, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(own.as_fd()).unwrap();
        assert_eq!(peer.process.map(NonZeroU32::get), Some(std::process::id()));
        assert!(peer.is_of_own_user());
        let stranger = Peer { user: peer.user + 1, ..peer };
        assert!(!stranger.is_of_own_user());
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Peer::of(file.as_fd()), Err(Errno::NOTSOCK));
    }
}
