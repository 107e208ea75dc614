//! Memory regions as the transport sees them, and the check of every access through one.
//!
//! # Invariants
//!
//! * Every access to a program's memory is covered by a live registration: checked where the bytes
//!   are touched.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use verbs::abi::*;

use crate::memory::arena::View;
use crate::memory::copy::Piece;
use crate::memory::layout::{SharedMr, mr_index};
use crate::sys::limits::MRS;
use crate::transport::local::host::Peer;
use crate::transport::local::place::Place;

/// Any access of a peer's.
pub(crate) const REMOTE: u32 = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// This process's regions once more, where no peer can write: what this process itself reads and
/// writes is checked against these, so that a peer that scribbles in the arena cannot lead it
/// astray.
pub(crate) static OWN: [SharedMr; MRS] = [const { SharedMr::new() }; MRS];

/// Keys of this process.
pub(crate) static KEYS: Mutex<Keys> = Mutex::new(Keys { fresh: 0, freed: Vec::new() });

pub(crate) struct Keys {
    /// Entries from here on were never used.
    fresh: u32,
    /// Keys that were given back; each comes again with its low byte counted up, so that an old key
    /// is found out.
    pub(crate) freed: Vec<u32>,
}

impl Keys {
    pub(crate) fn take(&mut self) -> Option<u32> {
        if (self.fresh as usize) < MRS {
            self.fresh += 1;
            return Some((self.fresh - 1) << 8 | 1);
        }
        let old = self.freed.pop()?;
        // The low byte is never 0, so that no key is.
        Some((old & !0xff) | ((old & 0xff) % 0xff + 1))
    }
}

/// What a memory region is used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    /// Gathering a message: any registration allows it.
    Gather,
    /// Scattering a received message, or what was read: needs `IBV_ACCESS_LOCAL_WRITE`.
    Scatter,
    /// A peer's RDMA write: needs `IBV_ACCESS_REMOTE_WRITE`.
    RemoteWrite,
    /// A peer's RDMA read: needs `IBV_ACCESS_REMOTE_READ`.
    RemoteRead,
    /// A peer's atomic: needs `IBV_ACCESS_REMOTE_ATOMIC`.
    RemoteAtomic,
}

impl Access {
    /// Whether it changes this process's own memory.
    pub(crate) fn writes(self) -> bool {
        self == Self::Scatter
    }

    /// What a registration, and for a peer's access the queue pair, must allow.
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
/// domain `pd` covers all of them and allows the access. `peer` is `None` for bytes that this
/// process's own work request names. An element without bytes needs no registration, whatever its
/// key and address: adapters leave it out of the request.
///
/// What a peer's work request names is `Here` only in an arena, which stays mapped whatever becomes
/// of the registration. That holds for a peer in this process, too: the program may have unmapped
/// its other memory, which only the kernel finds out without dying of it.
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

/// As [`locate`], where an element without bytes needs a registration as well.
#[inline]
fn locate_bytes(view: &View, peer: Option<&Peer>, pd: u32, sge: &ibv_sge, access: Access) -> Option<Place> {
    let addr = sge.addr;
    let length = u64::from(sge.length);
    let is_own = peer.is_none_or(Peer::is_own);
    let mr = if is_own { &OWN[mr_index(sge.lkey) as usize] } else { view.mr(sge.lkey) };
    // Sequentially consistent with the claim of a slot before it: see `dereg_mr`.
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

/// What a registration of this process allows.
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

    /// An arena whose owner says of a region what it likes: where it is in the arena, its length,
    /// what it allows.
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

    /// Whether so many bytes from an address are found in such an arena of another process, and lie
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
