//! The two ends of a datagram, as its receiver is told of them: by a number, since a slot has no
//! room for two GIDs.
//!
//! Whoever sends to a process's queue pairs enters the GIDs of both ends in a table of that
//! process's arena, once, and says the entry's number with each datagram. Entries stay; there are
//! as many as eight bits count. A sender that dies while it enters them leaves an entry that nobody
//! uses.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::memory::arena::View;
use crate::memory::layout::{ENDS, SharedEnds};
use crate::transport::local::address::{device_of, gid};
use crate::transport::local::group::halves;
use crate::transport::local::host::Host;
use crate::transport::local::target::Target;
use crate::transport::message::{Datagram, Ends};

/// The one pair of these ends. It stays: there are no more than the host's addresses and the groups
/// that datagrams were sent to make.
pub(crate) fn kept(ends: Ends) -> &'static Ends {
    static KEPT: Mutex<Vec<&Ends>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.iter().find(|found| ***found == ends) {
        return found;
    }
    let made = Box::leak(Box::new(ends));
    kept.push(made);
    made
}

/// The devices' own addresses: those of the sender's device, whose number the datagram says, and of
/// the receiver's.
const OWN: u8 = 0;
/// Not known: the table is full.
const UNKNOWN: u8 = 255;
const _: () = assert!(ENDS as u8 == UNKNOWN - 1, "an entry for each other number");

/// Where the number stands in a slot's word of the sender's queue-pair number, which has 24 bits
/// (IBTA vol. 1, section 3.5.10).
const NUMBER_AT: u32 = 24;

/// The word that says the sender's queue pair and the number of the datagram's ends.
#[inline]
pub(crate) fn sender_word(qp_num: u32, ends: u8) -> u32 {
    qp_num | u32::from(ends) << NUMBER_AT
}

/// The sender's queue pair and the number of the ends.
#[inline]
pub(crate) fn sender_of(word: u32) -> [u32; 2] {
    [word & ((1 << NUMBER_AT) - 1), word >> NUMBER_AT]
}

/// No entry was ever made.
const FREE: u32 = 0;
/// A sender is making it.
const CLAIMED: u32 = 1;
/// It is there.
const SHOWN: u32 = 2;

fn words(ends: &Ends) -> [u64; 4] {
    let [a, b] = halves(&ends[0]);
    let [c, d] = halves(&ends[1]);
    [a, b, c, d]
}

impl SharedEnds {
    /// What it says, once it is there.
    fn said(&self) -> Option<[u64; 4]> {
        let is_shown = self.state.load(Acquire) == SHOWN;
        is_shown.then(|| self.gids.each_ref().map(|word| word.load(Relaxed)))
    }

    /// Makes it, unless somebody else has.
    fn make(&self, ends: [u64; 4]) -> bool {
        if self.state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).is_err() {
            return false;
        }
        self.gids.iter().zip(ends).for_each(|(to, word)| to.store(word, Relaxed));
        self.state.store(SHOWN, Release);
        true
    }
}

/// The number by which the process of an arena knows two ends, if there is room.
fn enter(view: &View, ends: &Ends) -> u8 {
    let ends = words(ends);
    // Two that enter the same at once may make two entries: either says what is so.
    let is_its = |number: &u8| {
        let entry = view.ends(*number);
        entry.said().map_or_else(|| entry.make(ends), |said| said == ends)
    };
    (OWN + 1..UNKNOWN).find(is_its).unwrap_or(UNKNOWN)
}

/// The ends of a number in this process's arena; zeroes where nobody has said them.
#[inline]
pub(crate) fn ends_of(view: &View, number: u8, sender_device: u8, own_device: u8) -> Ends {
    if number == OWN { [gid(sender_device), gid(own_device)] } else { entered(view, number) }
}

fn entered(view: &View, number: u8) -> Ends {
    let said = if number == UNKNOWN { None } else { view.ends(number).said() };
    let [a, b, c, d] = said.unwrap_or_default();
    [(a, b), (c, d)]
        .map(|(high, low)| ibv_gid { raw: (u128::from(high) << 64 | u128::from(low)).to_be_bytes() })
}

impl Target {
    /// The number by which the receiver knows the ends of a datagram. What it was the last time is
    /// remembered, so that sending costs no more than a look at that.
    #[inline]
    pub(crate) fn number_of_ends(&self, host: &Host, datagram: &Datagram) -> u8 {
        let Some(ends) = datagram.ends else { return OWN };
        match self.ends.get() {
            Some((known, number)) if std::ptr::eq(known, ends) => number,
            _ => self.find_ends(host, datagram, ends),
        }
    }

    #[cold]
    fn find_ends(&self, host: &Host, datagram: &Datagram, ends: &'static Ends) -> u8 {
        let number = if datagram.is_to_group() {
            UNKNOWN // Its sender writes the header.
        } else if *ends == [gid(datagram.device), gid(device_of(self.port))] {
            OWN
        } else {
            enter(self.peer.view(&host.arena.view), ends)
        };
        self.ends.set(Some((ends, number)));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;
    use crate::memory::layout::TABLES;

    fn pair(source: u8, destination: u8) -> Ends {
        [source, destination]
            .map(|last| ibv_gid { raw: std::array::from_fn(|i| if i == 15 { last } else { 7 }) })
    }

    #[test]
    fn ends_have_one_number_each_until_the_table_is_full() {
        let arena = Arena::new("rdmascope-softdev-ends", TABLES).unwrap();
        let view = &arena.view;
        let first = enter(view, &pair(1, 2));
        assert_eq!([enter(view, &pair(2, 1)), enter(view, &pair(1, 2))], [first + 1, first]);
        assert_eq!(ends_of(view, first, 0, 0), pair(1, 2));
        // One that dies there is passed over.
        view.ends(first + 2).state.store(CLAIMED, Relaxed);
        assert_eq!(enter(view, &pair(3, 3)), first + 3);
        assert_eq!(ends_of(view, first + 2, 0, 0), pair(0, 0).map(|_| ibv_gid::default()));
        let numbers: Vec<_> = (0..=u8::MAX).map(|i| enter(view, &pair(4, i))).collect();
        assert!(numbers.starts_with(&[first + 4, first + 5]) && numbers.ends_with(&[UNKNOWN; 2]));
        assert_eq!(ends_of(view, UNKNOWN, 0, 0), [ibv_gid::default(); 2]);
        assert_eq!(enter(view, &pair(1, 2)), first, "what is there is found");
        assert_eq!(ends_of(view, OWN, 2, 3), [gid(2), gid(3)]);
    }

    #[test]
    fn a_pair_is_kept_once() {
        let [first, other, again] = [pair(1, 2), pair(2, 1), pair(1, 2)].map(kept);
        assert!(std::ptr::eq(first, again) && !std::ptr::eq(first, other));
        assert_eq!((*first, *other), (pair(1, 2), pair(2, 1)));
    }

    #[test]
    fn a_word_says_both() {
        assert_eq!(sender_of(sender_word(0xab_cdef, 254)), [0xab_cdef, 254]);
        assert_eq!(sender_of(sender_word(5, OWN)), [5, 0]);
    }
}
