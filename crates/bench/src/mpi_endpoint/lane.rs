//! Messages between this rank and one other.

use mpi::{Communicator, Slots, Status};

use super::rank::Context;
use crate::Error;
use crate::endpoint::{FILL, Mark};
use crate::point::MpiCall;

/// Tags of messages: what each says.
const MORE: i32 = 1;
const LAST: i32 = 2;
const GREETING: i32 = 3;
/// The tag of what tells that a window has arrived.
const WINDOW: i32 = 1;
/// Receives that are looked at in one call, and how often in vain before each is for itself until
/// the window ends: some microseconds.
const TOGETHER: usize = 16;
const LOOKS: u32 = 64;
/// What a greeting carries: its number. The memory of any message has room for it.
pub(super) const GREETING_BYTES: usize = 4;

/// What a message says that has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tag {
    Message(Mark),
    Greeting,
}

impl Tag {
    /// It as MPI carries it.
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Message(Mark::More) => MORE,
            Self::Message(Mark::Last) => LAST,
            Self::Greeting => GREETING,
        }
    }

    /// # Errors
    /// [`Error::Mpi`] where no rank of ours has sent it.
    pub(super) fn of(status: &Status) -> Result<Self, Error> {
        match status.tag {
            MORE => Ok(Self::Message(Mark::More)),
            LAST => Ok(Self::Message(Mark::Last)),
            GREETING => Ok(Self::Greeting),
            other => Err(Error::Mpi {
                reason: format!(
                    "a message of {} bytes with the tag {other} came, which no rank has sent",
                    status.bytes
                ),
            }),
        }
    }
}

/// What is known of messages to and from a rank.
pub(super) struct Lane {
    /// Its number in MPI.
    pub(super) peer: u32,
    /// Receives that are posted, each into memory of its own, in the order in which messages come.
    pub(super) into: Slots,
    /// The one that the next message comes into, and how many were taken without being posted
    /// again.
    pub(super) head: usize,
    free: usize,
    /// Messages from the head on that are known to have come, and fruitless looks for several since
    /// a window began.
    ready: usize,
    looks: u32,
    /// Messages that came, greetings apart.
    pub(super) taken: u64,
    /// Bytes that fit.
    room: usize,
    /// Whether receives are requests that were made once.
    is_persistent: bool,
    windows: Option<Windows>,
}

/// The windows of a flood.
struct Windows {
    /// Messages of one.
    length: u64,
    /// Messages of the one that is sent.
    sent: u64,
    /// Whether its last message was sent, so that no more goes before the receiver has answered.
    is_full: bool,
    /// Messages of those that the receiver has answered.
    arrived: u64,
    /// Messages of the one that comes.
    come: u64,
    /// The receive of the answer, and the send of ours.
    heard: Slots,
    said: Slots,
}

impl Lane {
    /// Posts receives for messages of a size, but for blocking calls. A flood has windows of as
    /// many messages.
    pub(super) fn new(
        context: &Context,
        peer: u32,
        size: usize,
        call: MpiCall,
        receives: usize,
        window: Option<u64>,
    ) -> Result<Self, Error> {
        let room = size.max(GREETING_BYTES);
        let mut into = Slots::new(&context.messages, receives, room)?;
        let is_persistent = call == MpiCall::Persistent;
        for slot in (0..receives).filter(|_| call != MpiCall::Blocking) {
            if is_persistent {
                into.recv_init(slot, room, Some(peer), None)?;
                into.start(slot)?;
            } else {
                into.irecv(slot, room, Some(peer), None)?;
            }
        }
        let windows = window.map(|length| Windows::new(&context.answers, peer, length)).transpose()?;
        Ok(Self { peer, into, head: 0, free: 0, ready: 0, looks: 0, taken: 0, room, is_persistent, windows })
    }

