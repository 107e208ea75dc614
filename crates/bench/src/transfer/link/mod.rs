//! What carries blocks from a source to a sink, and answers back.
//!
//! Blocks arrive in the order in which they were posted, over however many connections. Neither end
//! waits for the other longer than [`SILENCE`], nor beyond its deadline.

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

/// What a block consists of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Whole records.
    Packed,
    /// Bytes of the current file.
    Raw,
}

/// What each end of a link has.
pub(crate) trait LinkEnd {
    /// Says when the transfer must have ended.
    fn ends_at(&mut self, deadline: Deadline);

    /// What it has counted.
    fn told(&self) -> LinkTold;
}

/// The source's end.
pub(crate) trait Outlet: LinkEnd {
    /// Bytes of a block.
    fn block_bytes(&self) -> usize;

    /// Waits until another block can be filled.
    ///
    /// # Errors
    /// Where the sink has gone or is silent.
    fn room(&mut self) -> Result<&mut dyn Block, Error>;

    /// Sends the first so many bytes of it.
    ///
    /// # Errors
    /// Where the sink has gone.
    fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error>;

    /// The next answers, whole ones; waits for them if that is asked for.
    ///
    /// # Errors
    /// Where the sink has gone or is silent.
    fn answers(&mut self, waits: bool) -> Result<Option<Vec<u8>>, Error>;

    /// Sends so many bytes of a file from an offset of it, a block of nothing else, without this
    /// process seeing them. Gives how many of them the file has; what it lacks arrives as zeros.
    /// Absent where the link cannot do that.
    ///
    /// # Errors
    /// Where the sink has gone, or within, where the file cannot be read.
    fn post_file(
        &mut self,
        _file: BorrowedFd<'_>,
        _offset: u64,
        _bytes: usize,
    ) -> Result<Option<io::Result<usize>>, Error> {
        Ok(None)
    }

    /// Whether each file is to have a connection of its own.
    fn renews(&self) -> bool {
        false
    }

    /// Makes another connection for what follows. The sink does the same when it has taken all
    /// blocks of the one before.
    ///
    /// # Errors
    /// Where the sink has gone, or there is no other connection.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The sink's end.
pub(crate) trait Inlet: LinkEnd {
    /// Waits for the next block; gives what it consists of, and how many bytes it has.
    ///
    /// # Errors
    /// Where the source has gone or is silent.
    fn take(&mut self) -> Result<(Kind, usize), Error>;

    /// The block that was taken.
    fn block(&self) -> &dyn Block;

    /// Lets the source fill it again.
    ///
    /// # Errors
    /// Where the source has gone.
    fn release(&mut self) -> Result<(), Error>;

    /// Takes another connection for what follows.
    ///
    /// # Errors
    /// Where the source has gone, or this link has no other connection.
    fn renew(&mut self) -> Result<(), Error> {
        let words = "the source makes another connection, which was not agreed on";
        Err(Error::Transfer { words: words.to_owned() })
    }

    /// Sends whole answers, of at most [`ANSWER_BLOCK_BYTES`] together.
    ///
    /// # Errors
    /// Where the source has gone or is silent.
    fn answer(&mut self, answers: &[u8]) -> Result<(), Error>;
}

/// Bytes of a block of files, the least and the most.
pub(crate) const BLOCK_BYTES_MIN: u32 = 64 << 10;
pub(crate) const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// Whether a block may have so many bytes.
pub fn is_block(bytes: u64) -> bool {
    (BLOCK_BYTES_MIN.into()..=BLOCK_BYTES_MAX.into()).contains(&bytes) && bytes.is_multiple_of(ALIGNMENT)
}

/// Whether an end may have so many blocks, of all connections together, with so many bytes.
pub(crate) fn is_ring(blocks: u64, bytes: u64) -> bool {
    const BYTES_MAX: u64 = 4 << 30;
    blocks <= u64::from(BLOCKS_MAX) && bytes <= BYTES_MAX
}

/// The most blocks of an end: a message has room for the number of one.
const BLOCKS_MAX: u32 = 1 << 12;

/// Bytes of a block of answers.
pub(crate) const ANSWER_BLOCK_BYTES: usize = 64 << 10;
/// Bytes of answers that a source keeps until it looks at them: more than the answers to all offers
/// that may be open at a time.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// How long the other end may say nothing before it is taken for dead. It may be reading what it
/// has of a long file, or waiting for its disk. That its process has ended is known at once.
const SILENCE: Duration = Duration::from_secs(600);

/// How long a link waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// When all of the transfer must have ended.
    pub(crate) deadline: Deadline,
    /// For whom it waits: "the sink".
    pub(crate) peer: &'static str,
}

impl Patience {
    /// How long it may wait now.
    fn silence(&self) -> Deadline {
        Deadline::after(SILENCE.min(self.deadline.remaining()))
    }

    /// The other end said nothing for so long.
    fn is_over(&self) -> Error {
        let peer = self.peer;
        let words = match self.deadline.is_over() {
            true => "the transfer has not ended within its time limit: give it a longer timeout".to_owned(),
            false => format!(
                "nothing came from {peer} for {} s: it hangs, or what lies between has failed",
                SILENCE.as_secs()
            ),
        };
        Error::Transfer { words }
    }

    /// Ends where the time is over.
    fn look(&self) -> Result<(), Error> {
        if self.deadline.is_over() { Err(self.is_over()) } else { Ok(()) }
    }

    /// What lies between has failed, or this end.
    fn is_broken(&self, how: &str) -> Error {
        Error::Transfer { words: format!("the connection with {} has broken: {how}", self.peer) }
    }

    /// The other end has gone.
    fn is_gone(&self, how: &str) -> Error {
        Error::Transfer { words: format!("{} has gone: {how}", self.peer) }
    }

    /// The other end does what it must not.
    fn is_wrong(&self, what: &str) -> Error {
        let peer = self.peer;
        Error::Transfer {
            words: format!("{peer} {what}: it is no rdmascope of this version, or its memory fails"),
        }
    }
}
