//! Checksums of files, computed while the files are sent and received.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};
use twox_hash::xxhash3_128;

use crate::point::choice::choice;

choice! {
    /// The checksum by which each file is verified before it gets its name: the axis `checksum`.
    pub enum Checksum {
        /// BLAKE3, a cryptographic hash. It takes about 0.2 s of CPU time for a GiB on each host.
        Blake3 = "blake3",
        /// No checksum: only the length is verified.
        None = "none",
        /// XXH3 with 128 bits, which finds accidental errors.
        Xxh3 = "xxh3",
    }
}

/// A checksum of 128 bits that is being computed. That of BLAKE3 is truncated to 128 bits.
pub(crate) enum Digest {
    Blake3(Box<blake3::Hasher>),
    None,
    Xxh3(Box<xxhash3_128::Hasher>),
}

/// The bytes of a chunk. Partly received files are compared by the checksums of their chunks.
pub(crate) const CHUNK_BYTES: u64 = 64 << 20;
/// The bytes of a finished checksum.
pub(crate) const DIGEST_BYTES: usize = 16;

impl Digest {
    /// Starts a checksum.
    pub(crate) fn new(checksum: Checksum) -> Self {
        match checksum {
            Checksum::Blake3 => Self::Blake3(Box::new(blake3::Hasher::new())),
            Checksum::None => Self::None,
            Checksum::Xxh3 => Self::Xxh3(Box::new(xxhash3_128::Hasher::new())),
        }
    }

    /// Whether a checksum is computed at all.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Adds bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => _ = hasher.update(bytes),
            Self::None => {}
            Self::Xxh3(hasher) => hasher.write(bytes),
        }
    }

    /// Adds the offset at which the next bytes continue, so that bytes at a wrong offset change the
    /// checksum.
    pub(crate) fn move_to(&mut self, offset: u64) {
        self.take(&offset.to_le_bytes());
    }

    /// Returns the checksum of all added bytes.
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

/// Returns the checksum of a whole chunk of a file; none if the file ends before.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn chunk_digest(file: BorrowedFd<'_>, begin: u64) -> io::Result<Option<[u8; DIGEST_BYTES]>> {
    let mut piece = vec![0; PIECE];
    let mut digest = Digest::new(Checksum::Xxh3);
    for at in (begin..begin + CHUNK_BYTES).step_by(PIECE) {
        if !fill(&mut piece, file, at)? {
            return Ok(None);
        }
        digest.take(&piece);
    }
    Ok(Some(digest.finish()))
}

/// Returns the checksum of the contents of a file. Holes count as zeros.
///
/// # Errors
/// If the file cannot be read, or is shorter than `size`.
pub(crate) fn contents_digest(file: BorrowedFd<'_>, size: u64) -> io::Result<[u8; DIGEST_BYTES]> {
    let mut piece = vec![0; PIECE];
    let mut digest = Digest::new(Checksum::Xxh3);
    let mut at = 0;
    while at < size {
        // Pieces of zeros are left out, too, and are thus equal to holes.
        at = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin - begin % PIECE as u64,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let bytes = PIECE.min(usize::try_from(size.saturating_sub(at)).unwrap_or(PIECE));
        let piece = &mut piece[..bytes];
        if !fill(piece, file, at)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if piece.iter().any(|byte| *byte != 0) {
            digest.move_to(at);
            digest.take(piece);
        }
        at += PIECE as u64;
    }
    digest.move_to(size);
    Ok(digest.finish())
}

/// Fills `piece` from an offset of a file. Returns false if the file has fewer bytes.
fn fill(piece: &mut [u8], file: BorrowedFd<'_>, offset: u64) -> io::Result<bool> {
    let mut read = 0;
    while read < piece.len() {
        match pread(file, &mut piece[read..], offset + read as u64) {
            Ok(0) => return Ok(false),
            Ok(count) => read += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(true)
}

/// The bytes that are read at a time. A chunk is a whole number of pieces.
const PIECE: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES.is_multiple_of(PIECE as u64));

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(checksum: Checksum, bytes: &[u8]) -> String {
        let mut digest = Digest::new(checksum);
        bytes.chunks(7).for_each(|part| digest.take(part));
        digest.finish().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The expected values are those of `xxhsum -H128` and `b3sum`.
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

    #[test]
    fn contents_are_the_same_whatever_of_them_is_a_hole() {
        use std::fs::File;
        use std::os::fd::AsFd;
        use std::os::unix::fs::FileExt;

        let directory = tempfile::tempdir().unwrap();
        let size = 5 * PIECE as u64 + 77;
        let of = |name: &str, zeros: bool, pieces: &[(u64, &[u8])]| {
            let file = File::create_new(directory.path().join(name)).unwrap();
            if zeros {
                file.write_all_at(&vec![0; size as usize], 0).unwrap();
            }
            file.set_len(size).unwrap();
            pieces.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
            let file = File::open(directory.path().join(name)).unwrap();
            contents_digest(file.as_fd(), size).unwrap()
        };
        let pieces = [(3 * PIECE as u64 + 5, b"abc".as_slice()), (size - 1, b"z")];
        let sparse = of("sparse", false, &pieces);
        assert_eq!(sparse, of("full", true, &pieces));
        assert_ne!(sparse, of("other", false, &pieces[..1]));
        assert_ne!(sparse, of("moved", false, &[(3 * PIECE as u64 + 6, b"abc"), pieces[1]]));
        assert_eq!(of("nothing", false, &[]), of("zeros", true, &[]));
        let file = File::open(directory.path().join("sparse")).unwrap();
        assert_eq!(contents_digest(file.as_fd(), size + 1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
