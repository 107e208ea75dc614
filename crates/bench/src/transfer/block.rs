//! The memory of a block: a slot of a registered ring, or memory of the process.

use std::io;
use std::os::fd::BorrowedFd;

use verbs::MemoryRegion;

use super::digest::Digest;

/// Memory that files are read into and written from without another copy. `at` is an offset in this
/// memory. An access beyond its end is an error.
pub(crate) trait Block {
    /// Copies bytes into the block.
    ///
    /// # Errors
    /// If they do not fit.
    fn put(&mut self, at: usize, bytes: &[u8]) -> io::Result<()>;

    /// Copies bytes out of the block.
    ///
    /// # Errors
    /// If the range ends beyond the block.
    fn get(&self, at: usize, bytes: &mut [u8]) -> io::Result<()>;

    /// Reads at most `bytes` bytes at `offset` of a file into the block. Returns how many, 0 at the
    /// end of the file.
    ///
    /// # Errors
    /// The errors of pread(2).
    fn read_file(&mut self, at: usize, bytes: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize>;

    /// Writes at most `bytes` bytes of the block to `offset` of a file. Returns how many.
    ///
    /// # Errors
    /// The errors of pwrite(2).
    fn write_file(&self, at: usize, bytes: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize>;

    /// Adds bytes of the block to a checksum.
    ///
    /// # Errors
    /// If the range ends beyond the block.
    fn digest(&self, at: usize, bytes: usize, digest: &mut Digest) -> io::Result<()>;
}

/// Memory that a device may write. Bytes are copied out of it before they are used, in pieces that
/// fit into the nearest cache.
impl Block for MemoryRegion {
    fn put(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.write(at, bytes).map_err(beyond)
    }

    fn get(&self, at: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.read(at, bytes).map_err(beyond)
    }

    fn read_file(&mut self, at: usize, bytes: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        uninterrupted(|| Self::read_file(self, at, bytes, file, offset))
    }

    fn write_file(&self, at: usize, bytes: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        uninterrupted(|| Self::write_file(self, at, bytes, file, offset))
    }

    fn digest(&self, at: usize, bytes: usize, digest: &mut Digest) -> io::Result<()> {
        const PIECE: usize = 8 << 10;
        if !digest.is_some() {
            return Ok(());
        }
        let mut piece = [0; PIECE];
        for begin in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(bytes - begin)];
            self.get(at + begin, piece)?;
            digest.take(piece);
        }
        Ok(())
    }
}

/// Memory of the process. It begins at a page, as O_DIRECT requires.
pub(crate) struct Owned {
    bytes: Vec<u8>,
    /// The offset of the first page.
    start: usize,
}

/// The alignment of blocks, and of reads and writes with O_DIRECT, in bytes: enough for any device.
pub(crate) const ALIGNMENT: u64 = 4096;
const PAGE: usize = ALIGNMENT as usize;

impl Owned {
    /// Allocates `bytes` zero bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + PAGE];
        let start = (memory.as_ptr() as usize).next_multiple_of(PAGE) - memory.as_ptr() as usize;
        Self { bytes: memory, start }
    }

    /// Returns all bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - PAGE + self.start;
        &mut self.bytes[self.start..end]
    }

    /// Returns all bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.bytes.len() - PAGE + self.start]
    }

    fn part(&self, at: usize, bytes: usize) -> io::Result<&[u8]> {
        let end = at.checked_add(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        self.bytes().get(at..end).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn part_mut(&mut self, at: usize, bytes: usize) -> io::Result<&mut [u8]> {
        let end = at.checked_add(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        self.bytes_mut().get_mut(at..end).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }
}

impl Block for Owned {
    fn put(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.part_mut(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn get(&self, at: usize, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(self.part(at, bytes.len())?);
        Ok(())
    }

    fn read_file(&mut self, at: usize, bytes: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        let part = self.part_mut(at, bytes)?;
        uninterrupted(|| Ok(rustix::io::pread(file, &mut *part, offset)?))
    }

    fn write_file(&self, at: usize, bytes: usize, file: BorrowedFd<'_>, offset: u64) -> io::Result<usize> {
        let part = self.part(at, bytes)?;
        uninterrupted(|| Ok(rustix::io::pwrite(file, part, offset)?))
    }

    fn digest(&self, at: usize, bytes: usize, digest: &mut Digest) -> io::Result<()> {
        digest.take(self.part(at, bytes)?);
        Ok(())
    }
}

fn beyond(error: verbs::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Repeats a call as long as signals interrupt it.
fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::digest::Checksum;

    #[test]
    fn owned_memory_begins_at_a_page_and_ends_where_it_does() {
        let mut block = Owned::new(3 * PAGE);
        assert!((block.bytes().as_ptr() as usize).is_multiple_of(PAGE));
        assert_eq!(block.bytes().len(), 3 * PAGE);
        block.put(3 * PAGE - 2, b"ab").unwrap();
        assert!(block.put(3 * PAGE - 1, b"ab").is_err());
        assert!(block.get(usize::MAX, &mut [0; 2]).is_err());
        let mut read = [0; 2];
        block.get(3 * PAGE - 2, &mut read).unwrap();
        assert_eq!(&read, b"ab");
        assert!(block.digest(1, 3 * PAGE, &mut Digest::new(Checksum::Xxh3)).is_err());
    }
}
