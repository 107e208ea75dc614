//! Changing a memory region in place (man ibv_rereg_mr).

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::context::{Pd, fail};
use crate::host::host;
use crate::memory::{check, publish, rights, withdraw};

/// What is to change.
const CHANGE_TRANSLATION: c_int = 1 << 0;
const CHANGE_PD: c_int = 1 << 1;
const CHANGE_ACCESS: c_int = 1 << 2;

/// `IBV_REREG_MR_ERR_INPUT`: the region is as it was.
const ERR_INPUT: c_int = -1;
/// `IBV_REREG_MR_ERR_CMD`: what was asked for cannot be. The region is as it was here too.
const ERR_CMD: c_int = -4;

/// `ibv_rereg_mr`: gives a region other bytes, another domain or other rights, under its old keys. Whatever uses the
/// region meanwhile has finished before.
///
/// # Safety
/// As for libibverbs' function: a live region of this device, and where they are to change, a live domain of its context
/// and bytes that stay mapped.
pub unsafe extern "C" fn rereg_mr(
    mr: *mut ibv_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    // SAFETY: the caller gives a live region.
    let mr = unsafe { &mut *mr };
    let has = |flag: c_int| flags & flag != 0;
    let known = CHANGE_TRANSLATION | CHANGE_PD | CHANGE_ACCESS;
    let is_input = flags & !known == 0
        && flags != 0
        && (!has(CHANGE_TRANSLATION) || (length != 0 && !addr.is_null()))
        && (access == 0 || has(CHANGE_ACCESS))
        && (!has(CHANGE_PD) || !pd.is_null());
    if !is_input {
        fail::<c_void>(libc::EINVAL);
        return ERR_INPUT;
    }
    let Ok(host) = host() else {
        fail::<c_void>(libc::ENODEV);
        return ERR_CMD;
    };
    let (new_addr, new_length) = if has(CHANGE_TRANSLATION) { (addr, length) } else { (mr.addr, mr.length) };
    let new_access = if has(CHANGE_ACCESS) { access.cast_unsigned() } else { rights(mr.lkey) };
    let new_pd = if has(CHANGE_PD) { pd } else { mr.pd };
    // SAFETY: as above; a region's domain lives at least as long as the region.
    let (old_domain, new_domain) = unsafe { (&*mr.pd.cast::<Pd>(), &*new_pd.cast::<Pd>()) };
    let error = match check(new_addr, new_length, new_access) {
        Ok(()) if new_domain.ibv.context != mr.context => Some(libc::EINVAL),
        Ok(()) => None,
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        fail::<c_void>(error);
        return ERR_CMD;
    }
    withdraw(old_domain, mr.lkey);
    publish(host, mr.lkey, new_domain, new_addr as u64, new_length as u64, new_access);
    new_domain.children.fetch_add(1, Relaxed);
    old_domain.children.fetch_sub(1, Relaxed);
    (mr.pd, mr.addr, mr.length) = (new_pd, new_addr, new_length);
    0
}
