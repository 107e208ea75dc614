//! The records of a block, which the other end may change at any time: each is copied out before it
//! is looked at.

use crate::transfer::block::Block;
use crate::transfer::record::{Broken, RECORD_BYTES_MAX, Record};

/// Records of a block that are yet to be read.
pub(super) struct Records {
    at: usize,
    end: usize,
    copy: Vec<u8>,
}

/// Bytes that are copied for a record: more than most have.
const USUAL_BYTES: usize = 320;

impl Records {
    /// Those of a block with so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { at: 0, end: bytes, copy: Vec::new() }
    }

    /// The next one, and where what follows it begins.
    ///
    /// # Errors
    /// Where there is none.
    pub(super) fn next(&mut self, block: &dyn Block) -> Result<Option<(Record, usize)>, Broken> {
        let left = self.end - self.at;
        if left == 0 {
            return Ok(None);
        }
        let (record, bytes) = match self.read(block, left.min(USUAL_BYTES)) {
            Err(_) if left > USUAL_BYTES => self.read(block, left.min(RECORD_BYTES_MAX))?,
            read => read?,
        };
        self.at += bytes;
        Ok(Some((record, self.at)))
    }

    fn read(&mut self, block: &dyn Block, bytes: usize) -> Result<(Record, usize), Broken> {
        self.copy.resize(bytes, 0);
        block.get(self.at, &mut self.copy).map_err(|_| Broken("is longer than its block"))?;
        Record::read(&self.copy)
    }

    /// Goes over bytes that follow a record; gives how many.
    ///
    /// # Errors
    /// Where there are not so many.
    pub(super) fn skip(&mut self, bytes: u32) -> Result<usize, Broken> {
        let bytes = bytes as usize;
        if bytes > self.end - self.at {
            return Err(Broken("has more bytes than its block"));
        }
        self.at += bytes;
        Ok(bytes)
    }
}
