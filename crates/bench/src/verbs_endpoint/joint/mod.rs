//! Joint operations by RDMA Writes: collective operations and the halo exchange.
//!
//! ```text
//! dissemination.rs, doubling.rs, ring.rs, halo.rs ─► schedule.rs: the steps of a rank, as data
//!                                                        ▼
//!        exchange.rs: memory and work requests for it ─► endpoint/joint.rs makes the calls
//!                           mailboxes.rs: numbers from one rank to another ─┘
//! ```
//!
//! Schedules are made and tested without a device.

mod dissemination;
mod doubling;
mod exchange;
mod halo;
mod mailboxes;
mod reduce;
mod ring;
mod schedule;
#[cfg(test)]
mod tests;

use verbs::{MemoryKind, ProtectionDomain, SendRequest};

use self::exchange::Unlinked;
pub(super) use self::exchange::{Act, Exchange};
use self::mailboxes::Mailboxes;
pub(super) use self::reduce::reduce;
use self::schedule::Schedule;
use super::address::{Target, Targets};
use crate::Error;
use crate::endpoint::collectives::{Algorithm, Collective, CollectiveSpec, Joint};
use crate::endpoint::contents::{CLEARED, Contents, compare, side_expected, sides};
use crate::patterns::halo::choices::SIDES;
use crate::point::Memory;
use crate::topology::PartSpec;

/// A joint operation of ranks that are not connected yet.
pub(super) struct Prepared {
    joint: Joint,
    rank: u32,
    ranks: u32,
    inline_bytes: usize,
    measured: Unlinked,
    control: Unlinked,
    mailboxes: Mailboxes,
}

impl Prepared {
    /// Creates the memory for the joint operation of a part, if it has one. The device's messages
    /// have at most `message_most` bytes.
    pub(super) fn new(
        domain: &ProtectionDomain,
        spec: &PartSpec,
        rank: u32,
        message_most: u64,
    ) -> Result<Option<Self>, Error> {
        let Some(joint) = spec.joint else { return Ok(None) };
        let ranks = spec.links.ranks();
        let kind = match spec.message.memory {
            Memory::Device => MemoryKind::Device,
            Memory::Process => MemoryKind::Process,
        };
        let inline_bytes = usize::try_from(spec.inline_bytes()).unwrap_or(usize::MAX);
        let measured = Unlinked::new(domain, kind, schedule(joint, rank, ranks)?, message_most)?;
        let agrees = dissemination::extreme(rank, ranks, size_of::<u64>());
        let control = Unlinked::new(domain, kind, agrees, message_most)?;
        let mailboxes = Mailboxes::new(domain, kind, rank, ranks)?;
        Ok(Some(Self { joint, rank, ranks, inline_bytes, measured, control, mailboxes }))
    }

    pub(super) fn targets(&self) -> Result<Targets, Error> {
        Ok(Targets {
            measured: self.measured.target()?,
            control: self.control.target()?,
            mailboxes: self.mailboxes.target()?,
        })
    }

    /// Connects to the other ranks: `other` returns the queue pair to each, and its targets.
    pub(super) fn link(
        self,
        other: impl Fn(u32) -> Result<(usize, Targets), Error>,
    ) -> Result<Joined, Error> {
        let Self { joint, rank, ranks, inline_bytes, measured, control, mailboxes } = self;
        let measured =
            measured.link(rank, inline_bytes, |to| other(to).map(|(lane, to)| (lane, to.measured)))?;
        let control =
            control.link(rank, inline_bytes, |to| other(to).map(|(lane, to)| (lane, to.control)))?;
        let known = |to: u32| if to == rank { Ok(None) } else { other(to).map(Some) };
        let known = (0..ranks).map(known).collect::<Result<Vec<_>, Error>>()?;
        let others = known.into_iter().map(|known| known.map(|(lane, to)| (lane, to.mailboxes))).collect();
        Ok(Joined { joint, rank, ranks, measured, control, mailboxes, others })
    }
}

