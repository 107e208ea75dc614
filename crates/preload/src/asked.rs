//! Maps paths that a program uses to files of [the tree](softdev::tree).

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use softdev::tree::{self, Node};

pub(crate) type Path = *const c_char;

/// Whether the next functions have been found. Until then, nothing may allocate memory.
static IS_READY: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_ready() {
    IS_READY.store(true, Release);
}

/// Returns the file of the tree at a path. Does not change `errno`.
///
/// # Safety
/// The path is a string or null.
pub(crate) unsafe fn node(path: Path) -> Option<Node> {
    if path.is_null() || !IS_READY.load(Acquire) {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if !tree::concerns(path) {
        return None;
    }
    // SAFETY: errno's location is valid in every thread.
    let before = unsafe { *errno() };
    let node = tree::node(path);
    // SAFETY: as above. Reading the device may have changed it.
    unsafe { *errno() = before };
    node
}

pub(crate) fn errno() -> *mut c_int {
    // SAFETY: the function has no preconditions.
    unsafe { libc::__errno_location() }
}

/// Sets `errno`. Returns -1.
pub(crate) fn fail(error: c_int) -> c_int {
    // SAFETY: errno's location is valid in every thread.
    unsafe { *errno() = error };
    -1
}
