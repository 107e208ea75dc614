//! Numbers that two ranks give each other: what they need to begin calls together and to compare
//! their clocks.
//!
//! # Invariants
//!
//! * A letter is one RDMA Write of a number and, behind it, which letter to this rank it is. The
//!   receiver polls that: what is before it is then there as well
//!   ([`verbs::MemoryRegion::peek`]).
//! * Places are used in turn. A rank gives no more than [`PLACES`] letters before it takes one, of
//!   the other or of a third, that was written after all of those were taken: of a barrier at most
//!   two are not taken yet.

use verbs::abi::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain, Remote, SendRequest};

use crate::Error;
use crate::verbs_endpoint::address::Target;

/// Letters from one rank to another that may be on their way or not taken yet: twice what a
/// comparison of clocks tells at once.
const PLACES: usize = 64;
/// A number and which letter it is.
const LETTER_BYTES: usize = 2 * size_of::<u64>();
const NUMBER_BYTES: usize = size_of::<u64>();

/// A rank's mailboxes for the letters of each other rank, and copies of what it gives them.
pub(crate) struct Mailboxes {
    region: MemoryRegion,
    rank: u32,
    /// By rank.
    others: Vec<Mailbox>,
    /// What is written to any of them, made once: a letter may go right before a stamp.
    request: SendRequest,
}

/// What is between this rank and another.
#[derive(Clone, Copy, Default)]
struct Mailbox {
    given: u64,
    taken: u64,
}

impl Mailboxes {
    pub(crate) fn new(
        domain: &ProtectionDomain,
        kind: MemoryKind,
        rank: u32,
        ranks: u32,
    ) -> Result<Self, Error> {
        let others = vec![Mailbox::default(); ranks as usize];
        let mut buffer = domain.buffer(kind, 2 * others.len() * PLACES * LETTER_BYTES)?;
        buffer.touch();
        let region = domain.register(buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)?;
        let request = SendRequest::write(0, vec![region.sge(0, LETTER_BYTES)?], Remote { addr: 0, rkey: 0 });
        Ok(Self { region, rank, others, request })
    }

    /// Where other ranks write.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        Ok(Target::from(self.region.remote(0)?))
    }

    /// Writes a letter, for a queue pair to that rank, whose mailboxes are there.
    pub(crate) fn letter(&mut self, to: u32, target: Target, number: u64) -> Result<&mut SendRequest, Error> {
        let other = &mut self.others[to as usize];
        let place = (other.given % PLACES as u64) as usize;
        other.given += 1;
        let letter = other.given;
        let copy = self.others.len() * PLACES * LETTER_BYTES + at(to, place);
        self.region.store(copy, number)?;
        self.region.store(copy + NUMBER_BYTES, letter)?;
        self.request.set_element(self.region.sge(copy, LETTER_BYTES)?);
        self.request.set_remote(target.at(at(self.rank, place))?);
        Ok(&mut self.request)
    }

    /// The next letter from a rank, if it is there.
    pub(crate) fn next(&mut self, from: u32) -> Result<Option<u64>, Error> {
        let other = &mut self.others[from as usize];
        let place = at(from, (other.taken % PLACES as u64) as usize);
        if self.region.load(place + NUMBER_BYTES)? != other.taken + 1 {
            return Ok(None);
        }
        other.taken += 1;
        Ok(Some(self.region.load(place)?))
    }
}

/// Where a letter lies among those of a rank.
fn at(rank: u32, place: usize) -> usize {
    (rank as usize * PLACES + place) * LETTER_BYTES
}
