//! Numbers between two ranks, which they need to begin calls together and to compare their clocks.
//!
//! # Invariants
//!
//! * A letter is one RDMA Write of a number, followed by the index of the letter to this rank. The
//!   receiver polls the index: the number before it has then arrived as well
//!   ([`verbs::MemoryRegion::peek`]).
//! * Places are used in turn. A rank sends no more than [`PLACES`] letters before it takes one, of
//!   the same or of a third rank, that was written after all of those were taken: in a barrier, at
//!   most two are not taken yet.

use verbs::abi::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain, Remote, SendRequest};

use crate::Error;
use crate::verbs_endpoint::address::Target;

/// The most letters from one rank to another that may be under way or not taken yet: twice as many
/// as a comparison of clocks sends at once.
const PLACES: usize = 64;
/// The size of a number and the index of its letter.
const LETTER_BYTES: usize = 2 * size_of::<u64>();
const NUMBER_BYTES: usize = size_of::<u64>();

/// A rank's mailboxes for the letters of each other rank, and copies of the letters that it sends.
pub(crate) struct Mailboxes {
    region: MemoryRegion,
    rank: u32,
    /// The mailboxes, by rank.
    others: Vec<Mailbox>,
    /// The request of every letter, created once: a letter may be sent right before a time stamp.
    request: SendRequest,
}

/// The letters between this rank and another.
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

    /// Returns the memory that other ranks write to.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        Ok(Target::from(self.region.remote(0)?))
    }

    /// Returns the request of a letter, for a queue pair to the rank `to` with its mailboxes at
    /// `target`.
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

    /// Returns the number of the next letter from a rank, if it has arrived.
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

/// Returns the offset of a letter in the mailbox of a rank.
fn at(rank: u32, place: usize) -> usize {
    (rank as usize * PLACES + place) * LETTER_BYTES
}
