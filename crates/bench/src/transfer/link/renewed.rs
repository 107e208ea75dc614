//! A connection for each file: what it costs not to keep one (R12).
//!
//! The first link stays. It carries the first file, and later what the ends must know of each other
//! to make another one.

use std::io;
use std::os::fd::BorrowedFd;

use measure::clock::{Clock, Deadline};

use super::{Inlet, Kind, LinkEnd, Outlet};
use crate::Error;
use crate::transfer::block::Block;
use crate::transfer::told::LinkTold;

/// Makes another link by way of the one that stays. The source has it no sooner than the sink.
pub(crate) type Makes<L> = Box<dyn FnMut(&mut L) -> Result<Box<L>, Error> + Send>;

/// An end whose files have a link of their own each.
pub(crate) struct Renewed<L: ?Sized> {
    stays: Box<L>,
    /// Absent until the second file.
    own: Option<Box<L>>,
    makes: Makes<L>,
    /// What links have counted that have gone.
    before: LinkTold,
    /// How many were made, and how long that took.
    made: u64,
    making_ns: f64,
    clock: Clock,
    deadline: Deadline,
}

impl<L: LinkEnd + ?Sized> Renewed<L> {
    /// One whose first file takes this link.
    pub(crate) fn new(stays: Box<L>, makes: Makes<L>, clock: Clock) -> Self {
        let deadline = Deadline::after(std::time::Duration::MAX);
        Self {
            stays,
            own: None,
            makes,
            before: LinkTold::default(),
            made: 0,
            making_ns: 0.0,
            clock,
            deadline,
        }
    }

    fn link(&self) -> &L {
        self.own.as_ref().unwrap_or(&self.stays)
    }

    fn link_mut(&mut self) -> &mut L {
        self.own.as_mut().unwrap_or(&mut self.stays)
    }

    /// Makes the next link. The one before goes when both ends have that: all of it has arrived.
    fn make(&mut self) -> Result<(), Error> {
        let begin = self.clock.now();
        let mut next = (self.makes)(&mut self.stays)?;
        next.ends_at(self.deadline);
        if let Some(old) = self.own.replace(next) {
            self.before.add(&old.told());
        }
        self.made += 1;
        self.making_ns += self.clock.ns_f64(self.clock.now().since(begin));
        Ok(())
    }
}

impl<L: LinkEnd + ?Sized> LinkEnd for Renewed<L> {
    fn ends_at(&mut self, deadline: Deadline) {
        self.deadline = deadline;
        self.stays.ends_at(deadline);
        self.link_mut().ends_at(deadline);
    }

    fn told(&self) -> LinkTold {
        let mut all = self.stays.told();
        all.add(&self.before);
        if let Some(own) = &self.own {
            all.add(&own.told());
        }
        LinkTold { renewals: Some(self.made), renewing_ns: Some(self.making_ns), ..all }
    }
}

impl Outlet for Renewed<dyn Outlet + Send> {
    fn block_bytes(&self) -> usize {
        self.link().block_bytes()
    }

    fn room(&mut self) -> Result<&mut dyn Block, Error> {
        self.link_mut().room()
    }

    fn post(&mut self, kind: Kind, bytes: usize) -> Result<(), Error> {
        self.link_mut().post(kind, bytes)
    }

    fn post_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<io::Result<usize>>, Error> {
        self.link_mut().post_file(file, offset, bytes)
    }

    fn answers(&mut self, waits: bool) -> Result<Option<Vec<u8>>, Error> {
        self.link_mut().answers(waits)
    }

    fn renews(&self) -> bool {
        true
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.make()
    }
}

impl Inlet for Renewed<dyn Inlet + Send> {
    fn take(&mut self) -> Result<(Kind, usize), Error> {
        self.link_mut().take()
    }

    fn block(&self) -> &dyn Block {
        self.link().block()
    }

    fn release(&mut self) -> Result<(), Error> {
        self.link_mut().release()
    }

    fn answer(&mut self, answers: &[u8]) -> Result<(), Error> {
        self.link_mut().answer(answers)
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.make()
    }
}
