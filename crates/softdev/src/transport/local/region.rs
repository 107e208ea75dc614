//! Memory regions as the transport sees them, and the check of every access through them.
//!
//! # Invariants
//!
//! * Every access to a program's memory is covered by a live registration. The check is made where
//!   the bytes are accessed.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use verbs::abi::*;

use crate::memory::arena::View;
use crate::memory::copy::Piece;
use crate::memory::layout::{SharedMr, mr_index};
use crate::sys::limits::MRS;
use crate::transport::local::host::Peer;
use crate::transport::local::place::Place;

/// Any access by a peer.
pub(crate) const REMOTE: u32 = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// A copy of this process's regions that no peer can write. This process checks its own reads and
/// writes against the copy, so a peer that overwrites the arena cannot mislead it.
pub(crate) static OWN: [SharedMr; MRS] = [const { SharedMr::new() }; MRS];

/// The keys of this process.
pub(crate) static KEYS: Mutex<Keys> = Mutex::new(Keys { fresh: 0, freed: Vec::new() });

pub(crate) struct Keys {
    /// Entries from this one on were never used.
    fresh: u32,
    /// Keys that were given back. Each is reused with its low byte incremented, so an old key is
    /// detected.
    pub(crate) freed: Vec<u32>,
}

impl Keys {
    pub(crate) fn take(&mut self) -> Option<u32> {
        if (self.fresh as usize) < MRS {
            self.fresh += 1;
            return Some((self.fresh - 1) << 8 | 1);
        }
        let old = self.freed.pop()?;
        // The low byte is never 0, so no key is 0.
        Some((old & !0xff) | ((old & 0xff) % 0xff + 1))
    }
}

/// The use of a memory region.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    /// Gathering a message: any registration allows it.
    Gather,
    /// Scattering a received message, or the answer to a Read: needs `IBV_ACCESS_LOCAL_WRITE`.
    Scatter,
    /// A peer's RDMA Write: needs `IBV_ACCESS_REMOTE_WRITE`.
    RemoteWrite,
    /// A peer's RDMA Read: needs `IBV_ACCESS_REMOTE_READ`.
    RemoteRead,
    /// A peer's atomic: needs `IBV_ACCESS_REMOTE_ATOMIC`.
    RemoteAtomic,
}

impl Access {
    /// Whether it changes this process's own memory.
    pub(crate) fn writes(self) -> bool {
        self == Self::Scatter
    }

    /// Returns the rights that a registration needs, and for a peer's access also the queue pair.
    #[inline]
    pub(crate) const fn needs(self) -> u32 {
        match self {
            Self::Gather => 0,
            Self::Scatter => IBV_ACCESS_LOCAL_WRITE,
            Self::RemoteWrite => IBV_ACCESS_REMOTE_WRITE,
            Self::RemoteRead => IBV_ACCESS_REMOTE_READ,
            Self::RemoteAtomic => IBV_ACCESS_REMOTE_ATOMIC,
        }
    }
}

/// Finds bytes of the process of `view` by key and address, if a live registration in protection
/// domain `pd` covers all of them and allows the access. `peer` is `None` for bytes that a work
/// request of this process names. An element without bytes needs no registration, whatever its key
/// and address: adapters leave it out of the request.
///
/// Memory that a peer's work request names is `Here` only if it is in an arena, which stays mapped
/// whatever becomes of the registration. This holds even for a peer in this process: the program
/// may have unmapped its other memory, and only the kernel finds that out without a crash.
#[inline]
pub(crate) fn locate(
    view: &View,
    peer: Option<&Peer>,
    pd: u32,
    sge: &ibv_sge,
    access: Access,
) -> Option<Place> {
    match locate_bytes(view, peer, pd, sge, access) {
        // After the search, because elements without bytes are rare.
        None if sge.length == 0 => Some(Place::Here(Piece { addr: std::ptr::dangling_mut(), len: 0 })),
        found => found,
    }
}

