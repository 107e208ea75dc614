//! Thread domains and parent domains (man ibv_alloc_parent_domain).
//!
//! A parent domain stands for a protection domain: its objects belong to that domain. The device
//! takes no memory from a program's allocators, which the man page allows, and has no locks that a
//! thread domain could avoid.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use verbs::abi::*;

use crate::objects::context::{Parts, Pd, Td};
use crate::sys::errno::fail;

/// `struct ibv_td_init_attr`.
#[repr(C)]
struct TdInit {
    comp_mask: u32,
}

/// `struct ibv_parent_domain_init_attr`.
#[repr(C)]
struct ParentInit {
    pd: *mut ibv_pd,
    td: *mut Td,
    comp_mask: u32,
    alloc: *mut c_void,
    free: *mut c_void,
    pd_context: *mut c_void,
}

/// `IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS` and `_PD_CONTEXT`.
const KNOWN: u32 = 0b11;

/// Installs the verbs of this module in a context.
pub(crate) fn install(verbs: &mut verbs_context) {
    verbs.alloc_td = alloc_td as *mut c_void;
    verbs.dealloc_td = dealloc_td as *mut c_void;
    verbs.alloc_parent_domain = alloc_parent_domain as *mut c_void;
}

unsafe extern "C" fn alloc_td(context: *mut ibv_context, init: *mut TdInit) -> *mut Td {
    // SAFETY: the caller passes readable attributes.
    if unsafe { (*init).comp_mask } != 0 {
        return fail(libc::EOPNOTSUPP);
    }
    Box::into_raw(Box::new(Td { context, users: AtomicUsize::new(0) }))
}

unsafe extern "C" fn dealloc_td(td: *mut Td) -> c_int {
    // SAFETY: the caller passes a live thread domain.
    if unsafe { &*td }.users.load(SeqCst) != 0 {
        return libc::EBUSY;
    }
    // SAFETY: alloc_td made it, and no parent domain has it.
    drop(unsafe { Box::from_raw(td) });
    0
}

unsafe extern "C" fn alloc_parent_domain(context: *mut ibv_context, init: *mut ParentInit) -> *mut ibv_pd {
    // SAFETY: the caller passes readable attributes.
    let init = unsafe { &*init };
    if init.comp_mask & !KNOWN != 0 {
        return fail(libc::EOPNOTSUPP);
    }
    if init.pd.is_null() {
        return fail(libc::EINVAL);
    }
    // SAFETY: the caller passes a live domain, and null or a live thread domain.
    let (pd, td) = unsafe { (&*init.pd.cast::<Pd>(), init.td.as_ref()) };
    if pd.ibv.context != context || td.is_some_and(|td| td.context != context) || pd.parts.is_some() {
        return fail(libc::EINVAL);
    }
    pd.children.fetch_add(1, Relaxed);
    if let Some(td) = td {
        td.users.fetch_add(1, Relaxed);
    }
    let ibv = ibv_pd { context, handle: pd.ibv.handle };
    let parts = Some(Parts { pd: init.pd, td: init.td });
    Box::into_raw(Box::new(Pd { ibv, children: AtomicUsize::new(0), parts })).cast()
}

/// Releases the domains of a parent domain.
pub(crate) fn release(parts: &Parts) {
    // SAFETY: a domain and a thread domain live as long as a parent domain uses them: both count
    // their users.
    unsafe {
        (*parts.pd.cast::<Pd>()).children.fetch_sub(1, Relaxed);
        if let Some(td) = parts.td.as_ref() {
            td.users.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::PROVIDER;

    #[test]
    fn a_parent_domain_is_its_protection_domain() {
        // SAFETY: objects are made, used and destroyed in order.
        unsafe {
            let list = (PROVIDER.get_device_list)(ptr::null_mut());
            let context = (PROVIDER.open_device)(*list);
            let pd = (PROVIDER.alloc_pd)(context);
            let td = alloc_td(context, &mut TdInit { comp_mask: 0 });
            assert!(alloc_td(context, &mut TdInit { comp_mask: 1 }).is_null());
            let null = ptr::null_mut();
            let mut init = ParentInit { pd, td, comp_mask: KNOWN, alloc: null, free: null, pd_context: null };
            let parent = alloc_parent_domain(context, &raw mut init);
            assert_eq!((*parent).handle, (*pd).handle, "keys of one are keys of the other");
            assert_eq!((PROVIDER.dealloc_pd)(pd), libc::EBUSY);
            assert_eq!(dealloc_td(td), libc::EBUSY);
            let mut bytes = [0_u8; 8];
            let mr = (PROVIDER.reg_mr)(parent, bytes.as_mut_ptr().cast(), bytes.len(), 0);
            assert_eq!((PROVIDER.dealloc_pd)(parent), libc::EBUSY);
            init.comp_mask = 4;
            assert!(alloc_parent_domain(context, &raw mut init).is_null());
            (init.comp_mask, init.pd) = (0, parent);
            assert!(alloc_parent_domain(context, &raw mut init).is_null(), "a parent has no parent");
            assert_eq!((PROVIDER.dereg_mr)(mr), 0);
            assert_eq!((PROVIDER.dealloc_pd)(parent), 0);
            assert_eq!((dealloc_td(td), (PROVIDER.dealloc_pd)(pd)), (0, 0));
            assert_eq!((PROVIDER.close_device)(context), 0);
            (PROVIDER.free_device_list)(list);
        }
    }
}
