//! Memory regions, and the check of every access through one.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::context::{Ctx, Pd};
use crate::host::{Host, Peer, host};
use crate::memory::arena::View;
use crate::memory::copy::Piece;
use crate::memory::layout::SharedMr;
use crate::memory::layout::mr_index;
use crate::sys::errno::fail;
use crate::sys::limits::MRS;
use crate::sys::probe::{can_be_pinned, memory_bytes};
use crate::transport::local::calibrate::calibrate;
use crate::transport::local::place::Place;

/// Any access of a peer's.
pub(crate) const REMOTE: u32 = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// This process's regions once more, where no peer can write: what this process itself reads and writes is checked
/// against these, so that a peer that scribbles in the arena cannot lead it astray.
static OWN: [SharedMr; MRS] = [const { SharedMr::new() }; MRS];

/// Keys of this process.
static KEYS: Mutex<Keys> = Mutex::new(Keys { fresh: 0, freed: Vec::new() });

struct Keys {
    /// Entries from here on were never used.
    fresh: u32,
    /// Keys that were given back; each comes again with its low byte counted up, so that an old key is found out.
    freed: Vec<u32>,
}

impl Keys {
    fn take(&mut self) -> Option<u32> {
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

/// Finds bytes of the process of `view` by key and address, if a live registration in protection domain `pd` covers
/// all of them and allows the access. `peer` is `None` for bytes that this process's own work request names. An element
/// without bytes needs no registration, whatever its key and address: adapters leave it out of the request.
///
/// What a peer's work request names is `Here` only in an arena, which stays mapped whatever becomes of the registration. That
/// holds for a peer in this process, too: the program may have unmapped its other memory, which only the kernel finds out
/// without dying of it.
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
    let (addr, length) = (sge.addr, u64::from(sge.length));
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

pub(crate) unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    let access = access.cast_unsigned();
    let Ok(host) = host() else { return fail(libc::ENODEV) };
    if let Err(error) = check(host, addr as u64, length, access) {
        return fail(error);
    }
    // SAFETY: the caller gives a live domain of this device.
    let pd = unsafe { &*pd.cast::<Pd>() };
    let Some(key) = KEYS.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return fail(libc::ENOMEM);
    };
    publish(host, key, pd, addr as u64, length as u64, access);
    pd.children.fetch_add(1, Relaxed);
    let raw = (&raw const *pd).cast_mut().cast::<ibv_pd>();
    let mr = ibv_mr {
        context: pd.ibv.context,
        pd: raw,
        addr,
        length,
        handle: mr_index(key),
        lkey: key,
        rkey: key,
    };
    Box::into_raw(Box::new(mr))
}

/// Whether bytes can be registered with these rights, or the error number.
pub(crate) fn check(host: &Host, addr: u64, length: usize, access: u32) -> Result<(), c_int> {
    let writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    // man ibv_reg_mr: remote write and atomic need local write too.
    if length == 0 || (access & writes != 0 && access & IBV_ACCESS_LOCAL_WRITE == 0) {
        return Err(libc::EINVAL);
    }
    let length = length as u64;
    if addr.checked_add(length).is_none() {
        return Err(libc::EFAULT);
    }
    // Pages on demand need not be there yet, and those of the arena always are.
    if access & IBV_ACCESS_ON_DEMAND != 0 || host.arena.view.offset_of(addr, length).is_some() {
        return Ok(());
    }
    if length > memory_bytes() {
        return Err(libc::ENOMEM);
    }
    let to_write = access & IBV_ACCESS_LOCAL_WRITE != 0;
    if can_be_pinned(addr, length, to_write) { Ok(()) } else { Err(libc::EFAULT) }
}

/// What a registration of this process allows.
pub(crate) fn rights(key: u32) -> u32 {
    OWN[mr_index(key) as usize].access.load(Relaxed)
}

