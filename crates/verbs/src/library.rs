//! Shared libraries of the system, opened on first use.

use std::ffi::CStr;
use std::fmt;

use libloading::os::unix::{self, RTLD_LOCAL, RTLD_NOW};

/// Why a library of the system cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    library: &'static str,
    project: &'static str,
    package: &'static str,
    reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { library, project, package, reason } = self;
        write!(
            f,
            "{library} cannot be used ({reason}): install {project} (Debian: apt-get install {package})"
        )
    }
}

impl std::error::Error for Missing {}

impl From<Missing> for String {
    fn from(missing: Missing) -> Self {
        missing.to_string()
    }
}

/// A shared library that stays open as long as the process.
pub struct Library {
    library: &'static unix::Library,
    name: &'static str,
    project: &'static str,
    package: &'static str,
}

impl Library {
    /// Opens the library `name` of a project, which is in the Debian package `package`.
    ///
    /// # Errors
    /// The library cannot be opened.
    pub fn open(name: &'static str, project: &'static str, package: &'static str) -> Result<Self, Missing> {
        // SAFETY: opening runs the library's initialisers; those of installed libraries have no
        // preconditions.
        let opened = unsafe { unix::Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        let failed = |error| Missing { library: name, project, package, reason: in_words(&error) };
        // Leaked on purpose: its functions are used until the process ends.
        let library = Box::leak(Box::new(opened.map_err(failed)?));
        Ok(Self { library, name, project, package })
    }

    /// Returns the function `name`.
    ///
    /// # Errors
    /// The library has no function of this name.
    ///
    /// # Safety
    /// `F` is the type of the function in the headers of the library.
    pub unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, Missing> {
        let Self { library, name: of, project, package } = *self;
        // SAFETY: the caller guarantees the type, and the library is never closed.
        let found = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
        let failed = |error| Missing { library: of, project, package, reason: in_words(&error) };
        found.map(|symbol| *symbol).map_err(failed)
    }
}

/// The dynamic linker's message.
fn in_words(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_says_what_to_install() {
        let Err(missing) = Library::open("libibverbs-absent.so.1", "rdma-core", "libibverbs1") else {
            panic!("there is no such library");
        };
        let text = missing.to_string();
        assert!(
            text.contains("libibverbs-absent.so.1") && text.contains("apt-get install libibverbs1"),
            "{text}"
        );
        assert!(text.contains("No such file"), "{text}");
    }

    #[test]
    fn a_missing_function_is_named() {
        let library = Library::open("libc.so.6", "it", "libc6").expect("every program has it");
        // SAFETY: neither function is called.
        let (found, there) = unsafe {
            (
                library.function::<extern "C" fn()>(c"ibv_no_such_function"),
                library.function::<extern "C" fn() -> i32>(c"getpid"),
            )
        };
        let text = found.expect_err("there is no such function").to_string();
        assert!(text.contains("ibv_no_such_function"), "{text}");
        assert!(there.is_ok());
    }
}
