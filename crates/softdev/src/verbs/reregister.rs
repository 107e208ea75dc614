//! Changing a memory region in place (man ibv_rereg_mr).

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::objects::context::Pd;
use crate::sys::errno::fail;
use crate::transport::local::host::host;
use crate::transport::local::region::rights;
use crate::verbs::memory::{check, publish, withdraw};

/// The parts of a region that change.
const CHANGE_TRANSLATION: c_int = 1 << 0;
const CHANGE_PD: c_int = 1 << 1;
const CHANGE_ACCESS: c_int = 1 << 2;

/// `IBV_REREG_MR_ERR_INPUT`: the region is unchanged.
const ERR_INPUT: c_int = -1;
/// `IBV_REREG_MR_ERR_CMD`: the change is impossible. The region is unchanged here, too.
const ERR_CMD: c_int = -4;

/// `ibv_rereg_mr`: gives a region other bytes, another domain or other rights, under its old keys.
/// Accesses under way finish first.
///
/// # Safety
/// As for libibverbs' function: a live region of this device; if they change, a live domain of its
/// context, and bytes that stay mapped.
pub unsafe extern "C" fn rereg_mr(
    mr: *mut ibv_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    // SAFETY: the caller passes a live region.
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
    let error = match check(host, new_addr as u64, new_length, new_access) {
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

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::PROVIDER;
    use crate::transport::local::region::{Access, locate};

    #[test]
    fn a_region_takes_on_other_bytes_another_domain_and_other_rights() {
        // SAFETY: objects are made, used and destroyed in order; the bytes outlive their regions.
        unsafe {
            let list = (PROVIDER.get_device_list)(ptr::null_mut());
            let context = (PROVIDER.open_device)(*list);
            let old = (PROVIDER.alloc_pd)(context);
            let new = (PROVIDER.alloc_pd)(context);
            let first = [0_u8; 64];
            let mut second = [0_u8; 128];
            let read = IBV_ACCESS_REMOTE_READ.cast_signed();
            let mr = (PROVIDER.reg_mr)(old, first.as_ptr().cast_mut().cast(), first.len(), read);
            let found = |pd: *mut ibv_pd, addr: *const u8, length, access| {
                let sge = ibv_sge { addr: addr as u64, length, lkey: (*mr).lkey };
                locate(&host().unwrap().arena.view, None, (*pd).handle, &sge, access).is_some()
            };
            let change = |flags, pd, addr: *mut u8, length, access| {
                rereg_mr(mr, flags, pd, addr.cast(), length, access)
            };
            let null = ptr::null_mut::<u8>();
            assert!(found(old, first.as_ptr(), 64, Access::RemoteRead));
            // No change, an unknown or an incomplete one, or rights without their flag.
            for (flags, pd, length, access) in
                [(0, old, 1, 0), (8, old, 1, 0), (1, old, 0, 0), (2, null.cast(), 1, 0)]
            {
                assert_eq!(change(flags, pd, second.as_mut_ptr(), length, access), ERR_INPUT, "{flags}");
            }
            assert_eq!(change(CHANGE_PD, new, null, 0, read), ERR_INPUT);
            // Remote writing needs local writing.
            assert_eq!(change(CHANGE_ACCESS, null.cast(), null, 0, 2), ERR_CMD);
            // Nothing is mapped in the first page.
            assert_eq!(change(CHANGE_TRANSLATION, null.cast(), null.wrapping_add(8), 64, 0), ERR_CMD);
            assert!(found(old, first.as_ptr(), 64, Access::RemoteRead), "the region is unchanged");

            assert_eq!(change(CHANGE_TRANSLATION, null.cast(), second.as_mut_ptr(), second.len(), 0), 0);
            assert!(!found(old, first.as_ptr(), 1, Access::Gather));
            assert!(found(old, second.as_ptr(), 128, Access::RemoteRead));
            assert_eq!(change(CHANGE_ACCESS, null.cast(), null, 0, 1), 0);
            assert!(!found(old, second.as_ptr(), 128, Access::RemoteRead));
            assert!(found(old, second.as_ptr(), 128, Access::Scatter));
            assert_eq!(change(CHANGE_PD, new, null, 0, 0), 0);
            assert!(!found(old, second.as_ptr(), 128, Access::Scatter));
            assert!(found(new, second.as_ptr(), 128, Access::Scatter));
            assert_eq!(((*mr).pd, (*mr).length), (new, 128));
            assert_eq!((PROVIDER.dealloc_pd)(old), 0, "it is in the other one now");
            assert_eq!((PROVIDER.dealloc_pd)(new), libc::EBUSY);
            assert_eq!((PROVIDER.dereg_mr)(mr), 0);
            assert_eq!((PROVIDER.dealloc_pd)(new), 0);
            assert_eq!((PROVIDER.close_device)(context), 0);
            (PROVIDER.free_device_list)(list);
        }
    }
}
