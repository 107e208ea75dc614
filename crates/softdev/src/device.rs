//! The devices of a host: their list, their ports and addresses, and where routes lead.
//!
//! Devices differ in their addresses only: all of them move bytes between the same processes. A queue pair belongs to the
//! device of its context and is reached by that device's address alone, as through an adapter's port. Ports of different
//! link layers do not reach each other.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use verbs::LinkSpeed;
use verbs::abi::*;

use crate::context::Ctx;
use crate::port;
use crate::sys::errno::fail;
use crate::sys::limits::{DEVICE_PREFIX, GIDS, MAX_MESSAGE_BYTES, PKEY, PORT};
use crate::sys::settings::{LinkLayer, MAX_DEVICES, link_layer, settings};
use crate::transport::local::address::SUBNET_MANAGER_LID;
use crate::transport::local::address::gid;
use crate::transport::local::address::lid;

/// A device as programs know it, and its number.
#[repr(C)]
struct Device {
    ibv: ibv_device,
    /// libmlx5 reads members of a larger structure around every device, so zeroes follow it.
    slack: ibv_device,
    number: u8,
}

/// The devices by number. Programs compare and print their pointers, so they are never freed.
fn device(number: u8) -> *mut ibv_device {
    static DEVICES: Mutex<[usize; MAX_DEVICES as usize]> = Mutex::new([0; MAX_DEVICES as usize]);
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let made = &mut devices[usize::from(number)];
    if *made == 0 {
        *made = std::ptr::from_mut(Box::leak(Box::new(Device::new(number)))) as usize;
    }
    *made as *mut ibv_device
}

impl Device {
    fn new(number: u8) -> Self {
        // SAFETY: all-zero bytes are a valid Device: integers, null pointers and empty strings.
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.number = number;
        made.ibv.node_type = IBV_NODE_CA;
        made.ibv.transport_type = IBV_TRANSPORT_IB;
        for (to, from) in made.ibv.name.iter_mut().zip(format!("{DEVICE_PREFIX}{number}").bytes()) {
            *to = from.cast_signed();
        }
        made.ibv.dev_name = made.ibv.name;
        made
    }
}

/// The number of a device.
///
/// # Safety
/// It is of the list.
pub(crate) unsafe fn number(device: *mut ibv_device) -> u8 {
    // SAFETY: every ibv_device of the list is the first member of a Device.
    unsafe { (*device.cast::<Device>()).number }
}

pub(crate) unsafe extern "C" fn get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device {
    let count = match settings() {
        Ok(settings) => settings.devices,
        Err(why) => {
            // As libibverbs warns of what is wrong with its own configuration.
            eprintln!("softdev: {why}");
            return fail(libc::EINVAL);
        }
    };
    let list: Vec<_> = (0..count).map(device).chain([std::ptr::null_mut()]).collect();
    if !num_devices.is_null() {
        // SAFETY: the caller gives null or a writable integer.
        unsafe { *num_devices = c_int::from(count) };
    }
    Box::into_raw(list.into_boxed_slice()).cast()
}

pub(crate) unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    let devices = (0..).take_while(|i| {
        // SAFETY: the caller gives back what get_device_list made, which ends with null.
        !unsafe { *list.add(*i) }.is_null()
    });
    let slice = std::ptr::slice_from_raw_parts_mut(list, devices.count() + 1);
    // SAFETY: get_device_list made a box of so many pointers.
    drop(unsafe { Box::from_raw(slice) });
}

pub(crate) unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: the caller gives a device of the list.
    unsafe { (*device).name.as_ptr() }
}

/// States of the link below a port (IBTA vol. 1, section 14.2.5.6).
const LINK_UP: u8 = 5;
/// It looks for another end.
const POLLING: u8 = 2;
/// `ibv_port_attr.flags` of a port whose routes are all global (`IBV_QPF_GRH_REQUIRED`).
const GRH_REQUIRED: u8 = 1;
/// Time a subnet's packets take at most, as 4.096 us x 2^18: what subnet managers set by default.
const SUBNET_TIMEOUT: u8 = 18;
/// One virtual lane besides the management's (IBTA vol. 1, section 14.2.5.6).
const VL0: u8 = 1;

pub(crate) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port_num: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    if port_num != PORT {
        return libc::EINVAL;
    }
    // SAFETY: the caller gives a live context of this device.
    let ctx = unsafe { Ctx::from(context) };
    let (is_infiniband, is_down) = (link_layer() == LinkLayer::Infiniband, port::is_down(ctx.device));
    // Where there is no link and no rate, no value says so, and programs fail where they find none that they know (UCX:
    // uct_ib_iface_query()). The lowest is given, 1X SDR.
    let rate = ctx.link().and_then(|link| link.rate);
    let (active_width, active_speed) = rate.map_or((1, 1), |rate| LinkSpeed::of(rate).codes());
    let made = ibv_port_attr {
        state: if is_down { IBV_PORT_DOWN } else { IBV_PORT_ACTIVE },
        max_mtu: IBV_MTU_4096,
        active_mtu: IBV_MTU_4096,
        gid_tbl_len: GIDS,
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
    // SAFETY: the caller gives writable attributes.
    unsafe { attr.write(made) };
    0
}

pub(crate) unsafe extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    entry: *mut ibv_gid,
) -> c_int {
    if port != PORT || !(0..GIDS).contains(&index) {
        fail::<c_void>(libc::EINVAL);
        return -1;
    }
    // SAFETY: the caller gives a live context of this device and a writable GID.
    unsafe { entry.write(gid(Ctx::from(context).device)) };
    0
}

/// What packets of this process's ports look like (`ibv_gid_type`).
fn gid_type() -> u32 {
    match link_layer() {
        LinkLayer::Ethernet => IBV_GID_TYPE_ROCE_V2,
        LinkLayer::Infiniband => IBV_GID_TYPE_IB,
    }
}

/// `_ibv_query_gid_ex` (man ibv_query_gid_ex): no flags are defined, and the entry is as long as the caller knows it.
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
    if port != u32::from(PORT) || index >= GIDS.cast_unsigned() {
        return libc::EINVAL;
    }
    // SAFETY: the caller gives a live context of this device.
    let device = unsafe { Ctx::from(context) }.device;
    let made = ibv_gid_entry {
        gid: gid(device),
        gid_index: index,
        port_num: port,
        gid_type: gid_type(),
        ndev_ifindex: 0, // There is no network interface.
    };
    // SAFETY: the caller gives a writable entry that is as long as it says, which was checked.
    unsafe { entry.write(made) };
    0
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
    // SAFETY: the caller gives a writable key.
    unsafe { pkey.write(PKEY.to_be()) };
    0
}
