//! Checksums of files, computed while their bytes pass.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use twox_hash::xxhash3_128;

use crate::point::choice::choice;

choice! {
    /// What each file is verified with before it gets its name: the axis `checksum`.
    pub enum Checksum {
        /// BLAKE3, which nobody can forge. It takes about 0.2 s of a CPU for a GiB at each end.
        Blake3 = "blake3",
        /// Nothing: only the length is verified.
        None = "none",
        /// XXH3 with 128 bits, which finds what goes wrong by chance.
        Xxh3 = "xxh3",
    }
}

/// A checksum of 128 bits that is being computed. BLAKE3's is cut to as many.
pub(crate) enum Digest {
    Blake3(Box<blake3::Hasher>),
    None,
    Xxh3(Box<xxhash3_128::Hasher>),
}

/// Bytes of a file that each checksum of a part is of.
pub(crate) const CHUNK_BYTES: u64 = 64 << 20;
/// Bytes of a finished checksum.
pub(crate) const DIGEST_BYTES: usize = 16;

impl Digest {
    /// That of no bytes.
    pub(crate) fn new(checksum: Checksum) -> Self {
        match checksum {
            Checksum::Blake3 => Self::Blake3(Box::new(blake3::Hasher::new())),
            Checksum::None => Self::None,
            Checksum::Xxh3 => Self::Xxh3(Box::new(xxhash3_128::Hasher::new())),
        }
    }

    /// Whether it is one, so that bytes have to be looked at.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Takes more bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => _ = hasher.update(bytes),
            Self::None => {}
            Self::Xxh3(hasher) => hasher.write(bytes),
        }
    }

    /// Takes note that the bytes go on at another offset: what is at the wrong place is not the
    /// same.
    pub(crate) fn move_to(&mut self, offset: u64) {
        self.take(&offset.to_le_bytes());
    }

    /// That of all bytes that it took.
    pub(crate) fn finish(&self) -> [u8; DIGEST_BYTES] {
        match self {
            Self::Blake3(hasher) => {
                let mut digest = [0; DIGEST_BYTES];
                digest.copy_from_slice(&hasher.finalize().as_bytes()[..DIGEST_BYTES]);
                digest
            }
            Self::None => [0; DIGEST_BYTES],
            Self::Xxh3(hasher) => hasher.finish_128().to_be_bytes(),
        }
    }
}

/// The checksum of a whole chunk of a file; none where the file ends before.
///
/// # Errors
/// What the system says.
pub(crate) fn chunk_digest(file: BorrowedFd<'_>, begin: u64) -> io::Result<Option<[u8; DIGEST_BYTES]>> {
    const PIECE: usize = 256 << 10;
    let mut piece = vec![0; PIECE];
    let mut digest = Digest::new(Checksum::Xxh3);
    let mut read = 0;
    while read < CHUNK_BYTES {
        let most = PIECE.min(usize::try_from(CHUNK_BYTES - read).unwrap_or(PIECE));
        match rustix::io::pread(file, &mut piece[..most], begin + read) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                digest.take(&piece[..count]);
                read += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(Some(digest.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(checksum: Checksum, bytes: &[u8]) -> String {
        let mut digest = Digest::new(checksum);
        bytes.chunks(7).for_each(|part| digest.take(part));
        digest.finish().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// As `xxhsum -H128` and `b3sum` print them.
    #[test]
    fn checksums_are_those_of_other_programs() {
        assert_eq!(hex(Checksum::Xxh3, b""), "99aa06d3014798d86001c324468d497f");
        assert_eq!(hex(Checksum::Blake3, b""), "af1349b9f5f9a1a6a0404dea36dcc949");
        assert_eq!(hex(Checksum::Blake3, b"abc"), "6437b3ac38465133ffb63b75273a8db5");
        assert_eq!(hex(Checksum::None, b"abc"), "0".repeat(32));
    }

    #[test]
    fn bytes_at_another_place_are_not_the_same() {
        let at = |offset| {
            let mut digest = Digest::new(Checksum::Xxh3);
            digest.move_to(offset);
            digest.take(b"abc");
            digest.finish()
        };
        assert_ne!(at(1), at(2));
    }
}
