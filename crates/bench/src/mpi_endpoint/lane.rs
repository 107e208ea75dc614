//! Messages between this rank and one peer.

use mpi::{Slots, Status};

use super::rank::Context;
use super::tag::{GREETING_BYTES, Tag};
use super::windows::Windows;
use crate::Error;
use crate::endpoint::{Batch, Mark};
use crate::point::MpiCall;

/// How many receives one call tests, and after how many unsuccessful calls each receive is tested
/// alone for the rest of the window: some microseconds.
const TOGETHER: usize = 16;
const LOOKS: u32 = 64;

/// The messages to and from one peer.
pub(super) struct Lane {
    /// The peer's rank in MPI.
    pub(super) peer: u32,
    /// Posted receives, each with separate memory, in the order in which messages arrive.
    pub(super) into: Slots,
    /// The receive of the next message, and how many receives before it were not posted again.
    pub(super) head: usize,
    free: usize,
    /// Messages from the head on that are known to have arrived, and unsuccessful tests of several
    /// since the window began.
    ready: usize,
    looks: u32,
    /// Messages that were taken, without greetings.
    pub(super) taken: u64,
    /// The largest message in bytes.
    room: usize,
    /// Whether receives are persistent requests.
    is_persistent: bool,
    /// The windows of a stream; `None` if messages are answered one by one.
    pub(super) windows: Option<Windows>,
}

impl Lane {
    /// Posts receives for messages of a size, except for blocking calls.
    pub(super) fn new(
        context: &Context,
        peer: u32,
        size: usize,
        call: MpiCall,
        receives: usize,
        windows: Option<Windows>,
    ) -> Result<Self, Error> {
        let room = size.max(GREETING_BYTES);
        let mut into = Slots::new(&context.messages, receives, room)?;
        let is_persistent = call == MpiCall::Persistent;
        match call {
            MpiCall::Blocking => {}
            MpiCall::Nonblocking => into.irecv_each(0..receives, room, Some(peer), None)?,
            MpiCall::Persistent => {
                (0..receives).try_for_each(|slot| into.recv_init(slot, room, Some(peer), None))?;
                into.start_all(0..receives)?;
            }
        }
        Ok(Self { peer, into, head: 0, free: 0, ready: 0, looks: 0, taken: 0, room, is_persistent, windows })
    }

