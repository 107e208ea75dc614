//! The meaning of a message's tag.

use mpi::Status;

use crate::Error;
use crate::endpoint::Mark;

/// The tags of messages.
const MORE: i32 = 1;
const LAST: i32 = 2;
const GREETING: i32 = 3;
const FIRST: i32 = 4;
const FIRST_OF_MANY: i32 = 5;
const FILLER: i32 = 6;
/// The size of a greeting, which contains its number. The memory of any message has room for it.
pub(super) const GREETING_BYTES: usize = 4;

/// The kind of a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tag {
    Message(Mark),
    Greeting,
    /// The first message of a whole window; the rest of the window follows.
    First {
        /// Whether another whole window follows.
        of_many: bool,
    },
    /// An empty message that completes a whole window after the last message of a stream.
    Filler,
}

impl Tag {
    /// Returns the tag as MPI carries it.
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Message(Mark::More) => MORE,
            Self::Message(Mark::Last) => LAST,
            Self::Greeting => GREETING,
            Self::First { of_many: false } => FIRST,
            Self::First { of_many: true } => FIRST_OF_MANY,
            Self::Filler => FILLER,
        }
    }

    /// Returns the mark for a pattern.
    #[inline]
    pub(super) fn mark(self) -> Mark {
        match self {
            Self::Message(mark) => mark,
            Self::First { .. } => Mark::More,
            Self::Greeting | Self::Filler => Mark::Last,
        }
    }

    /// Reads the tag of a message.
    ///
    /// # Errors
    /// [`Error::Mpi`] if the tag is none of rdmascope's.
    pub(super) fn of(status: &Status) -> Result<Self, Error> {
        match status.tag {
            MORE => Ok(Self::Message(Mark::More)),
            LAST => Ok(Self::Message(Mark::Last)),
            GREETING => Ok(Self::Greeting),
            FIRST => Ok(Self::First { of_many: false }),
            FIRST_OF_MANY => Ok(Self::First { of_many: true }),
            FILLER => Ok(Self::Filler),
            other => Err(Error::Mpi {
                reason: format!(
                    "a message of {} bytes arrived with the tag {other}, which rdmascope does not use",
                    status.bytes
                ),
            }),
        }
    }
}
