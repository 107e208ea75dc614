//! Registering and deregistering memory regions; memory of the device.

use std::ffi::{c_int, c_void};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use verbs::abi::*;

use crate::memory::layout::mr_index;
use crate::objects::context::{Ctx, Pd};
use crate::sys::errno::fail;
use crate::sys::probe::{can_be_pinned, memory_bytes};
use crate::transport::local::calibrate::calibrate;
use crate::transport::local::host::{Host, host};
use crate::transport::local::region::{KEYS, OWN, REMOTE};

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
    // SAFETY: the caller passes a live domain of this device.
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

/// Checks whether bytes can be registered with these rights; the error is an error number.
pub(crate) fn check(host: &Host, addr: u64, length: usize, access: u32) -> Result<(), c_int> {
    let writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    // man ibv_reg_mr: remote writes and atomics also need local write access.
    if length == 0 || (access & writes != 0 && access & IBV_ACCESS_LOCAL_WRITE == 0) {
        return Err(libc::EINVAL);
    }
    let length = length as u64;
    if addr.checked_add(length).is_none() {
        return Err(libc::EFAULT);
    }
    // On-demand pages need not exist yet, and pages of the arena always do.
    if access & IBV_ACCESS_ON_DEMAND != 0 || host.arena.view.offset_of(addr, length).is_some() {
        return Ok(());
    }
    if length > memory_bytes() {
        return Err(libc::ENOMEM);
    }
    let to_write = access & IBV_ACCESS_LOCAL_WRITE != 0;
    if can_be_pinned(addr, length, to_write) { Ok(()) } else { Err(libc::EFAULT) }
}

/// Publishes a region to this process and its peers.
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
    // SAFETY: the caller passes a live region that reg_mr made, and does not use it again.
    let mr = unsafe { Box::from_raw(mr) };
    // SAFETY: a region's domain lives at least as long as the region.
    let pd = unsafe { &*mr.pd.cast::<Pd>() };
    withdraw(pd, mr.lkey);
    pd.children.fetch_sub(1, Relaxed);
    KEYS.lock().unwrap_or_else(PoisonError::into_inner).freed.push(mr.lkey);
    0
}

/// Removes a region, and waits until no process accesses it.
pub(crate) fn withdraw(pd: &Pd, key: u32) {
    let own = &OWN[mr_index(key) as usize];
    own.key.store(0, SeqCst);
    if let Ok(host) = host() {
        host.arena.view.mr(key).key.store(0, SeqCst);
    }
    // Wait for requesters that have found the region before. Messages into memory of the arena need
    // no wait: that memory stays mapped, and their receives are not complete earlier. A peer's own
    // access needs one, because nothing else reports its end.
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
    use crate::transport::local::region::REMOTE;

    const ALL: u32 = IBV_ACCESS_LOCAL_WRITE | REMOTE;

    #[test]
    fn only_memory_that_is_there_is_registered_but_on_demand() {
        let host = host().unwrap();
        let there = [0_u8; 64];
        let nowhere = 8;
        let everything = usize::MAX - 8;
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
}
