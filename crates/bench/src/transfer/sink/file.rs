//! A file that is received: under a name that nobody looks for until all of it is there and its
//! checksum agrees.

use std::io;

use super::receipt::Receipt;
use super::unfinished::{Unfinished, dress};
use crate::transfer::block::{ALIGNMENT, Block};
use crate::transfer::digest::{Checksum, DIGEST_BYTES, Digest};
use crate::transfer::name::Name;
use crate::transfer::record::{Attributes, Broken};

/// A file that is received.
pub(super) struct Receiving {
    parent: u32,
    name: Name,
    attributes: Attributes,
    size: u64,
    /// Where the next bytes belong.
    offset: u64,
    /// Where the last that were written end.
    written: u64,
    digest: Digest,
    goes: Goes,
    is_direct: bool,
}

/// What became of a file.
pub(super) enum Finished {
    /// It has its name; whether it has its permissions and its time.
    Named(io::Result<()>),
    /// It is not there, and it was said why.
    Lost,
}

/// Where the bytes go.
enum Goes {
    /// Nowhere: they are verified and forgotten.
    Nowhere,
    /// Nowhere, since they cannot be written; it was said why.
    Lost,
    To(Unfinished),
}

impl Receiving {
    /// A file that begins; so many bytes of it are there.
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

    /// A file that is forgotten.
    pub(super) fn nowhere(name: Name, attributes: Attributes, size: u64, checksum: Checksum) -> Self {
        Self { goes: Goes::Nowhere, ..Self::new(0, name, attributes, (size, 0), checksum, false) }
    }

    /// Its bytes go there.
    pub(super) fn goes_to(&mut self, unfinished: Unfinished) {
        self.goes = Goes::To(unfinished);
    }

    pub(super) fn parent(&self) -> u32 {
        self.parent
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// Takes bytes that lie at this place of a block.
    ///
    /// # Errors
    /// Where it has not so many. Within: where they cannot be written, once; from then on they are
    /// lost.
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
        // A file system that cannot write past its cache writes through it.
        let wants = self.is_direct && is_aligned && !unfinished.has_fallen_back;
        let direct = unfinished.write_directly(wants).or_else(|_| {
            unfinished.has_fallen_back = true;
            unfinished.write_directly(false)
        });
        self.written = end;
        Ok(direct.and_then(|()| unfinished.write(block, at, bytes, offset)))
    }

    /// Goes over a hole.
    ///
    /// # Errors
    /// Where it would go back or beyond the end.
    pub(super) fn skip_to(&mut self, to: u64) -> Result<(), Broken> {
        if to < self.offset || to > self.size {
            return Err(Broken("has a hole at the wrong place"));
        }
        self.digest.move_to(to);
        self.offset = to;
        Ok(())
    }

    /// Gives up what is there of it: its bytes are lost from now on.
    pub(super) fn lose(&mut self) -> Option<Unfinished> {
        match std::mem::replace(&mut self.goes, Goes::Lost) {
            Goes::To(unfinished) => Some(unfinished),
            Goes::Nowhere | Goes::Lost => None,
        }
    }

    /// Whether it goes through the page cache although it was to pass that by.
    pub(super) fn has_fallen_back(&self) -> bool {
        self.is_direct && matches!(&self.goes, Goes::To(unfinished) if unfinished.has_fallen_back)
    }

    /// Bytes of it that are there.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Gives it its name, if it is whole.
    ///
    /// # Errors
    /// Why it has not, if it was not said before.
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
        // A file system may keep no permissions or times: what arrived is whole all the same.
        let dressed = dress(&unfinished, &self.attributes);
        if let Err(error) = complete {
            target.discard(self.parent, &unfinished);
            return Err(error);
        }
        target.name(self.parent, unfinished, &self.name, receipt.syncs).map(|()| Finished::Named(dressed))
    }

    fn verify(&mut self, digest: &[u8; DIGEST_BYTES]) -> io::Result<()> {
        if self.offset != self.size {
            let come = format!("{} of its {} bytes have come", self.offset, self.size);
            return Err(io::Error::other(come));
        }
        if self.digest.finish() != *digest {
            return Err(io::Error::other(
                "its checksum is not the one that the source computed: what has come is not what was sent",
            ));
        }
        Ok(())
    }
}
