//! Messages that say their numbers, in their immediate data, and take their places in memory in turn.

use measure::clock::Ticks;
use verbs::Remote;
use verbs::abi::ibv_sge;

use super::buffers::Buffers;
use super::{Address, LAST};
use crate::Error;
use crate::endpoint::{Arrival, Mark};
use crate::point::{PointSpec, Stamp};

/// In front of the number of a message that is the last of a burst.
const LAST_BIT: u32 = 1 << 31;

/// What the next message of an end says, and where it stands.
pub(super) struct Numbering {
    next: u64,
    /// The element of the first place.
    element: ibv_sge,
    /// The first place of the peer's target, where messages are written to it.
    to: Option<Remote>,
    /// Whether messages carry a stamp.
    carries: bool,
    /// Receives that were taken before the one that was taken last.
    taken: u64,
}

/// A message, as it is posted.
pub(super) struct Numbered {
    pub(super) immediate: u32,
    pub(super) element: ibv_sge,
    pub(super) to: Option<Remote>,
}

impl Numbering {
    pub(super) fn new(spec: &PointSpec, buffers: &Buffers, peer: &Address) -> Result<Self, Error> {
        let element = buffers.elements(spec)?[0];
        let to = peer.target.map(|target| Remote { addr: target.addr, rkey: target.rkey });
        Ok(Self { next: 0, element, to, carries: spec.stamp == Stamp::Sent, taken: u64::MAX })
    }

    /// The next message.
    #[inline]
    pub(super) fn next(&mut self, buffers: &Buffers, mark: Mark) -> Numbered {
        let offset = buffers.slots.offset(self.next) as u64;
        // A point has far fewer than 2^31 messages.
        let number = self.next as u32 & !LAST_BIT;
        self.next += 1;
        Numbered {
            immediate: if mark == Mark::Last { number | LAST_BIT } else { number },
            element: ibv_sge { addr: self.element.addr + offset, ..self.element },
            to: self.to.map(|to| Remote { addr: to.addr + offset, ..to }),
        }
    }

    /// What the immediate data of the next receive says.
    #[inline]
    pub(super) fn arrived(&mut self, immediate: Option<u32>) -> Arrival {
        self.taken = self.taken.wrapping_add(1);
        match immediate {
            None | Some(LAST) => Arrival { mark: Mark::Last, number: u64::MAX },
            Some(immediate) => {
                let mark = if immediate & LAST_BIT == 0 { Mark::More } else { Mark::Last };
                Arrival { mark, number: u64::from(immediate & !LAST_BIT) }
            }
        }
    }

    /// The stamp of the message that was taken last.
    #[inline]
    pub(super) fn carried(&self, buffers: &Buffers, arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        self.carries.then(|| buffers.stamp(self.taken, arrival.number).map(Ticks)).transpose()
    }
}