/// A joint operation of connected ranks.
pub(super) struct Joined {
    joint: Joint,
    rank: u32,
    ranks: u32,
    /// The measured calls.
    pub(super) measured: Exchange,
    /// The calls by which ranks start together.
    pub(super) control: Exchange,
    /// The numbers between two ranks.
    pub(super) mailboxes: Mailboxes,
    /// The queue pair to each rank and its mailboxes, by rank; `None` for this rank.
    others: Vec<Option<(usize, Target)>>,
}

impl Joined {
    /// Returns the queue pair to a rank, and the request of a letter to it.
    pub(super) fn letter(&mut self, to: u32, number: u64) -> Result<(usize, &mut SendRequest), Error> {
        let known = self.others.get(to as usize).copied().flatten();
        let (lane, target) = known.ok_or_else(|| Error::PeerAddress {
            reason: format!("rank {} has no mailbox at rank {to}", self.rank),
        })?;
        Ok((lane, self.mailboxes.letter(to, target, number)?))
    }

    /// Fills the memory with data that only this rank sends.
    pub(super) fn fill(&mut self) -> Result<(), Error> {
        match self.joint {
            Joint::Collective(spec) => {
                self.measured.given = self.contents(spec).given();
                self.measured.reduced_by = (spec.element, spec.reduction);
            }
            Joint::Halo(spec) => {
                let given = sides(self.rank, spec.side_bytes);
                for side in 0..SIDES {
                    let at = side * spec.side_bytes;
                    self.measured.fill(side, &given[at..at + spec.side_bytes])?;
                }
            }
        }
        Ok(())
    }

    /// Clears the result of the last call.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.measured.clear(CLEARED)
    }

    /// Compares the result of the last call with the expected one.
    pub(super) fn verify(&self) -> Result<(), Error> {
        match self.joint {
            Joint::Collective(spec) => self.contents(spec).verify(&self.measured.vector),
            Joint::Halo(spec) => (0..SIDES).try_for_each(|side| {
                let expected = side_expected(spec, self.rank, side);
                compare("the halo exchange", self.rank, &expected, &self.measured.arrived(side)?)
            }),
        }
    }

    /// Returns whether this is rank 0.
    pub(super) fn is_first(&self) -> bool {
        self.rank == 0
    }

    fn contents(&self, spec: CollectiveSpec) -> Contents {
        Contents { spec, rank: self.rank, ranks: self.ranks }
    }
}

/// Returns the schedule of a rank in a call.
///
/// # Errors
/// [`Error::Impossible`] if this number of ranks cannot do it over verbs.
fn schedule(joint: Joint, rank: u32, ranks: u32) -> Result<Schedule, Error> {
    let spec = match joint {
        Joint::Collective(spec) => spec,
        Joint::Halo(spec) => return Ok(halo::exchange(spec, rank)),
    };
    if let Some(refusal) = spec.over_verbs(ranks) {
        let reason = format!("{} is not possible: {}", refusal.what, refusal.why);
        return Err(Error::Impossible { reason });
    }
    let CollectiveSpec { operation, size_bytes, element, ways, .. } = spec;
    Ok(match (operation, spec.algorithm()) {
        (Collective::Barrier, _) => dissemination::allgather(rank, ranks, ways, 0),
        (Collective::Allreduce, Algorithm::Ring) => ring::allreduce(rank, ranks, size_bytes, element.bytes()),
        (Collective::Allreduce, _) => doubling::allreduce(rank, ranks, size_bytes),
        (_, Algorithm::Dissemination) => dissemination::allgather(rank, ranks, ways, size_bytes),
        (_, Algorithm::RecursiveDoubling) => doubling::allgather(rank, ranks, size_bytes),
        (_, Algorithm::Ring) => ring::allgather(rank, ranks, size_bytes),
    })
}
