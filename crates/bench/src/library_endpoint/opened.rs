//! A library of the system, opened at run time.

use std::ffi::CStr;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A library that stays open as long as the process.
pub(super) struct Opened {
    library: &'static Library,
    name: &'static str,
}

impl Opened {
    /// Opens a library, which is in a package of Debian.
    pub(super) fn open(name: &'static str, package: &str) -> Result<Self, String> {
        // SAFETY: opening runs the library's initialisers, which have no preconditions.
        let opened = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        let library = opened.map_err(|error| {
            format!(
                "{name} cannot be used ({}): install it (Debian: apt-get install {package})",
                in_words(&error)
            )
        })?;
        // Leaked on purpose: its functions are handed out for ever.
        Ok(Self { library: Box::leak(Box::new(library)), name })
    }

    /// A function, whose type the caller takes from the library's manual.
    pub(super) fn function<F: Copy>(&self, name: &CStr) -> Result<F, String> {
        // SAFETY: the type is that of the function's declaration, which its soname keeps, and the library is never closed.
        let found = unsafe { self.library.get::<F>(name.to_bytes_with_nul()) };
        found
            .map(|symbol| *symbol)
            .map_err(|error| format!("{} cannot be used: {}", self.name, in_words(&error)))
    }
}

/// What the dynamic linker said.
fn in_words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
