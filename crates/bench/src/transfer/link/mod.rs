//! Links: they carry blocks from a source to a sink, and answers back.
//!
//! Blocks arrive in the order in which they were posted, over any number of connections. Neither
//! rank waits for its peer longer than [`SILENCE`], or beyond its deadline.

pub(crate) mod renewed;
pub(crate) mod tcp;
pub(crate) mod verbs;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use measure::clock::Deadline;

use super::block::{ALIGNMENT, Block};
use super::told::LinkTold;
use crate::Error;

/// The kind of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Whole records.
    Packed,
    /// Bytes of the current file.
    Raw,
}

/// The methods of both sides of a link.
pub(crate) trait LinkEnd {
    /// Sets the deadline of the transfer.
    fn ends_at(&mut self, deadline: Deadline);

    /// Returns the counts of the link.
    fn told(&self) -> LinkTold;
}

/// The source's side of a link.
pub(crate) trait Outlet: LinkEnd {
    /// Returns the bytes of a block.
    fn block_bytes(&self) -> usize;

    /// Waits for a free block, and returns it. It is the same one until it is posted.
    ///
    /// # Errors
    /// If the sink is gone or silent.
    fn room(&mut self) -> Result<&mut dyn Block, Error>;

    /// Sends the first `bytes` bytes of the block.
    ///
    /// # Errors
    /// If the sink is gone.
    fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error>;

    /// Returns the next whole answers. Waits for them if `waits` is set.
    ///
    /// # Errors
    /// If the sink is gone or silent.
    fn answers(&mut self, waits: bool) -> Result<Option<Vec<u8>>, Error>;

    /// Sends `bytes` bytes of a file from an offset, as a raw block, without a copy into this
    /// process. Returns how many of them the file has; missing bytes arrive as zeros. Returns
    /// `None` where the link cannot do that.
    ///
    /// # Errors
    /// The outer error is that the sink is gone, the inner one that the file cannot be read.
    fn post_file(
        &mut self,
        _file: BorrowedFd<'_>,
        _offset: u64,
        _bytes: usize,
    ) -> Result<Option<io::Result<usize>>, Error> {
        Ok(None)
    }

    /// Whether each file takes its own connection.
    fn renews(&self) -> bool {
        false
    }

    /// Makes another connection for the following blocks. The sink does the same when it has taken
    /// all blocks of the previous connection.
    ///
    /// # Errors
    /// If the sink is gone, or no other connection can be made.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The sink's side of a link.
pub(crate) trait Inlet: LinkEnd {
    /// Waits for the next block. Returns its kind and its length in bytes.
    ///
    /// # Errors
    /// If the source is gone or silent.
    fn take(&mut self) -> Result<(Kind, usize), Error>;

    /// Returns the block that was taken.
    fn block(&self) -> &dyn Block;

    /// Returns the block to the source, which can fill it again.
    ///
    /// # Errors
    /// If the source is gone.
    fn release(&mut self) -> Result<(), Error>;

    /// Accepts another connection for the following blocks.
    ///
    /// # Errors
    /// If the source is gone, or this link has only one connection.
    fn renew(&mut self) -> Result<(), Error> {
        let words = "the source makes another connection, which was not agreed on";
        Err(Error::Transfer { words: words.to_owned() })
    }

    /// Sends whole answers, of at most [`ANSWER_BLOCK_BYTES`] together.
    ///
    /// # Errors
    /// If the source is gone or silent.
    fn answer(&mut self, answers: &[u8]) -> Result<(), Error>;
}

/// The smallest block of files, in bytes.
pub(crate) const BLOCK_BYTES_MIN: u32 = 64 << 10;
/// The largest block of files, in bytes.
pub(crate) const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// Whether this is a valid length of a block.
pub fn is_block(bytes: u64) -> bool {
    (BLOCK_BYTES_MIN.into()..=BLOCK_BYTES_MAX.into()).contains(&bytes) && bytes.is_multiple_of(ALIGNMENT)
}

/// Whether a rank may have this many blocks, over all connections, with this many bytes in all.
pub(crate) fn is_ring(blocks: u64, bytes: u64) -> bool {
    const BYTES_MAX: u64 = 4 << 30;
    blocks <= u64::from(BLOCKS_MAX) && bytes <= BYTES_MAX
}

/// The most blocks of a rank: the immediate data of a message has 12 bits for their number.
const BLOCKS_MAX: u32 = 1 << 12;

/// The bytes of a block of answers.
pub(crate) const ANSWER_BLOCK_BYTES: usize = 64 << 10;
/// The most bytes of unread answers that a source keeps: more than the answers to all offers that
/// may be open at a time.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// The longest silence of a peer before it counts as dead. It may be reading its part of a long
/// file, or waiting for its disk. The end of its process is noticed at once.
const SILENCE: Duration = Duration::from_secs(600);

/// How long a link waits for its peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// When the whole transfer must have ended.
    pub(crate) deadline: Deadline,
    /// The name of the peer in errors: "the sink".
    pub(crate) peer: &'static str,
}

impl Patience {
    /// Returns the end of a wait that starts now.
    fn silence(&self) -> Deadline {
        Deadline::after(SILENCE.min(self.deadline.remaining()))
    }

    /// Returns the error for a peer that was silent for too long.
    fn is_over(&self) -> Error {
        let peer = self.peer;
        let words = match self.deadline.is_over() {
            true => "the transfer has not ended within its time limit: give it a longer timeout".to_owned(),
            false => format!(
                "nothing came from {peer} for {} s: it hangs, or the network has failed",
                SILENCE.as_secs()
            ),
        };
        Error::Transfer { words }
    }

    /// Returns an error if the deadline has passed.
    fn look(&self) -> Result<(), Error> {
        if self.deadline.is_over() { Err(self.is_over()) } else { Ok(()) }
    }

    /// Returns the error for a connection that failed.
    fn is_broken(&self, how: &str) -> Error {
        Error::Transfer { words: format!("the connection to {} failed: {how}", self.peer) }
    }

    /// Returns the error for a peer that is gone.
    fn is_gone(&self, how: &str) -> Error {
        Error::Transfer { words: format!("{} is gone: {how}", self.peer) }
    }

    /// Returns the error for a peer that breaks the protocol.
    fn is_wrong(&self, what: &str) -> Error {
        let peer = self.peer;
        Error::Transfer {
            words: format!("{peer} {what}: it is not rdmascope of this version, or its memory is faulty"),
        }
    }
}