    /// Takes the next message, if it has come.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<(Tag, usize)>, Error> {
        let slot = self.head;
        let Some(status) = self.status()? else { return Ok(None) };
        self.head = if slot + 1 == self.into.count() { 0 } else { slot + 1 };
        self.free += 1;
        let tag = Tag::of(&status)?;
        if let Tag::Message(mark) = tag {
            self.taken += 1;
            if let Some(windows) = &mut self.windows {
                windows.came(self.peer, mark)?;
                if windows.come == 0 {
                    self.looks = 0;
                }
            }
        }
        Ok(Some((tag, slot)))
    }

    /// What the next message says, if it has come.
    #[inline]
    fn status(&mut self) -> Result<Option<Status>, Error> {
        let slot = self.head;
        if self.ready > 0 {
            self.ready -= 1;
            return Ok(Some(self.into.status(slot)));
        }
        // All that were posted have come, and none was posted again.
        if !self.into.is_pending(slot) {
            return Ok(None);
        }
        let many = self.together();
        if many < 2 {
            return Ok(self.into.test(slot)?);
        }
        if self.into.test_all(slot..slot + many)? {
            self.ready = many - 1;
            return Ok(Some(self.into.status(slot)));
        }
        self.looks += 1;
        Ok(None)
    }

    /// How many messages of a window are looked for at once, as others wait for all of one: a call
    /// for each takes half of the time of a small message. Where they do not come, the window may
    /// be the last.
    #[inline]
    fn together(&self) -> usize {
        let Some(windows) = self.windows.as_ref().filter(|_| self.looks < LOOKS) else { return 1 };
        let count = self.into.count();
        let of_window = (windows.length - windows.come) as usize;
        TOGETHER.min(of_window).min(count - self.head).min(count - self.free)
    }

    /// Posts again what was taken.
    #[inline]
    pub(super) fn replenish(&mut self) -> Result<(), Error> {
        while self.free > 0 {
            let count = self.into.count();
            let slot = (self.head + count - self.free) % count;
            match self.is_persistent {
                true => self.into.start(slot)?,
                false => self.into.irecv(slot, self.room, Some(self.peer), None)?,
            }
            self.free -= 1;
        }
        Ok(())
    }

    /// Whether the receiver answers windows, so that all of one are done when the next may go.
    #[inline]
    pub(super) fn answers(&self) -> bool {
        self.windows.is_some()
    }

    /// Whether a message may go: not while a full window has not arrived.
    #[inline]
    pub(super) fn may_send(&mut self) -> Result<bool, Error> {
        match &mut self.windows {
            Some(windows) if windows.is_full => windows.has_arrived(self.peer),
            _ => Ok(true),
        }
    }

    /// A message was sent.
    #[inline]
    pub(super) fn sent(&mut self, mark: Mark) {
        if let Some(windows) = &mut self.windows {
            windows.sent(mark);
        }
    }

    /// Messages that are known to have arrived, where that is told.
    #[inline]
    pub(super) fn arrived(&mut self) -> Result<Option<u64>, Error> {
        self.may_send()?;
        Ok(self.windows.as_ref().map(|windows| windows.arrived))
    }

    /// Messages that were sent and are not known to have arrived, where that is told.
    pub(super) fn unanswered(&mut self) -> Result<u64, Error> {
        match &mut self.windows {
            Some(windows) => {
                if windows.is_full {
                    windows.has_arrived(self.peer)?;
                }
                Ok(windows.sent)
            }
            None => Ok(0),
        }
    }
}

impl Windows {
    fn new(answers: &Communicator, peer: u32, length: u64) -> Result<Self, Error> {
        let mut heard = Slots::new(answers, 1, GREETING_BYTES)?;
        heard.irecv(0, GREETING_BYTES, Some(peer), Some(WINDOW))?;
        let mut said = Slots::new(answers, 1, GREETING_BYTES)?;
        said.bytes_mut(0).fill(FILL);
        Ok(Self { length, sent: 0, is_full: false, arrived: 0, come: 0, heard, said })
    }

    #[inline]
    fn sent(&mut self, mark: Mark) {
        self.sent += 1;
        self.is_full = self.sent == self.length || mark == Mark::Last;
    }

    #[inline]
    fn came(&mut self, peer: u32, mark: Mark) -> Result<(), Error> {
        self.come += 1;
        if self.come < self.length && mark == Mark::More {
            return Ok(());
        }
        self.come = 0;
        // The answer before has arrived: its window was followed by this one.
        if self.said.is_pending(0) {
            self.said.wait(0)?;
        }
        Ok(self.said.isend(0, GREETING_BYTES, peer, WINDOW)?)
    }

    /// Looks for the answer to the window that is full, and begins another.
    #[inline]
    fn has_arrived(&mut self, peer: u32) -> Result<bool, Error> {
        if self.heard.test(0)?.is_none() {
            return Ok(false);
        }
        self.arrived += self.sent;
        (self.sent, self.is_full) = (0, false);
        self.heard.irecv(0, GREETING_BYTES, Some(peer), Some(WINDOW))?;
        Ok(true)
    }
}
