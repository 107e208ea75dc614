//! The devices of a host: their list and their names.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use verbs::abi::*;

use crate::sys::errno::fail;
use crate::sys::limits::{DEVICE_PREFIX, UVERBS};
use crate::sys::settings::{MAX_DEVICES, settings};

/// A device as programs know it, and its number.
#[repr(C)]
struct Device {
    ibv: ibv_device,
    /// libmlx5 reads members of a larger structure around every device, so zeroes follow it.
    slack: ibv_device,
    number: u8,
}

/// Returns a device by its number. Programs compare and print the pointers, so the devices are
/// never freed.
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
        set(&mut made.ibv.name, &format!("{DEVICE_PREFIX}{number}"));
        // The kernel's names for such files, which `tree` makes. Programs know that the device is
        // not the kernel's because it has no path in `/sys/class/infiniband` (`DeviceKind`).
        let uverbs = format!("{UVERBS}{number}");
        set(&mut made.ibv.dev_name, &uverbs);
        set(&mut made.ibv.dev_path, &format!("/sys/class/infiniband_verbs/{uverbs}"));
        made
    }
}

/// Writes a string into zeroes, so that a zero follows it if there is room.
fn set(to: &mut [c_char], text: &str) {
    for (to, from) in to.iter_mut().zip(text.bytes()) {
        // C has its characters signed on x86 and unsigned on Arm.
        *to = c_char::from_ne_bytes([from]);
    }
}

/// Returns the number of a device.
///
/// # Safety
/// The device is in the list.
pub(crate) unsafe fn number(device: *mut ibv_device) -> u8 {
    // SAFETY: every ibv_device of the list is the first member of a Device.
    unsafe { (*device.cast::<Device>()).number }
}

pub(crate) unsafe extern "C" fn get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device {
    let count = match settings() {
        Ok(settings) => settings.devices,
        Err(why) => {
            // libibverbs also prints what is wrong with its configuration.
            eprintln!("softdev: {why}");
            return fail(libc::EINVAL);
        }
    };
    let list: Vec<_> = (0..count).map(device).chain([std::ptr::null_mut()]).collect();
    if !num_devices.is_null() {
        // SAFETY: the caller passes null or a writable integer.
        unsafe { *num_devices = c_int::from(count) };
    }
    Box::into_raw(list.into_boxed_slice()).cast()
}

pub(crate) unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    let devices = (0..).take_while(|i| {
        // SAFETY: the caller passes what get_device_list returned, which ends with null.
        !unsafe { *list.add(*i) }.is_null()
    });
    let slice = std::ptr::slice_from_raw_parts_mut(list, devices.count() + 1);
    // SAFETY: get_device_list made a box of this many pointers.
    drop(unsafe { Box::from_raw(slice) });
}

pub(crate) unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: the caller passes a device of the list.
    unsafe { (*device).name.as_ptr() }
}