/// As [`locate`], but an element without bytes needs a registration as well.
#[inline]
fn locate_bytes(view: &View, peer: Option<&Peer>, pd: u32, sge: &ibv_sge, access: Access) -> Option<Place> {
    let addr = sge.addr;
    let length = u64::from(sge.length);
    let is_own = peer.is_none_or(Peer::is_own);
    let mr = if is_own { &OWN[mr_index(sge.lkey) as usize] } else { view.mr(sge.lkey) };
    // Sequentially consistent with the earlier claim of a slot: see `dereg_mr`.
    if sge.lkey == 0 || mr.key.load(SeqCst) != sge.lkey || mr.pd.load(Relaxed) != pd {
        return None;
    }
    if access.needs() & !mr.access.load(Relaxed) != 0 {
        return None;
    }
    let within = addr.checked_sub(mr.addr.load(Relaxed))?;
    if within.checked_add(length)? > mr.length.load(Relaxed) {
        return None;
    }
    let len = sge.length as usize;
    let Some(peer) = peer else {
        return Some(Place::Here(Piece { addr: addr as *mut u8, len }));
    };
    if mr.in_arena.load(Relaxed) == 0 {
        return Some(Place::There { pid: peer.process(), addr, len });
    }
    let at = view.at(mr.offset.load(Relaxed).checked_add(within)?, length)?;
    Some(Place::Here(Piece { addr: at.as_ptr(), len }))
}

/// Returns the rights of a registration of this process.
pub(crate) fn rights(key: u32) -> u32 {
    OWN[mr_index(key) as usize].access.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;
    use crate::memory::layout::TABLES;
    use crate::transport::local::host::host;

    const ALL: u32 = IBV_ACCESS_LOCAL_WRITE | REMOTE;
    const KEY: u32 = 3 << 8 | 1;
    const PD: u32 = 7;
    const ADDR: u64 = 0x7000_0000_0000;

    /// Makes an arena whose owner claims anything of a region: its place in the arena, its length,
    /// its rights.
    fn arena_that_says(offset: u64, length: u64, access: u32) -> Arena {
        let arena = Arena::new("softdev-test", TABLES).unwrap();
        let mr = arena.view.mr(KEY);
        for (to, value) in [(&mr.addr, ADDR), (&mr.length, length), (&mr.offset, offset)] {
            to.store(value, Relaxed);
        }
        for (to, value) in [(&mr.pd, PD), (&mr.access, access), (&mr.in_arena, 1), (&mr.key, KEY)] {
            to.store(value, Relaxed);
        }
        arena
    }

    /// Whether `length` bytes from an address are found in this arena of another process, and lie
    /// in it.
    fn is_found(arena: Arena, addr: u64, length: u32, access: Access) -> bool {
        let peer = Peer::with_arena(arena.view);
        let own = host().unwrap();
        let view = peer.view(&own.arena.view);
        match locate(view, Some(&peer), PD, &ibv_sge { addr, length, lkey: KEY }, access) {
            Some(Place::Here(piece)) => {
                assert!(view.offset_of(piece.addr as u64, piece.len as u64).is_some());
                true
            }
            Some(Place::There { .. }) => unreachable!("the region is said to be in the arena"),
            None => false,
        }
    }

    #[test]
    fn what_a_peer_says_of_its_regions_does_not_lead_out_of_its_arena() {
        let end = TABLES + (1 << 30) * 64; // Of the largest arena; smaller ones end before.
        for (offset, length) in
            [(end - 8, 4096), (u64::MAX - 10, 4096), (u64::MAX, u64::MAX), (end, 1 << 20), (0, u64::MAX)]
        {
            for (within, bytes) in [(0, 64), (4000, 64), (length - 64, 64), (0, u32::MAX)] {
                let arena = arena_that_says(offset, length, ALL);
                let found = is_found(arena, ADDR.wrapping_add(within), bytes, Access::RemoteWrite);
                assert!(!found || offset == 0, "{offset:#x} {length:#x}: {within:#x}");
            }
        }
        assert!(is_found(arena_that_says(TABLES, 4096, ALL), ADDR + 4032, 64, Access::RemoteWrite));
        assert!(!is_found(arena_that_says(TABLES, 4096, ALL), ADDR + 4033, 64, Access::RemoteWrite));
        assert!(!is_found(arena_that_says(TABLES, 4096, ALL), ADDR - 1, 64, Access::RemoteWrite));
    }

    #[test]
    fn an_access_needs_its_own_flag() {
        let accesses = [Access::RemoteWrite, Access::RemoteRead, Access::RemoteAtomic, Access::Scatter];
        for access in accesses {
            assert!(is_found(arena_that_says(TABLES, 64, access.needs()), ADDR, 8, access), "{access:?}");
            assert!(
                !is_found(arena_that_says(TABLES, 64, ALL & !access.needs()), ADDR, 8, access),
                "{access:?}"
            );
        }
    }
}
