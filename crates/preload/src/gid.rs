//! The GID table, and other queries that libibverbs answers by itself.

use std::ffi::c_int;

use softdev::PROVIDER;
use softdev::more::{query_gid_ex, used_gids};
use verbs::abi::*;

use crate::refused::fail;

/// `enum ibv_gid_type_sysfs`, as in the kernel's files, which have one word for InfiniBand and RoCE
/// v1.
const SYSFS_IB_ROCE_V1: u32 = 0;
/// The same for RoCE v2.
const SYSFS_ROCE_V2: u32 = 1;

/// Returns an entry of the table, or an error number.
///
/// # Safety
/// `context` is a live context of the device.
unsafe fn entry(context: *mut ibv_context, port: u8, index: u32) -> Result<ibv_gid_entry, c_int> {
    let mut entry = ibv_gid_entry::default();
    // SAFETY: the caller passes a live context; the entry is writable.
    match unsafe { query_gid_ex(context, port.into(), index, &raw mut entry, 0, size_of::<ibv_gid_entry>()) }
    {
        0 => Ok(entry),
        error => Err(error),
    }
}

/// Returns the index of the entry with a GID and type.
///
/// # Safety
/// `context` is a live context of the device.
pub(crate) unsafe fn find(
    context: *mut ibv_context,
    port: u8,
    gid: [u8; 16],
    is_roce_v2: bool,
) -> Option<u8> {
    // SAFETY: guaranteed by the caller.
    let entries = unsafe { used_gids(context) }.into_iter();
    let mut of_port = entries.filter(|entry| entry.port_num == u32::from(port));
    let found =
        of_port.find(|entry| entry.gid.raw == gid && (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == is_roce_v2);
    found.and_then(|entry| u8::try_from(entry.gid_index).ok())
}

/// `ibv_query_gid_table`: writes all entries of all ports that are not empty. Returns their number,
/// or a negative error number.
pub(crate) unsafe fn query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
    size: usize,
) -> isize {
    const INVALID: isize = -(libc::EINVAL as isize);
    if flags != 0 || size < size_of::<ibv_gid_entry>() {
        return INVALID;
    }
    // SAFETY: the caller passes a live context.
    let used = unsafe { used_gids(context) };
    if used.len() > max_entries {
        return INVALID;
    }
    for (place, entry) in used.iter().enumerate() {
        // SAFETY: the caller passes space for this many entries of `size` bytes each.
        unsafe { entries.byte_add(place * size).write(*entry) };
    }
    used.len().cast_signed()
}

/// `ibv_query_gid_type`, which ibv_devinfo and pyverbs use although it is private.
pub(crate) unsafe fn query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    gid_type: *mut u32,
) -> c_int {
    // SAFETY: the caller passes a live context.
    match unsafe { entry(context, port, index) } {
        Ok(entry) => {
            let is_v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
            // SAFETY: the caller passes a writable integer.
            unsafe { gid_type.write(if is_v2 { SYSFS_ROCE_V2 } else { SYSFS_IB_ROCE_V1 }) };
            0
        }
        Err(error) => {
            fail::<()>(error);
            -1
        }
    }
}

/// `ibv_get_pkey_index`: returns the index of a partition key (network byte order), or -1.
pub(crate) unsafe fn pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    for index in 0..c_int::from(u16::MAX) {
        let mut found = 0;
        // SAFETY: the caller passes a live context; the key is writable.
        if unsafe { (PROVIDER.query_pkey)(context, port, index, &raw mut found) } != 0 {
            break;
        }
        if found == pkey {
            return index;
        }
    }
    -1
}

/// `ibv_get_device_guid`, in network byte order; 0 if the device cannot be opened.
pub(crate) unsafe fn device_guid(device: *mut ibv_device) -> u64 {
    // SAFETY: the caller passes a device of the list; the opened device is closed again.
    unsafe {
        let context = (PROVIDER.open_device)(device);
        if context.is_null() {
            return 0;
        }
        let mut attr: ibv_device_attr = std::mem::zeroed();
        let error = (PROVIDER.query_device)(context, &raw mut attr);
        (PROVIDER.close_device)(context);
        if error == 0 { attr.node_guid } else { 0 }
    }
}

/// `ibv_get_device_index`: -1, since the kernel does not know the device.
pub(crate) unsafe fn device_index(_: *mut ibv_device) -> c_int {
    -1
}
