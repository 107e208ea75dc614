//! Messages that carry their numbers in their immediate data and take their positions in memory in
//! turn.

use measure::clock::Ticks;
use verbs::Remote;
use verbs::abi::ibv_sge;

use super::address::PeerParams;
use super::buffers::Buffers;
use crate::Error;
use crate::endpoint::{Arrival, Mark};
use crate::topology::{Form, PartSpec};

/// The bit before the number of the last message of a burst.
const LAST_BIT: u32 = 1 << 31;
/// The bit before the number of a greeting.
const GREETING_BIT: u32 = 1 << 30;
/// The bits of numbers: a point has far fewer messages.
const NUMBER_BITS: u32 = GREETING_BIT - 1;

/// Returns the immediate data of a greeting with a number.
pub(super) fn greeting(number: u32) -> u32 {
    GREETING_BIT | number & NUMBER_BITS
}

/// Returns the arrival that immediate data describes.
#[inline]
pub(super) fn told(immediate: u32) -> Arrival {
    Arrival {
        mark: if immediate & LAST_BIT == 0 { Mark::More } else { Mark::Last },
        number: u64::from(immediate & NUMBER_BITS),
        lane: 0,
        is_greeting: immediate & GREETING_BIT != 0,
    }
}

/// The number and the position of the next message of a rank.
pub(super) struct Numbering {
    next: u64,
    /// The element of the first position.
    element: ibv_sge,
    /// The first position of the peer's target, if messages are written to it.
    to: Option<Remote>,
    /// Whether messages carry a stamp.
    carries: bool,
    /// How many receives were taken before the last one.
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

    /// Returns the next message.
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

    /// Returns the arrival that the immediate data of the next receive describes.
    #[inline]
    pub(super) fn arrived(&mut self, immediate: Option<u32>) -> Arrival {
        self.taken = self.taken.wrapping_add(1);
        told(immediate.unwrap_or(GREETING_BIT))
    }

    /// Returns the stamp of the message that was taken last.
    #[inline]
    pub(super) fn carried(&self, buffers: &Buffers, arrival: &Arrival) -> Result<Option<Ticks>, Error> {
        self.carries.then(|| buffers.stamp(self.taken, arrival.number).map(Ticks)).transpose()
    }
}
