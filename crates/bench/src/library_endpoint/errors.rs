//! Why a library's functions fail. ZeroMQ and nanomsg say it in a number of the thread, as POSIX
//! does.

use std::ffi::{CStr, c_char, c_int};

type Strerror = unsafe extern "C" fn(c_int) -> *const c_char;

/// The text of an error's number.
///
/// # Safety
/// The function gives a static text for any number, as that of POSIX does.
pub(super) unsafe fn text(strerror: Strerror, number: c_int) -> String {
    // SAFETY: as the caller says.
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

    /// What a call comes to.
    pub(super) fn done(&self, result: c_int) -> Result<(), String> {
        if result < 0 { Err(self.reason()) } else { Ok(()) }
    }

    /// What a call comes to that does not wait: nothing, where it would have to.
    #[inline]
    pub(super) fn at_once(&self, result: c_int) -> Result<Option<usize>, String> {
        match usize::try_from(result) {
            Ok(count) => Ok(Some(count)),
            Err(_) if [libc::EAGAIN, libc::EINTR].contains(&self.number()) => Ok(None),
            Err(_) => Err(self.reason()),
        }
    }

    /// Why the last call has failed.
    pub(super) fn reason(&self) -> String {
        // SAFETY: the caller of `new` has said that `strerror` behaves as in POSIX.
        unsafe { text(self.strerror, self.number()) }
    }

    fn number(&self) -> c_int {
        // SAFETY: it has no preconditions.
        unsafe { (self.errno)() }
    }
}
