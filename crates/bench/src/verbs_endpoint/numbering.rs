//! Messages that say their numbers, in their immediate data, and take their places in memory in
//! turn.

use measure::clock::Ticks;
use verbs::Remote;
use verbs::abi::ibv_sge;

use super::address::PeerParams;
use super::buffers::Buffers;
use crate::Error;
use crate::endpoint::{Arrival, Mark};
use crate::topology::{Form, PartSpec};

/// In front of the number of a message that is the last of a burst.
const LAST_BIT: u32 = 1 << 31;
/// In front of the number of a greeting.
const GREETING_BIT: u32 = 1 << 30;
/// What is left for numbers: a point has far fewer messages.
const NUMBER_BITS: u32 = GREETING_BIT - 1;

/// The immediate data of a greeting with a number.
pub(super) fn greeting(number: u32) -> u32 {
    GREETING_BIT | number & NUMBER_BITS
}

/// What immediate data says.
#[inline]
pub(super) fn told(immediate: u32) -> Arrival {
    Arrival {
        mark: if immediate & LAST_BIT == 0 { Mark::More } else { Mark::Last },
        number: u64::from(immediate & NUMBER_BITS),
        lane: 0,
        is_greeting: immediate & GREETING_BIT != 0,
    }
}

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
    pub(super) fn new(spec: &PartSpec, buffers: &Buffers, peer: &PeerParams) -> Result<Self, Error> {
        let element = buffers.elements(spec, 0)?[0];
        let to = peer.target.map(|target| Remote { addr: target.addr, rkey: target.rkey });
        Ok(Self {
            next: 0,
            element,
            to,
            carries: spec.usage.form == Form::Numbered { is_stamped: true },
            taken: u64::MAX,
        })
    }

    /// The next message.
    #[inline]
    pub(super) fn next(&mut self, buffers: &Buffers, mark: Mark) -> Numbered {
        let offset = buffers.slots.offset(self.next) as u64;
        let number = self.next as u32 & NUMBER_BITS;
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
        told(immediate.unwrap_or(GREETING_BIT))
    }

    /// The stamp of the message that was taken last.
    #[inline]
    pub(super) fn carried(&self, buffers: &Buffers, arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        self.carries.then(|| buffers.stamp(self.taken, arrival.number).map(Ticks)).transpose()
    }
}
