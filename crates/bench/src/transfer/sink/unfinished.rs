//! A file without its name, while it is received.

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

/// A file without its name: its directory by number, and what it is called meanwhile.
pub(super) struct Unfinished {
    pub(super) name: Box<OsStr>,
    file: OwnedFd,
    is_direct: bool,
    /// Whether its file system does not write past the page cache.
    pub(super) has_fallen_back: bool,
}

impl AsFd for Unfinished {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Unfinished {
    /// An open file of this name. As long as it is open, it is locked: others see that somebody
    /// works on it.
    ///
    /// # Errors
    /// What flock(2) says.
    pub(super) fn new(name: Box<OsStr>, file: OwnedFd) -> io::Result<Self> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // A file system without locks: who else works here is not seen.
            Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(Self { name, file, is_direct: false, has_fallen_back: false })
    }

    /// Gives it so many bytes: what is behind them goes, what is missing is a hole.
    ///
    /// # Errors
    /// What ftruncate(2) says.
    pub(super) fn cut(&self, bytes: u64) -> io::Result<()> {
        Ok(ftruncate(&self.file, bytes)?)
    }

    /// Has the file system take what was written, as far as it does when a file is closed: that of
    /// another host may say only then that there is no room.
    ///
    /// # Errors
    /// What close(2) says.
    pub(super) fn settle(&self) -> io::Result<()> {
        let copy = self.file.try_clone()?.into_raw_fd();
        // SAFETY: the descriptor is this function's own, and nobody closes it again.
        if unsafe { libc::close(copy) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Writes past the page cache from now on, or through it.
    ///
    /// # Errors
    /// What fcntl(2) says.
    pub(super) fn write_directly(&mut self, is_direct: bool) -> io::Result<()> {
        if self.is_direct != is_direct {
            let flags = fcntl_getfl(&self.file)?;
            fcntl_setfl(&self.file, if is_direct { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT })?;
            self.is_direct = is_direct;
        }
        Ok(())
    }

    /// Writes bytes that lie at a place of a block.
    ///
    /// # Errors
    /// What pwrite(2) says.
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
                // Not every file system takes every alignment.
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

/// Gives a file its permissions and its time.
pub(super) fn dress(file: impl AsFd, attributes: &Attributes) -> io::Result<()> {
    fchmod(&file, Mode::from_raw_mode(attributes.mode.into()))?;
    Ok(futimens(&file, &times(attributes))?)
}

/// The times of a file: that of its last change; that of the last access stays.
pub(super) fn times(attributes: &Attributes) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: Timespec { tv_sec: attributes.seconds, tv_nsec: attributes.nanoseconds.into() },
    }
}