/// Makes a region known, to this process and its peers.
pub(crate) fn publish(host: &Host, key: u32, pd: &Pd, addr: u64, length: u64, access: u32) {
    calibrate(host, usize::try_from(length).unwrap_or(usize::MAX));
    let offset = host.arena.view.offset_of(addr, length);
    for mr in [&OWN[mr_index(key) as usize], host.arena.view.mr(key)] {
        mr.pd.store(pd.ibv.handle, Relaxed);
        mr.access.store(access, Relaxed);
        mr.addr.store(addr, Relaxed);
        mr.length.store(length, Relaxed);
        mr.in_arena.store(u32::from(offset.is_some()), Relaxed);
        mr.offset.store(offset.unwrap_or(0), Relaxed);
        mr.key.store(key, Release);
    }
}

pub(crate) unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    // SAFETY: the caller gives a live region that reg_mr made, and does not use it again.
    let mr = unsafe { Box::from_raw(mr) };
    // SAFETY: a region's domain lives at least as long as the region.
    let pd = unsafe { &*mr.pd.cast::<Pd>() };
    withdraw(pd, mr.lkey);
    pd.children.fetch_sub(1, Relaxed);
    KEYS.lock().unwrap_or_else(PoisonError::into_inner).freed.push(mr.lkey);
    0
}

/// Takes a region away, and waits until nobody is at work in it.
pub(crate) fn withdraw(pd: &Pd, key: u32) {
    let own = &OWN[mr_index(key) as usize];
    own.key.store(0, SeqCst);
    if let Ok(host) = host() {
        host.arena.view.mr(key).key.store(0, SeqCst);
    }
    // Whoever has found the region before finishes. Messages into memory of the arena need no waiting for, since that
    // stays where it is and their receives are not complete before; of a peer's own access nobody learns otherwise.
    // SAFETY: a domain's context lives at least as long as the domain.
    let ctx = unsafe { Ctx::from(pd.ibv.context) };
    if own.access.load(Relaxed) & REMOTE != 0 {
        ctx.await_access(pd.ibv.handle);
    }
    if own.in_arena.load(Relaxed) == 0 {
        ctx.settle(pd.ibv.handle);
    }
}

pub(crate) unsafe extern "C" fn alloc_buffer(_: *mut ibv_context, len: usize) -> *mut c_void {
    let Ok(host) = host() else { return fail(libc::ENODEV) };
    let Some(offset) = host.arena.allocate(len as u64) else { return fail(libc::ENOMEM) };
    host.arena.view.at(offset, len as u64).map_or_else(|| fail(libc::ENOMEM), |at| at.as_ptr().cast())
}

pub(crate) unsafe extern "C" fn free_buffer(_: *mut ibv_context, addr: *mut c_void, len: usize) {
    let Ok(host) = host() else { return };
    if let Some(offset) = host.arena.view.offset_of(addr as u64, len as u64) {
        host.arena.free(offset, len as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;
    use crate::memory::layout::TABLES;

    const ALL: u32 = IBV_ACCESS_LOCAL_WRITE | REMOTE;
    const KEY: u32 = 3 << 8 | 1;
    const PD: u32 = 7;
    const ADDR: u64 = 0x7000_0000_0000;

    /// An arena whose owner says of a region what it likes: where it is in the arena, its length, what it allows.
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

    /// Whether so many bytes from an address are found in such an arena of another process, and lie in it.
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
    fn only_memory_that_is_there_is_registered_but_on_demand() {
        let host = host().unwrap();
        let there = [0_u8; 64];
        let (nowhere, everything) = (8, usize::MAX - 8);
        assert_eq!(check(host, there.as_ptr() as u64, 64, ALL), Ok(()));
        assert_eq!(check(host, nowhere, 64, 0), Err(libc::EFAULT));
        assert_eq!(check(host, nowhere, everything, 0), Err(libc::ENOMEM), "more than any machine has");
        for length in [64, everything] {
            assert_eq!(check(host, nowhere, length, ALL | IBV_ACCESS_ON_DEMAND), Ok(()));
        }
        let buffer = host.arena.allocate(1 << 20).unwrap();
        let address = host.arena.view.at(buffer, 1 << 20).unwrap().as_ptr() as u64;
        assert_eq!(check(host, address, 1 << 20, ALL), Ok(()));
        host.arena.free(buffer, 1 << 20);
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
