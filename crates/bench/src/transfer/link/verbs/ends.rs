//! Both sides of a link over verbs.

use std::collections::VecDeque;

use measure::clock::Deadline;

use super::connected::{Arrived, Link};
use crate::Error;
use crate::transfer::block::Block;
use crate::transfer::link::{Inlet, Kind, LinkEnd, Outlet, UNREAD_BYTES_MAX};
use crate::transfer::told::LinkTold;

/// The source's side of a link over verbs.
pub(crate) struct VerbsOutlet {
    link: Link,
    /// Answers that have arrived and were not read.
    unread: VecDeque<Vec<u8>>,
    unread_bytes: usize,
}

impl VerbsOutlet {
    /// Makes an outlet of a connected link.
    pub(crate) fn new(link: Link) -> Self {
        Self { link, unread: VecDeque::new(), unread_bytes: 0 }
    }

    /// Copies answers out of their slots, so that a sink with many answers need not wait.
    fn keep_answers(&mut self) -> Result<(), Error> {
        while let Some(Arrived { kind, bytes, .. }) = self.link.arrived() {
            if kind != Kind::Packed || self.unread_bytes > UNREAD_BYTES_MAX {
                return Err(self.link.patience.is_wrong("sent an answer that was not asked for"));
            }
            let mut answers = vec![0; bytes];
            self.link.theirs[self.link.next_slot()].read(0, &mut answers)?;
            self.unread_bytes += bytes;
            self.unread.push_back(answers);
            self.link.release()?;
        }
        Ok(())
    }
}

impl Outlet for VerbsOutlet {
    fn block_bytes(&self) -> usize {
        self.link.block_bytes
    }

    fn room(&mut self) -> Result<&mut dyn Block, Error> {
        loop {
            self.keep_answers()?;
            if self.link.has_room() {
                break;
            }
            self.link.wait(|link| link.has_room() || link.arrived().is_some())?;
        }
        let slot = self.link.room()?;
        Ok(&mut self.link.own[slot])
    }

    fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error> {
        self.link.look()?;
        self.link.post(kind, bytes)
    }

    fn answers(&mut self, waits: bool) -> Result<Option<Vec<u8>>, Error> {
        self.link.poll()?;
        self.keep_answers()?;
        if waits && self.unread.is_empty() {
            self.link.wait(|link| link.arrived().is_some())?;
            self.keep_answers()?;
        }
        let answers = self.unread.pop_front();
        self.unread_bytes -= answers.as_ref().map_or(0, Vec::len);
        Ok(answers)
    }
}

impl LinkEnd for VerbsOutlet {
    fn ends_at(&mut self, deadline: Deadline) {
        self.link.patience.deadline = deadline;
    }

    fn told(&self) -> LinkTold {
        self.link.told(self.link.blocks(true))
    }
}

/// The sink's side of a link over verbs.
pub(crate) struct VerbsInlet(pub(crate) Link);

impl Inlet for VerbsInlet {
    fn take(&mut self) -> Result<(Kind, usize), Error> {
        self.0.look()?;
        self.0.wait(|link| link.arrived().is_some())?;
        let arrived = self.0.arrived().ok_or_else(|| self.0.patience.is_gone("it sends nothing"))?;
        Ok((arrived.kind, arrived.bytes))
    }

    fn block(&self) -> &dyn Block {
        &self.0.theirs[self.0.next_slot()]
    }

    fn release(&mut self) -> Result<(), Error> {
        self.0.release()
    }

    fn answer(&mut self, answers: &[u8]) -> Result<(), Error> {
        let slot = self.0.room()?;
        self.0.own[slot].write(0, answers)?;
        self.0.post(Kind::Packed, answers.len())
    }
}

impl LinkEnd for VerbsInlet {
    fn ends_at(&mut self, deadline: Deadline) {
        self.0.patience.deadline = deadline;
    }

    fn told(&self) -> LinkTold {
        self.0.told(self.0.blocks(false))
    }
}
