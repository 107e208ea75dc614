//! What a library's functions come to that say why in a number of the thread, as those of POSIX do: ZeroMQ's and nanomsg's.

use std::ffi::{CStr, c_char, c_int};

use verbs::library::Library;

pub(super) struct Errors {
    errno: unsafe extern "C" fn() -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Errors {
    /// Those of a library: its functions `errno` and `strerror`, by their names.
    ///
    /// # Safety
    /// The functions have the types of those two in POSIX.
    pub(super) unsafe fn of(library: &Library, [errno, strerror]: [&CStr; 2]) -> Result<Self, String> {
        // SAFETY: as the caller says.
        Ok(unsafe { Self { errno: library.function(errno)?, strerror: library.function(strerror)? } })
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
        // SAFETY: any number has a text, which is static.
        let text = unsafe { CStr::from_ptr((self.strerror)(self.number())) };
        text.to_string_lossy().into_owned()
    }

    fn number(&self) -> c_int {
        // SAFETY: it has no preconditions.
        unsafe { (self.errno)() }
    }
}
