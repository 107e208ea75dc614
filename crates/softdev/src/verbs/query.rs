//! Queries of the device, its ports and its clock.

use std::ffi::{c_char, c_int, c_void};

use verbs::LinkSpeed;
use verbs::abi::*;

use crate::engine::port;
use crate::objects::context::Ctx;
use crate::sys::clock::now;
use crate::sys::errno::fail;
use crate::sys::limits::{
    BLOCKS, CQS, MAX_CQE, MAX_MESSAGE_BYTES, MAX_RD_ATOMIC, MAX_SGE, MAX_SRQS, MAX_WR, MEMBERS, MRS, PART,
    PKEY, PORT, QPS, VENDOR,
};
use crate::sys::settings::{LinkLayer, link_layer};
use crate::transport::local::address::{SUBNET_MANAGER_LID, device_guid, held, lid, table_length};
use crate::transport::local::gids::{Entry, active_mtu, gids};
use crate::transport::local::host::guid;

pub(crate) unsafe extern "C" fn query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
    // SAFETY: the caller passes a live context of this device.
    let device = unsafe { Ctx::from(context) }.device;
    // SAFETY: all-zero bytes are a valid ibv_device_attr: integers.
    let mut made: ibv_device_attr = unsafe { std::mem::zeroed() };
    for (to, from) in made.fw_ver.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    made.node_guid = device_guid(device).to_be();
    // All devices belong to one system.
    made.sys_image_guid = guid().to_be();
    made.max_mr_size = u64::MAX;
    made.page_size_cap = 4096;
    made.vendor_id = VENDOR;
    made.vendor_part_id = PART;
    made.max_qp = QPS as c_int;
    made.max_qp_wr = MAX_WR.cast_signed();
    made.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD
        | IBV_DEVICE_PORT_ACTIVE_EVENT
        | IBV_DEVICE_RC_RNR_NAK_GEN
        | IBV_DEVICE_SYS_IMAGE_GUID;
    made.max_sge = MAX_SGE as c_int;
    made.max_cq = CQS as c_int;
    made.max_cqe = MAX_CQE;
    made.max_mr = MRS as c_int;
    made.max_pd = c_int::MAX;
    made.max_qp_rd_atom = c_int::from(MAX_RD_ATOMIC);
    made.max_qp_init_rd_atom = c_int::from(MAX_RD_ATOMIC);
    made.max_res_rd_atom = c_int::from(MAX_RD_ATOMIC) * QPS as c_int;
    // Not GLOB: see `foreign`.
    made.atomic_cap = IBV_ATOMIC_HCA;
    made.max_mcast_grp = MEMBERS as c_int;
    made.max_mcast_qp_attach = MEMBERS as c_int;
    made.max_total_mcast_qp_attach = MEMBERS as c_int;
    made.max_ah = c_int::MAX;
    made.max_pkeys = 1;
    made.max_srq = MAX_SRQS as c_int;
    made.max_srq_wr = MAX_WR.cast_signed();
    made.max_srq_sge = MAX_SGE as c_int;
    made.phys_port_cnt = 1;
    // SAFETY: the caller passes writable attributes.
    unsafe { attr.write(made) };
    0
}

/// The blocks fit the 24 bits of a queue-pair number.
const _: () = assert!(BLOCKS as usize * QPS == 1 << 24);

/// The physical state of a port with a link (IBTA vol. 1, section 14.2.5.6).
const LINK_UP: u8 = 5;

/// The physical state of a port that looks for a link.
const POLLING: u8 = 2;

/// `ibv_port_attr.flags` of a port whose routes are all global (`IBV_QPF_GRH_REQUIRED`).
const GRH_REQUIRED: u8 = 1;

/// The maximum time of a packet in a subnet, 4.096 us x 2^18: the default of subnet managers.
const SUBNET_TIMEOUT: u8 = 18;

/// One virtual lane in addition to that of management (IBTA vol. 1, section 14.2.5.6).
const VL0: u8 = 1;

pub(crate) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port_num: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    if port_num != PORT {
        return libc::EINVAL;
    }
    // SAFETY: the caller passes a live context of this device.
    let ctx = unsafe { Ctx::from(context) };
    let is_infiniband = link_layer() == LinkLayer::Infiniband;
    let is_down = port::is_down(ctx.device);
    // Without a link model there is no rate. No value says so, and programs fail if they find no
    // rate that they know (UCX: uct_ib_iface_query()). The lowest rate is reported, 1X SDR.
    let rate = ctx.link().and_then(|link| link.rate);
    let (active_width, active_speed) = rate.map_or((1, 1), |rate| LinkSpeed::of(rate).codes());
    let made = ibv_port_attr {
        state: if is_down { IBV_PORT_DOWN } else { IBV_PORT_ACTIVE },
        max_mtu: IBV_MTU_4096,
        active_mtu: active_mtu(ctx.device),
        gid_tbl_len: table_length().into(),
        max_msg_sz: MAX_MESSAGE_BYTES as u32,
        pkey_tbl_len: 1,
        lid: lid(ctx.device),
        sm_lid: if is_infiniband { SUBNET_MANAGER_LID } else { 0 },
        max_vl_num: VL0,
        subnet_timeout: if is_infiniband { SUBNET_TIMEOUT } else { 0 },
        active_width,
        active_speed,
        phys_state: if is_down { POLLING } else { LINK_UP },
        link_layer: link_layer().code(),
        flags: if is_infiniband { 0 } else { GRH_REQUIRED },
        ..ibv_port_attr::default()
    };
    // SAFETY: the caller passes writable attributes.
    unsafe { attr.write(made) };
    0
}

