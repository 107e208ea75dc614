//! A file that is sent: what it is when it is opened, where its data lie, and whether it is the
//! same at its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, fcntl_getfl, fcntl_setfl, fstat, openat, seek};
use rustix::io::Errno;

use crate::transfer::digest::{CHUNK_BYTES, DIGEST_BYTES, chunk_digest, contents_digest};
use crate::transfer::name::Name;
use crate::transfer::record::{Attributes, MODE_MASK};

/// Bytes that are sent.
pub(super) enum Contents<'a> {
    File(&'a Opened),
    /// So many that are wherever blocks are.
    Memory {
        bytes: u64,
    },
}

/// A file that is open.
pub(in crate::transfer) struct Opened {
    file: OwnedFd,
    pub(super) attributes: Attributes,
    /// Its size when it was opened, in bytes.
    pub(super) size: u64,
    /// Whether it may have holes.
    pub(super) is_sparse: bool,
    /// Whether it is read past the page cache, as far as that is possible.
    pub(super) is_direct: bool,
}

impl Opened {
    /// Opens a file in a directory. What is no regular file is none.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::transfer) fn new(
        directory: BorrowedFd<'_>,
        name: &Name,
        is_direct: bool,
    ) -> io::Result<Self> {
        // Who has put a pipe in its place does not make us wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name.os(), flags, Mode::empty()).map_err(|errno| match errno {
            Errno::LOOP => io::Error::other("it was replaced by a symbolic link"),
            other => other.into(),
        })?;
        let found = fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it was replaced by something that is no file"));
        }
        let size = found.st_size.cast_unsigned();
        let is_sparse = found.st_blocks.cast_unsigned().saturating_mul(512) < size;
        Ok(Self { file, attributes: attributes(&found), size, is_sparse, is_direct })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The next range of data at or behind an offset; none where there is only a hole. A file
    /// system that cannot tell has data everywhere.
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

    /// Reads past the page cache from now on, or through it. Where that is not possible, nothing
    /// changes.
    pub(super) fn read_directly(&self, is_direct: bool) -> io::Result<()> {
        let flags = fcntl_getfl(&self.file)?;
        let wanted = if is_direct { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT };
        Ok(fcntl_setfl(&self.file, wanted)?)
    }

    /// Whether the file is as it was when it was opened.
    ///
    /// # Errors
    /// Why it is not: what was read may never have been in it at one time.
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
    /// What the system says.
    pub(super) fn contains(&self, digest: &[u8; DIGEST_BYTES]) -> io::Result<bool> {
        Ok(contents_digest(self.fd(), self.size)? == *digest)
    }

    /// How many whole chunks at its beginning have these checksums.
    ///
    /// # Errors
    /// What the system says.
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

/// A file has fewer bytes than it had.
pub(super) fn shrank(from: u64, to: u64) -> String {
    format!("it shrank from {from} to {to} bytes while it was read")
}

/// What is kept of a file.
pub(super) fn attributes(found: &Stat) -> Attributes {
    Attributes {
        mode: found.st_mode as u16 & MODE_MASK,
        seconds: found.st_mtime,
        nanoseconds: u32::try_from(found.st_mtime_nsec).unwrap_or(0),
    }
}
