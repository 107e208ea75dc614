//! Why a library's function failed. ZeroMQ and nanomsg report it in an error number of the thread,
//! as POSIX does.

use std::ffi::{CStr, c_char, c_int};

type Strerror = unsafe extern "C" fn(c_int) -> *const c_char;

/// Returns the text of an error number.
///
/// # Safety
/// The function returns a static text for any number, as POSIX's `strerror` does.
pub(super) unsafe fn text(strerror: Strerror, number: c_int) -> String {
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(strerror(number)) }.to_string_lossy().into_owned()
}

/// A library's `errno` and `strerror`.
pub(super) struct Errors {
    errno: unsafe extern "C" fn() -> c_int,
    strerror: Strerror,
}

impl Errors {
    /// # Safety
    /// `errno` and `strerror` behave as the POSIX functions of these names.
    pub(super) unsafe fn new(errno: unsafe extern "C" fn() -> c_int, strerror: Strerror) -> Self {
        Self { errno, strerror }
    }

    /// Returns the result of a call.
    pub(super) fn done(&self, result: c_int) -> Result<(), String> {
        if result < 0 { Err(self.reason()) } else { Ok(()) }
    }

    /// Returns the result of a nonblocking call; `None` if it would have to wait.
    #[inline]
    pub(super) fn at_once(&self, result: c_int) -> Result<Option<usize>, String> {
        match usize::try_from(result) {
            Ok(count) => Ok(Some(count)),
            Err(_) if [libc::EAGAIN, libc::EINTR].contains(&self.number()) => Ok(None),
            Err(_) => Err(self.reason()),
        }
    }

    /// Returns why the last call failed.
    pub(super) fn reason(&self) -> String {
        // SAFETY: the caller of `new` has said that `strerror` behaves as in POSIX.
        unsafe { text(self.strerror, self.number()) }
    }

    fn number(&self) -> c_int {
        // SAFETY: it has no preconditions.
        unsafe { (self.errno)() }
    }
}
