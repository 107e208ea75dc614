//! The records of a block. The peer may change the block at any time, so each record is copied out
//! before it is read.

use crate::transfer::block::Block;
use crate::transfer::record::{Broken, RECORD_BYTES_MAX, Record};

/// The unread records of a block.
pub(super) struct Records {
    at: usize,
    end: usize,
    copy: Vec<u8>,
}

/// The bytes that are copied for a record at first: more than most records have.
const USUAL_BYTES: usize = 320;

impl Records {
    /// Returns the records of a block with `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { at: 0, end: bytes, copy: Vec::new() }
    }

    /// Returns the next record, and the offset after it.
    ///
    /// # Errors
    /// If the bytes are not a record.
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

    /// Skips bytes that follow a record, and returns their number.
    ///
    /// # Errors
    /// If the block has fewer bytes.
    pub(super) fn skip(&mut self, bytes: u32) -> Result<usize, Broken> {
        let bytes = bytes as usize;
        if bytes > self.end - self.at {
            return Err(Broken("has more bytes than its block"));
        }
        self.at += bytes;
        Ok(bytes)
    }
}
