//! Child processes. `fork` copies all descriptors to the child, so the kernel would keep the
//! parent's names and links until the child ends, too.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::net::Shutdown;

/// The number of descriptors that can be noted, the same as for channels (`preload`).
const MOST: usize = 1 << 16;

/// The descriptors of all [`Private`] sockets, one bit each, so that a signal handler may read
/// them.
static NOTED: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];

/// The ID of the process that owns this memory; 0 until it has a manager.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether this process borrows the memory of its parent, as after `vfork`. It must not store
/// anything about its own descriptors.
pub fn is_memory_borrowed() -> bool {
    ![0, std::process::id()].contains(&OWNER.load(Relaxed))
}

/// Makes future children of this process close [`Private`] sockets.
pub(crate) fn watch() {
    static REGISTERED: Once = Once::new();
    OWNER.store(std::process::id(), Relaxed);
    REGISTERED.call_once(|| {
        // SAFETY: the handler does only what a signal handler may do. If there is no memory to
        // register it, children keep the sockets, as they do after `clone`.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
}

/// Runs first in a child of `fork`. `vfork` does not call it.
extern "C" fn forked() {
    OWNER.store(std::process::id(), Relaxed);
    for (word, noted) in NOTED.iter().enumerate() {
        let mut bits = noted.swap(0, Relaxed);
        while bits != 0 {
            let fd = word * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            // SAFETY: the descriptor is a copy of a private socket's: only the parent's manager
            // uses it, not this process. This is the raw system call, because the preload library
            // defines `close`.
            unsafe { libc::syscall(libc::SYS_close, fd) };
        }
    }
}

/// A socket that child processes close when they start, and that is closed when this is dropped.
pub(crate) struct Private(OwnedFd);

impl Private {
    fn note(fd: RawFd, is_private: bool) {
        let Some(word) = usize::try_from(fd).ok().and_then(|fd| NOTED.get(fd / 64)) else { return };
        let bit = 1 << (fd % 64);
        if is_private {
            word.fetch_or(bit, Relaxed)
        } else {
            word.fetch_and(!bit, Relaxed)
        };
    }
}

impl From<OwnedFd> for Private {
    fn from(socket: OwnedFd) -> Self {
        Self::note(socket.as_raw_fd(), true);
        Self(socket)
    }
}

impl AsFd for Private {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // A child may still have a copy, after `clone`: shut the socket down for peers, too.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
        // Before the descriptor is closed: its number may be reused afterwards.
        Self::note(self.0.as_raw_fd(), false);
    }
}

/// A test that starts a child locks this for writing. A test that needs its sockets to be the only
/// copies locks it for reading, because a new child has copies of all sockets for a moment.
#[cfg(test)]
pub(super) static CHILDREN: std::sync::RwLock<()> = std::sync::RwLock::new(());

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::fcntl_dupfd_cloexec;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

    use std::sync::PoisonError;

    use super::*;

    fn pair() -> (Private, OwnedFd) {
        let kind = SocketType::SEQPACKET;
        let (own, peer) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        (Private::from(own), peer)
    }

    fn has_ended(peer: &OwnedFd) -> bool {
        let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(peer, PollFlags::IN)], Some(&limit)).unwrap();
        ready == 1 && recv(peer, &mut [0; 1][..], RecvFlags::DONTWAIT).unwrap().1 == 0
    }

    #[test]
    fn a_private_socket_ends_although_there_is_a_copy() {
        let (own, peer) = pair();
        let _copy = fcntl_dupfd_cloexec(&own, 0).unwrap();
        drop(own);
        assert!(has_ended(&peer));
    }

    #[test]
    fn a_child_has_no_private_socket() {
        let _alone = CHILDREN.write().unwrap_or_else(PoisonError::into_inner);
        watch();
        let (own, peer) = pair();
        let fd = own.as_fd().as_raw_fd();
        // SAFETY: the child calls only functions that a signal handler may call.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_open = rustix::io::fcntl_getfd(&own).is_ok();
            let code = i32::from(is_open) + 2 * i32::from(is_memory_borrowed());
            // SAFETY: the child ends here, without running anything of the test.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the child is this process's, and `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child has closed descriptor {fd} and owns its memory");
        assert!(rustix::io::fcntl_getfd(&own).is_ok(), "the parent's is open");
        assert!(!is_memory_borrowed());
        drop(own);
        assert!(has_ended(&peer));
    }

    extern "C" fn child(_: *mut c_void) -> i32 {
        i32::from(is_memory_borrowed())
    }

    #[test]
    fn a_child_of_vfork_borrows_the_memory() {
        let _alone = CHILDREN.write().unwrap_or_else(PoisonError::into_inner);
        watch();
        let mut stack = vec![0_u128; 1 << 12];
        let top = stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack is large enough and is there until the child has ended, which this
        // thread waits for (`CLONE_VFORK`).
        let child = unsafe { libc::clone(child, top.cast(), flags, std::ptr::null_mut()) };
        let mut status = 0;
        // SAFETY: the child is this process's, and `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1);
        assert!(!is_memory_borrowed());
    }
}
