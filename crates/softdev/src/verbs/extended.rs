//! Extended verbs: queries whose callers state the space for the answer, so that structures can
//! grow, and shared receive queues with extended attributes.

use std::ffi::c_int;

use verbs::abi::*;

use crate::sys::clock::{CLOCK_KHZ, CLOCK_MASK};
use crate::sys::errno::fail;
use crate::verbs::on_demand;
use crate::verbs::polling::create_cq_ex;
use crate::verbs::query::{query_device, query_port, query_rt_values};
use crate::verbs::queue_pair::create_qp_ex;
use crate::verbs::srq::create_srq;

/// Installs the device's extended verbs in a context. The header's own functions, or the library in
/// their place, refuse absent ones with EOPNOTSUPP.
pub(crate) fn install(verbs: &mut verbs_context) {
    verbs.query_port = Some(query_port_sized);
    verbs.query_device_ex = Some(query_device_ex);
    verbs.advise_mr = Some(on_demand::advise_mr);
    verbs.query_rt_values = Some(query_rt_values);
    verbs.create_qp_ex = Some(create_qp_ex);
    verbs.create_cq_ex = Some(create_cq_ex);
    verbs.create_srq_ex = Some(create_srq_ex);
}

/// Writes as much of an answer as fits, and zeroes if the reader knows a longer structure.
///
/// # Safety
/// There are `room` writable bytes.
unsafe fn answer<T: Copy>(made: &T, to: *mut T, room: usize) {
    let known = room.min(size_of::<T>());
    // SAFETY: the caller guarantees the space, of which the second call fills what the first
    // leaves.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *made).cast::<u8>(), to.cast::<u8>(), known);
        std::ptr::write_bytes(to.cast::<u8>().add(known), 0, room - known);
    }
}

/// `ibv_query_device_ex`(3).
pub(crate) unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
    attr_size: usize,
) -> c_int {
    // SAFETY: the caller passes null or readable input.
    let asked = unsafe { input.as_ref() }.map_or(0, |input| input.comp_mask);
    if asked != 0 || attr_size < size_of::<ibv_device_attr>() {
        return libc::EINVAL;
    }
    // SAFETY: all-zero bytes are a valid ibv_device_attr_ex: integers. Zero stands for features
    // that the device lacks.
    let mut made: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
    // SAFETY: the attributes are writable.
    let returned = unsafe { query_device(context, &raw mut made.orig_attr) };
    if returned != 0 {
        return returned;
    }
    made.completion_timestamp_mask = CLOCK_MASK;
    made.hca_core_clock = CLOCK_KHZ;
    made.device_cap_flags_ex = u64::from(made.orig_attr.device_cap_flags);
    made.odp_caps = on_demand::CAPS;
    made.phys_port_cnt_ex = u32::from(made.orig_attr.phys_port_cnt);
    // SAFETY: the caller passes this many writable bytes.
    unsafe { answer(&made, attr, attr_size) };
    0
}

/// `ibv_query_port`, as the header calls it.
unsafe extern "C" fn query_port_sized(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    attr_size: usize,
) -> c_int {
    let mut made = ibv_port_attr::default();
    // SAFETY: the attributes are writable.
    let returned = unsafe { query_port(context, port, &raw mut made) };
    if returned == 0 {
        // SAFETY: the caller passes this many writable bytes.
        unsafe { answer(&made, attr, attr_size) };
    }
    returned
}

/// `ibv_create_srq_ex`(3), for basic queues only.
unsafe extern "C" fn create_srq_ex(_: *mut ibv_context, init: *mut ibv_srq_init_attr_ex) -> *mut ibv_srq {
    // SAFETY: the caller passes readable and writable attributes.
    let init = unsafe { &mut *init };
    let has = |bit: u32| init.comp_mask & bit != 0;
    let known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    if init.comp_mask & !known != 0 || (has(IBV_SRQ_INIT_ATTR_TYPE) && init.srq_type != IBV_SRQT_BASIC) {
        return fail(libc::EOPNOTSUPP);
    }
    if !has(IBV_SRQ_INIT_ATTR_PD) || init.pd.is_null() {
        return fail(libc::EINVAL);
    }
    let mut plain = ibv_srq_init_attr { srq_context: init.srq_context, attr: init.attr };
    // SAFETY: the domain is alive and the attributes are writable.
    let made = unsafe { create_srq(init.pd, &raw mut plain) };
    init.attr = plain.attr;
    made
}
