//! How a verb fails: the C convention of `errno`.

use std::ffi::c_int;

/// Sets `errno` and returns the null pointer that a verb returns with it.
pub(crate) fn fail<T>(errno: c_int) -> *mut T {
    // SAFETY: errno's location is valid in every thread.
    unsafe { *libc::__errno_location() = errno };
    std::ptr::null_mut()
}
