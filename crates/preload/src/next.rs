//! The functions of libc that this library intercepts.

use std::ffi::{CStr, c_void};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::elf;

/// The next definition of a function. The caller knows its type.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Looks it up behind this library. Returns whether it was found.
    pub(crate) fn find(&self) -> bool {
        // SAFETY: the name is a C string. RTLD_NEXT starts behind the calling object, which is this
        // library, so that its own function is not found.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Release);
        !found.is_null()
    }

    /// Its address. Before this library is ready, it is the C library's function. That is found
    /// without allocation, and without the dynamic linker, which would find this library's
    /// function.
    pub(crate) fn address(&self) -> *mut c_void {
        let found = self.found.load(Acquire);
        if !found.is_null() {
            return found;
        }
        // A program that runs was linked with the function. Before version 2.34, the functions that
        // open libraries were in a separate library.
        elf::function_of(&[b"libc.so.6", b"libdl.so.2"], self.name).unwrap_or_else(|| std::process::abort())
    }
}

/// Defines a static for each next function, a function that calls it, and a function that looks up
/// all of them and returns the names that were not found.
macro_rules! next_functions {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        mod next {
            use super::*;
            $(
                /// # Safety
                /// The contract of the C library's function of this name.
                pub(super) unsafe fn $name($($arg: $type),*) -> $answer {
                    // SAFETY: it is the function of this name, which has this type, and the caller
                    // keeps its contract.
                    unsafe {
                        let next: unsafe extern "C" fn($($type),*) -> $answer =
                            std::mem::transmute(nexts::$name.address());
                        next($($arg),*)
                    }
                }
            )*
        }

        #[expect(non_upper_case_globals, reason = "names of functions")]
        mod nexts {
            use crate::next::Next;
            $(pub(super) static $name: Next = Next::new($crate::next::name(concat!(stringify!($name), "\0")));)*
        }

        /// Looks up all next functions. Returns the names that were not found.
        pub(crate) fn find_next() -> Vec<&'static str> {
            let all = [$((stringify!($name), nexts::$name.find())),*];
            all.into_iter().filter(|(_, is_found)| !is_found).map(|(name, _)| name).collect()
        }
    };
}
pub(crate) use next_functions;

pub(crate) const fn name(with_end: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_end.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name ends with its only zero"),
    }
}
