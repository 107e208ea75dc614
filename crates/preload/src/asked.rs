//! Paths that a program asks for: which files of [the tree](softdev::tree) they name.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use softdev::tree::{self, Node};

pub(crate) type Path = *const c_char;

/// Whether the functions behind ours have been found: before that nothing may be done that takes
/// memory.
static IS_READY: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_ready() {
    IS_READY.store(true, Release);
}

/// The file of the tree at a path. `errno` stays as it is.
///
/// # Safety
/// The path is a string or null.
pub(crate) unsafe fn node(path: Path) -> Option<Node> {
    if path.is_null() || !IS_READY.load(Acquire) {
        return None;
    }
    // SAFETY: as the caller vouches.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if !tree::concerns(path) {
        return None;
    }
    // SAFETY: errno's location is valid in every thread.
    let before = unsafe { *errno() };
    let node = tree::node(path);
    // SAFETY: as above. Looking at the device may have changed it.
    unsafe { *errno() = before };
    node
}

pub(crate) fn errno() -> *mut c_int {
    // SAFETY: it has no preconditions.
    unsafe { libc::__errno_location() }
}

/// Sets `errno`. Returns -1.
pub(crate) fn fail(error: c_int) -> c_int {
    // SAFETY: errno's location is valid in every thread.
    unsafe { *errno() = error };
    -1
}
