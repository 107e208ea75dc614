//! A connection for each file. It shows the benefit of a persistent session.
//!
//! The first link stays. It carries the first file, and later the addresses that the ranks need to
//! make another link.

use std::io;
use std::os::fd::BorrowedFd;

use measure::clock::{Clock, Deadline};

use super::{Inlet, Kind, LinkEnd, Outlet};
use crate::Error;
use crate::transfer::block::Block;
use crate::transfer::told::LinkTold;

/// Makes another link, with the help of the first one. The sink is ready before the source has the
/// link.
pub(crate) type Makes<L> = Box<dyn FnMut(&mut L) -> Result<Box<L>, Error> + Send>;

/// One side of a link that is made anew for each file.
pub(crate) struct Renewed<L: ?Sized> {
    stays: Box<L>,
    /// Absent until the second file.
    own: Option<Box<L>>,
    makes: Makes<L>,
    /// The counts of dropped links.
    before: LinkTold,
    /// The number of links that were made.
    made: u64,
    /// The time to make them, in ns.
    making_ns: f64,
    clock: Clock,
    deadline: Deadline,
}

impl<L: LinkEnd + ?Sized> Renewed<L> {
    /// Returns a renewed link. The first file takes the link `stays`.
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

    /// Makes the next link. The previous link is dropped when both ranks have the next one: all its
    /// blocks have arrived then.
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