    /// Takes the next message, if it has arrived.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<(Tag, usize)>, Error> {
        let slot = self.head;
        let Some(status) = self.status()? else { return Ok(None) };
        Ok(Some((self.took(&status)?, slot)))
    }

    /// Waits for the next message of a one-way stream, or for all messages that are left of a whole
    /// window.
    #[inline]
    pub(super) fn wait_some(&mut self) -> Result<Batch, Error> {
        if self.windows.as_ref().is_some_and(|windows| windows.into.left() > 0) {
            return self.rest_of_window();
        }
        let slot = self.head;
        self.into.wait_each(slot..slot + 1)?;
        let mark = self.took(&self.into.status(slot))?.mark();
        Ok(Batch { messages: 1, mark })
    }

    /// Takes the messages that are left of a whole window. The window is answered before most of
    /// its messages are inspected.
    #[inline]
    fn rest_of_window(&mut self) -> Result<Batch, Error> {
        let Some(windows) = &mut self.windows else { return Ok(Batch { messages: 0, mark: Mark::More }) };
        let count = self.into.count();
        let left = windows.into.left();
        let before_wrap = left.min(count - self.head);
        let [part, wrapped] = [self.head..self.head + before_wrap, 0..left - before_wrap];
        self.into.wait_each(part.clone())?;
        if !wrapped.is_empty() {
            self.into.wait_each(wrapped.clone())?;
        }
        let first = Tag::of(&self.into.status(self.head))?;
        windows.into.came(left, first, Mark::Last);
        windows.answer()?;
        let is_in_midst = first.mark() == Mark::More
            && self.into.are_tagged(part.start + 1..part.end, Tag::Message(Mark::More).number())
            && self.into.are_tagged(wrapped.clone(), Tag::Message(Mark::More).number());
        self.free += left;
        self.head = (self.head + left) % count;
        let batch = match is_in_midst {
            true => Batch { messages: left as u64, mark: Mark::More },
            false => self.end_of_flood(part.chain(wrapped))?,
        };
        self.taken += batch.messages;
        Ok(batch)
    }

    /// Counts the messages that are left of the whole window in which a stream ends, and takes the
    /// next whole window if that was promised. That one is not answered.
    #[cold]
    fn end_of_flood(&mut self, slots: impl Iterator<Item = usize>) -> Result<Batch, Error> {
        let mut batch = Batch { messages: 0, mark: Mark::More };
        for (index, slot) in slots.enumerate() {
            match (Tag::of(&self.into.status(slot))?, batch.mark) {
                (tag @ Tag::Message(_), Mark::More) => {
                    batch = Batch { messages: batch.messages + 1, mark: tag.mark() };
                }
                (Tag::First { .. }, Mark::More) if index == 0 => batch.messages += 1,
                (Tag::Filler, Mark::Last) => {}
                (tag, _) => return Err(out_of_place(tag)),
            }
        }
        for _ in 0..self.windows.as_mut().map_or(0, |windows| windows.into.end()) {
            self.replenish()?;
            let slot = self.head;
            self.into.wait_each(slot..slot + 1)?;
            match Tag::of(&self.into.status(slot))? {
                Tag::Filler => self.advance(),
                tag => return Err(out_of_place(tag)),
            }
        }
        Ok(batch)
    }

    /// Moves on to the next receive.
    #[inline]
    fn advance(&mut self) {
        self.head = if self.head + 1 == self.into.count() { 0 } else { self.head + 1 };
        self.free += 1;
    }

    /// Notes that the message at the head has been taken.
    #[inline]
    fn took(&mut self, status: &Status) -> Result<Tag, Error> {
        self.advance();
        let tag = Tag::of(status)?;
        match tag {
            Tag::Greeting => return Ok(tag),
            Tag::Filler => return Err(out_of_place(tag)),
            Tag::Message(_) | Tag::First { .. } => self.taken += 1,
        }
        if let Some(windows) = &mut self.windows
            && windows.into.came(1, tag, tag.mark())
        {
            windows.answer()?;
            self.looks = 0;
        }
        Ok(tag)
    }

    /// Returns the status of the next message, if it has arrived.
    #[inline]
    fn status(&mut self) -> Result<Option<Status>, Error> {
        let slot = self.head;
        if self.ready > 0 {
            self.ready -= 1;
            return Ok(Some(self.into.status(slot)));
        }
        // All posted receives have completed, and none was posted again.
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

    /// Returns how many messages of a window one call tests: a call for each would take half of the
    /// time of a small message. Messages that do not arrive may mean that the window is the last.
    #[inline]
    fn together(&self) -> usize {
        let are_tested = |windows: &&Windows| self.looks < LOOKS && !windows.is_one_way;
        let Some(windows) = self.windows.as_ref().filter(are_tested) else { return 1 };
        let count = self.into.count();
        TOGETHER.min(windows.into.expected()).min(count - self.head).min(count - self.free)
    }

    /// Posts the receives of taken messages again; does nothing during a whole window.
    #[inline]
    pub(super) fn replenish(&mut self) -> Result<(), Error> {
        if self.windows.as_ref().is_some_and(|windows| windows.into.is_within()) {
            return Ok(());
        }
        while self.free > 0 {
            let count = self.into.count();
            let slot = (self.head + count - self.free) % count;
            let end = count.min(slot + self.free);
            match self.is_persistent {
                true => self.into.start_all(slot..end)?,
                false => self.into.irecv_each(slot..end, self.room, Some(self.peer), None)?,
            }
            self.free -= end - slot;
        }
        Ok(())
    }
}

/// Returns the error of a message that does not belong at this place of a window.
#[cold]
fn out_of_place(tag: Tag) -> Error {
    Error::Mpi { reason: format!("a message ({tag:?}) arrived out of order in its window") }
}
