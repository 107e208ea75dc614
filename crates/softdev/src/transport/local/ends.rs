//! The GIDs of a datagram's sender and receiver, its ends. A slot names them by a number, because
//! it has no room for two GIDs.
//!
//! A process that sends to another process's queue pairs enters both GIDs once in a table of that
//! process's arena, and states the entry's number in each datagram. Entries are permanent, and
//! eight bits number them. A sender that dies while it makes an entry leaves one that is never
//! used.

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

/// Returns the only copy of a pair of GIDs. It is permanent: there are no more pairs than the
/// host's addresses and the groups that datagrams were sent to make.
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

/// The number for the devices' own GIDs: that of the sender's device, which the datagram names, and
/// that of the receiver's.
const OWN: u8 = 0;
/// The number for unknown GIDs: the table is full.
const UNKNOWN: u8 = 255;
const _: () = assert!(ENDS as u8 == UNKNOWN - 1, "an entry for each other number");

/// The position of the number in the word for the sender's queue-pair number, which has 24 bits
/// (IBTA vol. 1, section 3.5.10).
const NUMBER_AT: u32 = 24;

/// Returns the word for the sender's queue pair and the number of the datagram's GIDs.
#[inline]
pub(crate) fn sender_word(qp_num: u32, ends: u8) -> u32 {
    qp_num | u32::from(ends) << NUMBER_AT
}

/// Returns the sender's queue pair and the number of the GIDs.
#[inline]
pub(crate) fn sender_of(word: u32) -> [u32; 2] {
    [word & ((1 << NUMBER_AT) - 1), word >> NUMBER_AT]
}

/// The entry was never made.
const FREE: u32 = 0;
/// A sender is making the entry.
const CLAIMED: u32 = 1;
/// The entry is valid.
const SHOWN: u32 = 2;

fn words(ends: &Ends) -> [u64; 4] {
    let [a, b] = halves(&ends[0]);
    let [c, d] = halves(&ends[1]);
    [a, b, c, d]
}

impl SharedEnds {
    /// Returns the content of the entry, once it is valid.
    fn said(&self) -> Option<[u64; 4]> {
        let is_shown = self.state.load(Acquire) == SHOWN;
        is_shown.then(|| self.gids.each_ref().map(|word| word.load(Relaxed)))
    }

    /// Makes the entry, unless another sender has.
    fn make(&self, ends: [u64; 4]) -> bool {
        if self.state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).is_err() {
            return false;
        }
        self.gids.iter().zip(ends).for_each(|(to, word)| to.store(word, Relaxed));
        self.state.store(SHOWN, Release);
        true
    }
}

/// Returns the number of two GIDs in a process's table; makes an entry if there is room.
fn enter(view: &View, ends: &Ends) -> u8 {
    let ends = words(ends);
    // Two senders of the same GIDs may make two entries at once: both are correct.
    let is_its = |number: &u8| {
        let entry = view.ends(*number);
        entry.said().map_or_else(|| entry.make(ends), |said| said == ends)
    };
    (OWN + 1..UNKNOWN).find(is_its).unwrap_or(UNKNOWN)
}

/// Returns the GIDs of a number in this process's arena; zeroes if they are unknown.
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
    /// Returns the number by which the receiver knows the GIDs of a datagram. The last result is
    /// remembered, so that sending costs only a look at it.
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
            UNKNOWN // The sender writes the header itself.
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
        // An entry whose sender has died is skipped.
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
