//! Protection domains and address handles.

use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};

use verbs::abi::*;

use crate::objects::context::{Ah, Ctx, Pd};
use crate::sys::errno::fail;
use crate::sys::settings::{LinkLayer, link_layer};
use crate::transport::local::address::{Way, follow, is_valid_route, source_of};
use crate::transport::local::ends::kept;
use crate::transport::local::header::packet_type;
use crate::verbs::parent_domain;

pub(crate) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let ibv = ibv_pd { context, handle: NUMBERS.fetch_add(1, Relaxed) };
    Box::into_raw(Box::new(Pd { ibv, children: AtomicUsize::new(0), parts: None })).cast()
}

pub(crate) unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    let pd = pd.cast::<Pd>();
    // SAFETY: the caller passes a live domain.
    if unsafe { &*pd }.children.load(SeqCst) != 0 {
        return libc::EBUSY;
    }
    // SAFETY: alloc_pd made it, and nothing is left in it.
    let pd = unsafe { Box::from_raw(pd) };
    if let Some(parts) = &pd.parts {
        parent_domain::release(parts);
    }
    0
}

pub(crate) unsafe extern "C" fn create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: the caller passes readable attributes.
    let mut attr = unsafe { *attr };
    // SAFETY: the caller passes a live domain.
    let domain = unsafe { &*pd.cast::<Pd>() };
    // SAFETY: a domain's context lives at least as long as the domain.
    let device = unsafe { Ctx::from(domain.ibv.context) }.device;
    if !is_valid_route(device, &attr) {
        return fail(libc::EINVAL);
    }
    let destination = follow(&attr);
    // A datagram without a destination needs no GIDs.
    let says_ends = attr.is_global != 0 && destination != Way::Elsewhere;
    let source = if says_ends { source_of(device, &attr) } else { None };
    let ends = source.map(|source| kept([source, attr.grh.dgid]));
    if let Some(ends) = ends.filter(|_| link_layer() == LinkLayer::Ethernet) {
        attr.sl = packet_type(ends);
    }
    domain.children.fetch_add(1, Relaxed);
    let ibv = ibv_ah { context: domain.ibv.context, pd, handle: 0 };
    Box::into_raw(Box::new(Ah { ibv, attr, destination, ends })).cast()
}

pub(crate) unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: the caller passes a handle that create_ah made and does not use it again.
    let ah = unsafe { Box::from_raw(ah.cast::<Ah>()) };
    // SAFETY: a handle's domain lives at least as long as the handle.
    unsafe { &*ah.ibv.pd.cast::<Pd>() }.children.fetch_sub(1, Relaxed);
    0
}
