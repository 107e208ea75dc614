//! The list of the devices, with the names and paths that the kernel gives such.

use std::ffi::{c_char, c_int};

use softdev::PROVIDER;
use softdev::tree::UVERBS;
use verbs::abi::ibv_device;

/// `ibv_get_device_list`. The devices say where [the tree](softdev::tree) has their files. Their
/// `ibdev_path` stays empty: by that rdmascope, as one of the programs, knows that a device is no
/// kernel's ([`verbs::DeviceKind`]).
pub(crate) unsafe fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    // SAFETY: the caller keeps the contract of the function of this name.
    let list = unsafe { (PROVIDER.get_device_list)(count) };
    if list.is_null() {
        return list;
    }
    for number in 0.. {
        // SAFETY: the list ends with null.
        let device = unsafe { *list.add(number) };
        if device.is_null() {
            break;
        }
        let uverbs = format!("{UVERBS}{number}");
        // SAFETY: it is a device, of which nobody else uses these members: they are the same each
        // time.
        unsafe {
            set(&mut (*device).dev_name, &uverbs);
            set(&mut (*device).dev_path, &format!("/sys/class/infiniband_verbs/{uverbs}"));
        }
    }
    list
}

/// Writes a string that fits, with its zero.
fn set<const BYTES: usize>(to: &mut [c_char; BYTES], text: &str) {
    for (to, from) in to.iter_mut().zip(text.bytes().chain([0])) {
        *to = from as c_char;
    }
}
