//! On-demand paging (man ibv_reg_mr, `IBV_ACCESS_ON_DEMAND`; man ibv_advise_mr).
//!
//! No registered memory stays pinned: the device accesses memory as its process does, so a page
//! becomes present when it is accessed. An on-demand region differs only in that its registration
//! does not check whether the memory exists (`probe`). This makes the implicit region of the whole
//! address space possible.

use std::ffi::c_int;

use verbs::abi::*;

use crate::memory::arena::View;
use crate::objects::context::Pd;
use crate::transport::local::host::host;
use crate::transport::local::place::Place;
use crate::transport::local::region::{Access, locate};

/// `IBV_ODP_SUPPORT` and `IBV_ODP_SUPPORT_IMPLICIT`.
const GENERAL: u64 = 0b11;
/// `IBV_ODP_SUPPORT_SEND`, `_RECV` and `_SRQ_RECV`.
const MESSAGES: u32 = 1 << 0 | 1 << 1 | 1 << 5;
/// `IBV_ODP_SUPPORT_WRITE`.
const WRITE: u32 = 1 << 2;
/// `IBV_ODP_SUPPORT_READ` and `_ATOMIC`.
const READ_AND_ATOMIC: u32 = 1 << 3 | 1 << 4;

/// The operations that support on-demand paging.
pub(crate) const CAPS: ibv_odp_caps = ibv_odp_caps {
    general_caps: GENERAL,
    rc_odp_caps: MESSAGES | WRITE | READ_AND_ATOMIC,
    uc_odp_caps: MESSAGES | WRITE,
    ud_odp_caps: MESSAGES,
};

/// `IBV_ADVISE_MR_ADVICE_PREFETCH`, and the same for writing.
const PREFETCH: u32 = 0;
const PREFETCH_WRITE: u32 = 1;
/// `IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT`.
const PREFETCH_NO_FAULT: u32 = 2;
/// `IBV_ADVISE_MR_FLAG_FLUSH`: done before the call returns.
const FLUSH: u32 = 1;

/// `ibv_advise_mr`(3): asks the kernel for the pages. Whether they are present only affects the
/// time.
pub(crate) unsafe extern "C" fn advise_mr(
    pd: *mut ibv_pd,
    advice: u32,
    flags: u32,
    sg_list: *mut ibv_sge,
    num_sge: u32,
) -> c_int {
    if flags & !FLUSH != 0 || num_sge == 0 {
        return libc::EINVAL;
    }
    if advice > PREFETCH_NO_FAULT {
        return libc::EOPNOTSUPP;
    }
    let Ok(host) = host() else { return libc::ENODEV };
    // SAFETY: the caller passes a live domain and this many elements.
    let (pd, elements) =
        unsafe { (&*pd.cast::<Pd>(), std::slice::from_raw_parts(sg_list, num_sge as usize)) };
    for element in elements {
        let access = if advice == PREFETCH_WRITE { Access::Scatter } else { Access::Gather };
        if !is_covered(&host.arena.view, pd, element, access) {
            return libc::EFAULT;
        }
        if advice == PREFETCH || advice == PREFETCH_WRITE {
            prefetch(element);
        }
    }
    0
}

fn is_covered(view: &View, pd: &Pd, element: &ibv_sge, access: Access) -> bool {
    matches!(locate(view, None, pd.ibv.handle, element, access), Some(Place::Here(_)))
}

/// Asks the kernel for the pages of an element. A failure is no error: the access that follows
/// reports it.
fn prefetch(element: &ibv_sge) {
    // All page sizes are multiples of this one.
    const PAGE: u64 = 4096;
    let start = element.addr / PAGE * PAGE;
    let length = element.addr + u64::from(element.length) - start;
    // SAFETY: this advice changes no memory, whatever the range is.
    unsafe { libc::madvise(start as *mut libc::c_void, length as usize, libc::MADV_WILLNEED) };
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::PROVIDER;

    #[test]
    fn advice_is_taken_for_what_is_registered() {
        // SAFETY: objects are made, used and destroyed in order; the elements lie in memory that
        // outlives them.
        unsafe {
            let list = (PROVIDER.get_device_list)(ptr::null_mut());
            let context = (PROVIDER.open_device)(*list);
            let pd = (PROVIDER.alloc_pd)(context);
            let bytes = vec![0_u8; 10_000];
            let on_demand = 1 << 6;
            let mr = (PROVIDER.reg_mr)(pd, bytes.as_ptr().cast_mut().cast(), bytes.len(), on_demand);
            let all = (PROVIDER.reg_mr)(pd, ptr::null_mut(), usize::MAX, on_demand);
            let advise = |advice, flags, lkey, length| {
                let mut element = ibv_sge { addr: bytes.as_ptr() as u64, length, lkey };
                advise_mr(pd, advice, flags, &raw mut element, 1)
            };
            assert_eq!(advise(PREFETCH, 0, (*mr).lkey, 10_000), 0);
            assert_eq!(advise(PREFETCH, FLUSH, (*all).lkey, 10_000), 0);
            assert_eq!(advise(PREFETCH_NO_FAULT, FLUSH, (*all).lkey, 10_000), 0);
            assert_eq!(advise(PREFETCH, 0, (*mr).lkey, 10_001), libc::EFAULT);
            assert_eq!(advise(PREFETCH_WRITE, 0, (*mr).lkey, 10_000), libc::EFAULT, "no right to write");
            assert_eq!(advise(PREFETCH, 2, (*mr).lkey, 10_000), libc::EINVAL);
            assert_eq!(advise(3, 0, (*mr).lkey, 10_000), libc::EOPNOTSUPP);
            for mr in [mr, all] {
                assert_eq!((PROVIDER.dereg_mr)(mr), 0);
            }
            assert_eq!((PROVIDER.dealloc_pd)(pd), 0);
            assert_eq!((PROVIDER.close_device)(context), 0);
            (PROVIDER.free_device_list)(list);
        }
    }
}
