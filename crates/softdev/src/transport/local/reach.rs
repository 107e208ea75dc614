//! RDMA Writes, Reads and atomics: access to a peer's memory without the peer's process.
//!
//! The requester makes the checks of an adapter's responder (is the operation enabled, does a live
//! registration of the right domain cover the bytes and allow the access) and then accesses the
//! bytes itself. Meanwhile its own entry in the table of queue pairs names the queue pair that it
//! accesses. A process that deregisters memory or ends the connection can therefore wait until it
//! has finished, but not for a process that has died.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use rustix::io::Errno;
use verbs::abi::*;

use crate::memory::copy::{Piece, read_to, write_in_order};
use crate::memory::layout::SharedQp;
use crate::transport::delivery::Delivery;
use crate::transport::local::foreign;
use crate::transport::local::host::Host;
use crate::transport::local::place::Place;
use crate::transport::local::region::locate;
use crate::transport::local::target::Target;
use crate::transport::message::Message;
use crate::transport::remote::{ATOMIC_BYTES, Operation, Remote};

impl Target {
    /// Carries out an operation on the memory of the peer, for the queue pair that `own` shows to
    /// its peers.
    #[inline]
    pub(crate) fn reach(
        &self,
        host: &Host,
        own: &SharedQp,
        remote: &Remote,
        message: &Message<'_>,
    ) -> Delivery {
        let delivery = self.touching(own, || self.reach_checked(host, remote, message));
        if delivery == Delivery::Done && self.watch.is_due() && !self.peer.is_alive() {
            // Its memory still exists, but no process acknowledges any more.
            return Delivery::NoAnswer;
        }
        delivery
    }

    #[inline]
    fn reach_checked(&self, host: &Host, remote: &Remote, message: &Message<'_>) -> Delivery {
        let shared = self.shared();
        if !self.receives(shared) || shared.dest_qp_num.load(Relaxed) != message.src_qp {
            return Delivery::NoAnswer;
        }
        // IBTA vol. 1, section 9.7.4.1: an operation that is not enabled, or for which there are no
        // resources, is invalid.
        let is_write = remote.operation == Operation::Write;
        if remote.access().needs() & !shared.access.load(Relaxed) != 0
            || (!is_write && shared.responder_resources.load(Relaxed) == 0)
        {
            return self.refuse(host, Delivery::Invalid);
        }
        if message.imm.is_some() && !self.awaits_message() {
            return Delivery::NotReady;
        }
        // Without bytes, no key is checked (IBTA vol. 1, section 9.7.4.1.5).
        if message.bytes > 0 {
            let delivery = match self.find_memory(host, remote, message.bytes) {
                Some(place) => self.move_bytes(host, remote, message, place),
                None => Delivery::Denied,
            };
            match delivery {
                Delivery::Done => {}
                Delivery::Denied | Delivery::Invalid => return self.refuse(host, delivery),
                _ => return delivery,
            }
        }
        if message.imm.is_some() { self.complete_write(host, message) } else { Delivery::Done }
    }

    /// Finds bytes that the peer makes accessible.
    #[inline]
    fn find_memory(&self, host: &Host, remote: &Remote, bytes: u64) -> Option<Place> {
        let view = self.peer.view(&host.arena.view);
        let sge = ibv_sge { addr: remote.addr, length: u32::try_from(bytes).ok()?, lkey: remote.key };
        let find = || locate(view, Some(&self.peer), self.shared().pd.load(Relaxed), &sge, remote.access());
        let place = find()?;
        self.warm_up(view, remote.key);
        if matches!(place, Place::Here(_)) {
            return Some(place);
        }
        // The memory may be unmapped as soon as it is deregistered. Either the process that
        // deregisters it sees that this requester accesses it, or this requester sees that it is
        // gone, even if the kernel has no `agree`.
        fence(SeqCst);
        find().filter(|_| self.receives(self.shared()))
    }

    #[inline]
    fn move_bytes(&self, host: &Host, remote: &Remote, message: &Message<'_>, place: Place) -> Delivery {
        if remote.is_atomic() {
            return self.atomic(host, remote, message, place);
        }
        let is_write = remote.operation == Operation::Write;
        match place {
            Place::Here(piece) => {
                // SAFETY: `locate` has found a live registration for as many bytes as the message
                // has, the requester has located the message's pieces, and neither is unmapped
                // meanwhile: see `find_memory`.
                unsafe {
                    if is_write {
                        write_in_order(message.pieces, message.bytes as usize, piece.addr);
                    } else {
                        read_to(piece.addr, message.pieces);
                    }
                }
                Delivery::Done
            }
            Place::There { pid, addr, .. } => self.move_foreign(is_write, pid, addr, message.pieces),
        }
    }

