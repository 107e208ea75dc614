//! A file that is being received. It has a temporary name until it is complete and its checksum
//! agrees.

use std::io;

use super::receipt::Receipt;
use super::unfinished::{Unfinished, dress};
use crate::transfer::block::{ALIGNMENT, Block};
use crate::transfer::digest::{Checksum, DIGEST_BYTES, Digest};
use crate::transfer::name::Name;
use crate::transfer::record::{Attributes, Broken};

/// A file that is being received.
pub(super) struct Receiving {
    parent: u32,
    name: Name,
    attributes: Attributes,
    size: u64,
    /// The offset of the next bytes.
    offset: u64,
    /// The end of the last written bytes.
    written: u64,
    digest: Digest,
    goes: Goes,
    is_direct: bool,
}

/// The outcome of a file.
pub(super) enum Finished {
    /// The file has its name. The result is that of setting its permissions and time.
    Named(io::Result<()>),
    /// The file was not written, and the reason was already reported.
    Lost,
}

/// The destination of the bytes.
enum Goes {
    /// None: the bytes are verified and dropped.
    Nowhere,
    /// None: the bytes cannot be written, and the reason was already reported.
    Lost,
    To(Unfinished),
}

impl Receiving {
    /// Begins a file of which `from` bytes are already there. Its bytes are dropped until
    /// [`Receiving::goes_to`] is called.
    pub(super) fn new(
        parent: u32,
        name: Name,
        attributes: Attributes,
        (size, from): (u64, u64),
        checksum: Checksum,
        is_direct: bool,
    ) -> Self {
        let digest = Digest::new(checksum);
        let goes = Goes::Lost;
        Self { parent, name, attributes, size, offset: from, written: from, digest, goes, is_direct }
    }

    /// Begins a file whose bytes are verified and dropped.
    pub(super) fn nowhere(name: Name, attributes: Attributes, size: u64, checksum: Checksum) -> Self {
        Self { goes: Goes::Nowhere, ..Self::new(0, name, attributes, (size, 0), checksum, false) }
    }

    /// Sets the destination of the bytes.
    pub(super) fn goes_to(&mut self, unfinished: Unfinished) {
        self.goes = Goes::To(unfinished);
    }

    pub(super) fn parent(&self) -> u32 {
        self.parent
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// Takes bytes at this offset of a block.
    ///
    /// # Errors
    /// The outer error is that the file or the block has fewer bytes. The inner one is that they
    /// cannot be written. It occurs once, and later bytes are dropped.
    pub(super) fn take(
        &mut self,
        block: &dyn Block,
        at: usize,
        bytes: usize,
    ) -> Result<io::Result<()>, Broken> {
        let end = self.offset.checked_add(bytes as u64).filter(|end| *end <= self.size);
        let end = end.ok_or(Broken("has more bytes than its file"))?;
        let offset = std::mem::replace(&mut self.offset, end);
        if let Goes::Lost = self.goes {
            return Ok(Ok(()));
        }
        block.digest(at, bytes, &mut self.digest).map_err(|_| Broken("has more bytes than its block"))?;
        let Goes::To(unfinished) = &mut self.goes else { return Ok(Ok(())) };
        let is_aligned =
            at == 0 && offset.is_multiple_of(ALIGNMENT) && (bytes as u64).is_multiple_of(ALIGNMENT);
        // A file system without O_DIRECT writes through the page cache.
        let wants = self.is_direct && is_aligned && !unfinished.has_fallen_back;
        let direct = unfinished.write_directly(wants).or_else(|_| {
            unfinished.has_fallen_back = true;
            unfinished.write_directly(false)
        });
        self.written = end;
        Ok(direct.and_then(|()| unfinished.write(block, at, bytes, offset)))
    }

    /// Skips a hole.
    ///
    /// # Errors
    /// If the hole ends before the current offset or beyond the end of the file.
    pub(super) fn skip_to(&mut self, to: u64) -> Result<(), Broken> {
        if to < self.offset || to > self.size {
            return Err(Broken("has a hole at the wrong place"));
        }
        self.digest.move_to(to);
        self.offset = to;
        Ok(())
    }

    /// Gives the file up, and returns its unfinished file. Later bytes are dropped.
    pub(super) fn lose(&mut self) -> Option<Unfinished> {
        match std::mem::replace(&mut self.goes, Goes::Lost) {
            Goes::To(unfinished) => Some(unfinished),
            Goes::Nowhere | Goes::Lost => None,
        }
    }

    /// Whether the file was written through the page cache in spite of O_DIRECT.
    pub(super) fn has_fallen_back(&self) -> bool {
        self.is_direct && matches!(&self.goes, Goes::To(unfinished) if unfinished.has_fallen_back)
    }

    /// Returns how many bytes of the file are written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Gives the file its name, if it is complete.
    ///
    /// # Errors
    /// Why the file does not get its name, unless that was already reported.
    pub(super) fn finish(
        &mut self,
        receipt: &mut Receipt,
        is_whole: bool,
        digest: &[u8; DIGEST_BYTES],
    ) -> io::Result<Finished> {
        let verified = self.verify(digest);
        let goes = std::mem::replace(&mut self.goes, Goes::Lost);
        let (unfinished, target) = match (goes, &mut receipt.target) {
            (Goes::Lost, _) => return Ok(Finished::Lost),
            (Goes::To(unfinished), Some(target)) => (unfinished, target),
            _ if !is_whole => return Ok(Finished::Lost),
            _ => return verified.map(|()| Finished::Named(Ok(()))),
        };
        if !is_whole {
            target.discard(self.parent, &unfinished);
            return Ok(Finished::Lost);
        }
        let complete = verified.and_then(|()| {
            if self.written < self.size {
                unfinished.cut(self.size)?;
            }
            unfinished.settle()
        });
        // Some file systems keep no permissions or times. The file is complete all the same.
        let dressed = dress(&unfinished, &self.attributes);
        if let Err(error) = complete {
            target.discard(self.parent, &unfinished);
            return Err(error);
        }
        target.name(self.parent, unfinished, &self.name, receipt.syncs).map(|()| Finished::Named(dressed))
    }

    fn verify(&mut self, digest: &[u8; DIGEST_BYTES]) -> io::Result<()> {
        if self.offset != self.size {
            let come = format!("{} of its {} bytes arrived", self.offset, self.size);
            return Err(io::Error::other(come));
        }
        if self.digest.finish() != *digest {
            return Err(io::Error::other(
                "its checksum differs from that of the source: the received bytes are not those that were sent",
            ));
        }
        Ok(())
    }
}