/// `ibv_query_gid`(3). An empty entry is a zero GID, as in the kernel's files.
pub(crate) unsafe extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    entry: *mut ibv_gid,
) -> c_int {
    let index = u8::try_from(index).ok().filter(|index| *index < table_length());
    let (PORT, Some(index)) = (port, index) else {
        fail::<c_void>(libc::EINVAL);
        return -1;
    };
    // SAFETY: the caller passes a live context of this device.
    let device = unsafe { Ctx::from(context) }.device;
    let gid = held(&gids(), device, index).map_or(ibv_gid::default(), |held| held.gid);
    // SAFETY: the caller passes a writable GID.
    unsafe { entry.write(gid) };
    0
}

/// Returns the kind of packets of this process's ports (`ibv_gid_type`).
fn gid_type() -> u32 {
    match link_layer() {
        LinkLayer::Ethernet => IBV_GID_TYPE_ROCE_V2,
        LinkLayer::Infiniband => IBV_GID_TYPE_IB,
    }
}

/// `_ibv_query_gid_ex` (man ibv_query_gid_ex): no flags are defined, and the caller states the size
/// of the entry. An empty entry is ENODATA.
///
/// # Safety
/// As for libibverbs' function: a live context of this device and a writable entry.
pub unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
    entry_size: usize,
) -> c_int {
    if flags != 0 || entry_size < size_of::<ibv_gid_entry>() {
        return libc::EINVAL;
    }
    let number = u8::try_from(index).ok().filter(|index| *index < table_length());
    let (true, Some(number)) = (port == u32::from(PORT), number) else { return libc::EINVAL };
    // SAFETY: the caller passes a live context of this device.
    let device = unsafe { Ctx::from(context) }.device;
    let Some(held) = held(&gids(), device, number) else { return libc::ENODATA };
    // SAFETY: the caller passes a writable entry that is as long as it says, which was checked.
    unsafe { entry.write(shown(number, held)) };
    0
}

fn shown(index: u8, held: Entry) -> ibv_gid_entry {
    ibv_gid_entry {
        gid: held.gid,
        gid_index: index.into(),
        port_num: PORT.into(),
        gid_type: gid_type(),
        ndev_ifindex: held.interface,
    }
}

/// Returns the used entries of the GID table of the only port.
///
/// # Safety
/// `context` is a live context of this device.
pub unsafe fn used_gids(context: *mut ibv_context) -> Vec<ibv_gid_entry> {
    // SAFETY: the caller passes a live context of this device.
    let device = unsafe { Ctx::from(context) }.device;
    let gids = gids();
    (0..table_length()).filter_map(|index| Some(shown(index, held(&gids, device, index)?))).collect()
}

pub(crate) unsafe extern "C" fn query_pkey(
    _: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    if port != PORT || index != 0 {
        fail::<c_void>(libc::EINVAL);
        return -1;
    }
    // SAFETY: the caller passes a writable key.
    unsafe { pkey.write(PKEY.to_be()) };
    0
}

/// `ibv_query_rt_values_ex`(3). As on adapters, all of the clock's ticks are in `tv_nsec`.
pub(crate) unsafe extern "C" fn query_rt_values(_: *mut ibv_context, values: *mut ibv_values_ex) -> c_int {
    // SAFETY: the caller passes readable and writable values.
    let values = unsafe { &mut *values };
    if values.comp_mask & !IBV_VALUES_MASK_RAW_CLOCK != 0 {
        return libc::EINVAL;
    }
    if values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK != 0 {
        values.raw_clock = libc::timespec { tv_sec: 0, tv_nsec: now().cast_signed() };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_clock_is_the_clock_of_stamps() {
        let mut values = ibv_values_ex {
            comp_mask: IBV_VALUES_MASK_RAW_CLOCK,
            raw_clock: libc::timespec { tv_sec: 7, tv_nsec: 7 },
        };
        let before = now();
        // SAFETY: the values are readable and writable; the context is not used.
        assert_eq!(unsafe { query_rt_values(std::ptr::null_mut(), &raw mut values) }, 0);
        let raw = values.raw_clock.tv_nsec.cast_unsigned();
        assert!((before..=now()).contains(&raw), "{raw} is not after {before}");
        assert_eq!((values.raw_clock.tv_sec, values.comp_mask), (0, IBV_VALUES_MASK_RAW_CLOCK));
    }
}
