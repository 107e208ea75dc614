//! A file that is sent: its attributes, the ranges of its data, and whether it changes while it is
//! read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, fcntl_getfl, fcntl_setfl, fstat, openat, seek};
use rustix::io::Errno;

use crate::transfer::digest::{CHUNK_BYTES, DIGEST_BYTES, chunk_digest, contents_digest};
use crate::transfer::name::Name;
use crate::transfer::record::{Attributes, MODE_MASK};

/// The contents of a file to send.
pub(super) enum Contents<'a> {
    File(&'a Opened),
    /// The bytes that happen to be in the blocks.
    Memory {
        bytes: u64,
    },
}

/// An open file.
pub(in crate::transfer) struct Opened {
    file: OwnedFd,
    pub(super) attributes: Attributes,
    /// The size when it was opened, in bytes.
    pub(super) size: u64,
    /// Whether it may have holes.
    pub(super) is_sparse: bool,
    /// Whether it is read with O_DIRECT, if the file system supports that.
    pub(super) is_direct: bool,
}

impl Opened {
    /// Opens a regular file in a directory.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a regular file.
    pub(in crate::transfer) fn new(
        directory: BorrowedFd<'_>,
        name: &Name,
        is_direct: bool,
    ) -> io::Result<Self> {
        // Without O_NONBLOCK, a pipe that has replaced the file would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name.os(), flags, Mode::empty()).map_err(|errno| match errno {
            Errno::LOOP => io::Error::other("it was replaced by a symbolic link"),
            other => other.into(),
        })?;
        let found = fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it was replaced by something that is not a regular file"));
        }
        let size = found.st_size.cast_unsigned();
        let is_sparse = found.st_blocks.cast_unsigned().saturating_mul(512) < size;
        Ok(Self { file, attributes: attributes(&found), size, is_sparse, is_direct })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the next range of data at or after an offset; none if only a hole follows. On a file
    /// system that does not report holes, the whole file is data.
    pub(super) fn data_from(&self, offset: u64) -> Option<(u64, u64)> {
        if offset >= self.size {
            return None;
        }
        let all = Some((offset, self.size));
        if !self.is_sparse {
            return all;
        }
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(begin) if begin < self.size => {
                let end = seek(&self.file, SeekFrom::Hole(begin)).unwrap_or(self.size);
                Some((begin, end.min(self.size)))
            }
            Ok(_) | Err(Errno::NXIO) => None,
            Err(_) => all,
        }
    }

    /// Switches O_DIRECT on or off for the following reads. After an error, nothing has changed.
    pub(super) fn read_directly(&self, is_direct: bool) -> io::Result<()> {
        let flags = fcntl_getfl(&self.file)?;
        let wanted = if is_direct { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT };
        Ok(fcntl_setfl(&self.file, wanted)?)
    }

    /// Checks that the file has not changed since it was opened.
    ///
    /// # Errors
    /// How it has changed. The bytes that were read may then be a mix of old and new ones.
    pub(in crate::transfer) fn is_as_it_was(&self) -> Result<(), String> {
        let found = fstat(&self.file).map_err(|errno| io::Error::from(errno).to_string())?;
        let size = found.st_size.cast_unsigned();
        if size < self.size {
            return Err(shrank(self.size, size));
        }
        if size > self.size {
            return Err(format!("it grew from {} to {size} bytes while it was read", self.size));
        }
        let now = attributes(&found);
        if (now.seconds, now.nanoseconds) != (self.attributes.seconds, self.attributes.nanoseconds) {
            return Err("it was written to while it was read".to_owned());
        }
        Ok(())
    }

    /// Whether its contents have this checksum.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn contains(&self, digest: &[u8; DIGEST_BYTES]) -> io::Result<bool> {
        Ok(contents_digest(self.fd(), self.size)? == *digest)
    }

    /// Returns how many of its leading whole chunks have these checksums.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn same_chunks(&self, digests: &[[u8; DIGEST_BYTES]]) -> io::Result<u64> {
        let mut same = 0;
        for digest in digests {
            let begin = same * CHUNK_BYTES;
            if begin + CHUNK_BYTES > self.size || chunk_digest(self.fd(), begin)? != Some(*digest) {
                break;
            }
            same += 1;
        }
        Ok(same)
    }
}

/// Returns the error for a file that has become shorter.
pub(super) fn shrank(from: u64, to: u64) -> String {
    format!("it shrank from {from} to {to} bytes while it was read")
}

/// Returns the attributes of a file that are kept.
pub(super) fn attributes(found: &Stat) -> Attributes {
    Attributes {
        mode: found.st_mode as u16 & MODE_MASK,
        seconds: found.st_mtime,
        nanoseconds: u32::try_from(found.st_mtime_nsec).unwrap_or(0),
    }
}
