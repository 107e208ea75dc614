//! An unfinished file: a file under a temporary name while it is received.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    FlockOperation, Mode, OFlags, Timespec, Timestamps, fchmod, fcntl_getfl, fcntl_setfl, flock, ftruncate,
    futimens,
};
use rustix::io::Errno;

use crate::transfer::block::Block;
use crate::transfer::record::Attributes;

/// An unfinished file and its temporary name.
pub(super) struct Unfinished {
    pub(super) name: Box<OsStr>,
    file: OwnedFd,
    is_direct: bool,
    /// Whether its file system does not support O_DIRECT.
    pub(super) has_fallen_back: bool,
}

impl AsFd for Unfinished {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Unfinished {
    /// Takes an open file of this name, and locks it as long as it is open: other processes then
    /// see that it is in use.
    ///
    /// # Errors
    /// The errors of flock(2).
    pub(super) fn new(name: Box<OsStr>, file: OwnedFd) -> io::Result<Self> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // On a file system without locks, other transfers are not noticed.
            Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(Self { name, file, is_direct: false, has_fallen_back: false })
    }

    /// Sets the length of the file: bytes beyond it are removed, missing bytes become a hole.
    ///
    /// # Errors
    /// The errors of ftruncate(2).
    pub(super) fn cut(&self, bytes: u64) -> io::Result<()> {
        Ok(ftruncate(&self.file, bytes)?)
    }

    /// Closes a copy of the descriptor, so that the file system reports errors of earlier writes: a
    /// network file system may report only then that the disk is full.
    ///
    /// # Errors
    /// The errors of close(2).
    pub(super) fn settle(&self) -> io::Result<()> {
        let copy = self.file.try_clone()?.into_raw_fd();
        // SAFETY: this function owns the descriptor and closes it only once.
        if unsafe { libc::close(copy) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Switches O_DIRECT on or off for the following writes.
    ///
    /// # Errors
    /// The errors of fcntl(2).
    pub(super) fn write_directly(&mut self, is_direct: bool) -> io::Result<()> {
        if self.is_direct != is_direct {
            let flags = fcntl_getfl(&self.file)?;
            fcntl_setfl(&self.file, if is_direct { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT })?;
            self.is_direct = is_direct;
        }
        Ok(())
    }

    /// Writes bytes at an offset of a block.
    ///
    /// # Errors
    /// The errors of pwrite(2).
    pub(super) fn write(
        &mut self,
        block: &dyn Block,
        at: usize,
        bytes: usize,
        offset: u64,
    ) -> io::Result<()> {
        let mut written = 0;
        while written < bytes {
            let left = bytes - written;
            match block.write_file(at + written, left, self.file.as_fd(), offset + written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                // Some file systems require a larger alignment.
                Err(error) if self.is_direct && error.raw_os_error() == Some(libc::EINVAL) => {
                    self.has_fallen_back = true;
                    self.write_directly(false)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Sets the permissions and the time of a file.
pub(super) fn dress(file: impl AsFd, attributes: &Attributes) -> io::Result<()> {
    fchmod(&file, Mode::from_raw_mode(attributes.mode.into()))?;
    Ok(futimens(&file, &times(attributes))?)
}

/// Returns the times to set: that of the last modification. The time of the last access stays.
pub(super) fn times(attributes: &Attributes) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: attributes.seconds, tv_nsec: attributes.nanoseconds.into() },
    }
}
