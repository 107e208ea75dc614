//! What a message says by its tag.

use mpi::Status;

use crate::Error;
use crate::endpoint::Mark;

/// Tags of messages: what each says.
const MORE: i32 = 1;
const LAST: i32 = 2;
const GREETING: i32 = 3;
const FIRST: i32 = 4;
const FIRST_OF_MANY: i32 = 5;
const FILLER: i32 = 6;
/// What a greeting carries: its number. The memory of any message has room for it.
pub(super) const GREETING_BYTES: usize = 4;

/// What a message says that has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tag {
    Message(Mark),
    Greeting,
    /// The first message of a whole window, which more messages follow.
    First {
        /// Whether another whole window follows.
        of_many: bool,
    },
    /// An empty message that completes a whole window after the last message of a flood.
    Filler,
}

impl Tag {
    /// It as MPI carries it.
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

    /// How it is marked for a pattern.
    #[inline]
    pub(super) fn mark(self) -> Mark {
        match self {
            Self::Message(mark) => mark,
            Self::First { .. } => Mark::More,
            Self::Greeting | Self::Filler => Mark::Last,
        }
    }

    /// # Errors
    /// [`Error::Mpi`] where no rank of ours has sent it.
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
                    "a message of {} bytes with the tag {other} came, which no rank has sent",
                    status.bytes
                ),
            }),
        }
    }
}