    /// Copies to or from memory that only the peer has mapped.
    #[cold]
    fn move_foreign(&self, is_write: bool, pid: u32, addr: u64, pieces: &[Piece]) -> Delivery {
        // Not to another process that has got the same number since.
        if !self.peer.was_just_alive() {
            return Delivery::NoAnswer;
        }
        let mut at = addr;
        for piece in pieces.iter().filter(|piece| piece.len > 0) {
            let moved = if is_write {
                // SAFETY: the requester has located the piece.
                foreign::write(pid, at, unsafe { std::slice::from_raw_parts(piece.addr, piece.len) })
            } else {
                // SAFETY: as above, to be written to.
                unsafe { foreign::read(pid, at, piece.addr, piece.len) }
            };
            if let Err(errno) = moved {
                return denied(errno);
            }
            at += piece.len as u64;
        }
        Delivery::Done
    }

    /// Carries out an atomic; the requester gets the old value.
    #[inline]
    fn atomic(&self, host: &Host, remote: &Remote, message: &Message<'_>, place: Place) -> Delivery {
        if !remote.addr.is_multiple_of(ATOMIC_BYTES) {
            return Delivery::Invalid; // IBTA vol. 1, section 9.4.5.
        }
        let view = self.peer.view(&host.arena.view);
        let before = match place {
            Place::Here(piece) => here(piece, remote.operation),
            Place::There { pid, addr, .. } => {
                let work = || self.atomic_foreign(pid, addr, remote.operation);
                // Another process holds the lock for long: treated like no answer.
                foreign::exclusively(host, &view.header().locks, remote.addr, work)
                    .unwrap_or(Err(Delivery::NoAnswer))
            }
        };
        match before {
            // SAFETY: the requester has located the pieces, eight bytes together.
            Ok(before) => unsafe { read_to(before.to_ne_bytes().as_ptr(), message.pieces) },
            Err(delivery) => return delivery,
        }
        Delivery::Done
    }

    /// Called under the lock for the word.
    #[cold]
    fn atomic_foreign(&self, pid: u32, addr: u64, operation: Operation) -> Result<u64, Delivery> {
        if !self.peer.was_just_alive() {
            return Err(Delivery::NoAnswer);
        }
        let mut word = [0_u8; ATOMIC_BYTES as usize];
        // SAFETY: the word is writable.
        unsafe { foreign::read(pid, addr, word.as_mut_ptr(), word.len()) }.map_err(denied)?;
        let before = u64::from_ne_bytes(word);
        let after = match operation {
            Operation::CompareSwap { compare, swap } if before == compare => swap,
            Operation::FetchAdd(addend) => before.wrapping_add(addend),
            _ => return Ok(before),
        };
        foreign::write(pid, addr, &after.to_ne_bytes()).map_err(denied)?;
        Ok(before)
    }

    /// Refuses a request as a responder does. A reliable connection fails (class C of IBTA vol. 1,
    /// section 9.9.3), and its owner gets an asynchronous event (section 11.6.3.2); an unreliable
    /// one drops the message.
    #[cold]
    fn refuse(&self, host: &Host, why: Delivery) -> Delivery {
        if self.shared().service.load(Relaxed) == IBV_QPT_RC {
            self.fail(host);
            let denied = why == Delivery::Denied;
            self.raise(host, if denied { IBV_EVENT_QP_ACCESS_ERR } else { IBV_EVENT_QP_REQ_ERR });
        }
        why
    }
}

/// Carries out an atomic on memory that this process has mapped. It is the CPU's own, so no other
/// access comes in between.
#[inline]
fn here(piece: Piece, operation: Operation) -> Result<u64, Delivery> {
    let word = piece.addr.cast::<u64>();
    if !word.is_aligned() {
        return Err(Delivery::Invalid); // A peer may state any address for its region.
    }
    // SAFETY: `locate` has found eight bytes of live memory, which are aligned. Other processes
    // access them, and so may the program, which must use atomics for them as for any memory that
    // an adapter writes to.
    let word = unsafe { AtomicU64::from_ptr(word) };
    Ok(match operation {
        Operation::CompareSwap { compare, swap } => {
            word.compare_exchange(compare, swap, SeqCst, SeqCst).unwrap_or_else(|found| found)
        }
        Operation::FetchAdd(addend) => word.fetch_add(addend, SeqCst),
        Operation::Write | Operation::Read => unreachable!("not an atomic"),
    })
}

/// Returns the result if another process's memory was not accessed.
fn denied(errno: Errno) -> Delivery {
    if errno == Errno::SRCH { Delivery::NoAnswer } else { Delivery::Denied }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_aligned_is_not_touched() {
        let mut words = [0_u64; 3];
        let base = words.as_mut_ptr().cast::<u8>();
        for offset in 1..8 {
            // SAFETY: the word lies in the array.
            let piece = Piece { addr: unsafe { base.add(offset) }, len: 8 };
            assert_eq!(here(piece, Operation::FetchAdd(1)), Err(Delivery::Invalid));
        }
        assert_eq!(here(Piece { addr: base, len: 8 }, Operation::FetchAdd(5)), Ok(0));
        assert_eq!(here(Piece { addr: base, len: 8 }, Operation::CompareSwap { compare: 5, swap: 9 }), Ok(5));
        assert_eq!(words, [9, 0, 0]);
    }
}
