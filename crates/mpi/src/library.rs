//! The MPI library of this process.

use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use libloading::os::unix::{self, RTLD_GLOBAL, RTLD_NOW};

use crate::abi::{Abi, Constants};
use crate::error::{Error, Result};
use crate::functions::{Call, Functions};

/// `MPI_MAX_LIBRARY_VERSION_STRING` of MPICH and of the standard ABI; Open MPI needs 256.
const VERSION_BYTES: usize = 8192;
/// `MPI_MAX_ERROR_STRING` of MPICH and of the standard ABI; Open MPI needs 256.
const REASON_BYTES: usize = 512;

/// The open library.
static OPEN: Mutex<Option<&'static Library>> = Mutex::new(None);

/// An MPI library, open until the process ends.
pub struct Library {
    abi: Abi,
    path: PathBuf,
    version: String,
    version_full: String,
    pub(crate) functions: Functions,
    pub(crate) constants: Constants,
    opened: unix::Library,
}

impl Library {
    /// Opens the MPI library with a name (`libmpi.so.40`, found by the dynamic linker) or a path.
    /// If it is open already, it is returned again.
    ///
    /// # Errors
    /// It cannot be opened, is no MPI library, lacks a function, or this process has another one.
    pub fn open(name: impl AsRef<OsStr>) -> Result<&'static Self> {
        let name = name.as_ref();
        let mut open = OPEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(open) = *open {
            let another =
                || Error::AnotherLibrary { open: open.path.clone(), asked: name.to_string_lossy().into() };
            return if open.is_named(name) { Ok(open) } else { Err(another()) };
        }
        // Some builds of Open MPI have plugins that find libmpi's symbols only if they are global.
        // SAFETY: opening runs the library's initialisers; an installed library's have no
        // preconditions.
        let opened = unsafe { unix::Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) };
        let opened = opened.map_err(|error| Error::NotFound {
            name: name.to_string_lossy().into(),
            reason: std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string),
        })?;
        let library: &'static Self = Box::leak(Box::new(Self::of(opened, name)?));
        *open = Some(library);
        Ok(library)
    }

    /// The ABI that its symbols show.
    #[must_use]
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// The library's file, with symbolic links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name and version, such as `Open MPI v4.1.4` or `MPICH 4.0.2`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The whole text of `MPI_Get_library_version`, which may have several lines.
    #[must_use]
    pub fn version_full(&self) -> &str {
        &self.version_full
    }

    /// Returns `Ok` for `MPI_SUCCESS`. MPI must not be finalised.
    #[inline]
    pub(crate) fn check(&self, call: Call, peer: Option<u32>, code: c_int) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failed(call, peer, code)) }
    }

    /// Returns the error for the code that `call` has returned. MPI must not be finalised.
    #[cold]
    pub(crate) fn failed(&self, call: Call, peer: Option<u32>, code: c_int) -> Error {
        let mut text = [0; REASON_BYTES + 1];
        let mut length = 0;
        // SAFETY: the buffer has the size that the standard prescribes.
        let explained =
            unsafe { (self.functions.error_string)(code, text.as_mut_ptr().cast(), &raw mut length) };
        let reason = match text_of(&text) {
            text if explained == 0 && !text.is_empty() => {
                text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
            }
            _ => format!("error {code}"),
        };
        Error::Call { call: call.name(), peer, reason }
    }

    /// Returns a function that some libraries lack.
    ///
    /// # Errors
    /// The library lacks it.
    #[inline]
    pub(crate) fn optional<F>(&self, function: Option<F>, call: Call) -> Result<F> {
        function.ok_or_else(|| Error::Lacks { function: call.name(), path: self.path.clone() })
    }

    /// Makes the library that was opened from `name`.
    fn of(opened: unix::Library, name: &OsStr) -> Result<Self> {
        let has = |symbol: &str| address(&opened, symbol).is_some();
        let Some(init) = address(&opened, "MPI_Init_thread") else {
            return Err(Error::NotMpi { name: name.to_string_lossy().into() });
        };
        let path = file_of(init).unwrap_or_else(|| name.into());
        let abi = match standard_version(&opened) {
            Some(1..) => Abi::Standard,
            _ if has("ompi_mpi_comm_world") => Abi::OpenMpi,
            _ => Abi::Mpich,
        };
        // SAFETY: it has MPI_Init_thread, so it is an MPI library.
        let functions = unsafe { Functions::of(&opened) };
        let functions =
            functions.map_err(|call| Error::Lacks { function: call.name(), path: path.clone() })?;
        let constants = Constants::of(abi, |symbol| {
            let lacks = || Error::Lacks { function: symbol, path: path.clone() };
            address(&opened, symbol).ok_or_else(lacks)
        })?;
        let version_full = version(&functions);
        Ok(Self { abi, path, version: short(&version_full), version_full, functions, constants, opened })
    }

    /// Returns the library with constants that a test changes.
    #[cfg(test)]
    pub(crate) fn with_constants(&self, change: impl FnOnce(&mut Constants)) -> &'static Self {
        // SAFETY: it is an MPI library.
        let functions = unsafe { Functions::of(&self.opened) }.expect("it has them");
        let mut constants = self.constants.clone();
        change(&mut constants);
        // SAFETY: RTLD_NOLOAD loads no further library.
        let opened = unsafe { unix::Library::open(Some(&self.path), RTLD_NOW | libc::RTLD_NOLOAD) };
        Box::leak(Box::new(Self {
            abi: self.abi,
            path: self.path.clone(),
            version: self.version.clone(),
            version_full: self.version_full.clone(),
            functions,
            constants,
            opened: opened.expect("it is open"),
        }))
    }

    /// Whether `name` means this library. Loads no other library.
    fn is_named(&self, name: &OsStr) -> bool {
        // SAFETY: RTLD_NOLOAD loads no further library.
        let known = unsafe { unix::Library::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) };
        known
            .is_ok_and(|known| address(&known, "MPI_Init_thread") == address(&self.opened, "MPI_Init_thread"))
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("path", &self.path).field("version", &self.version).finish()
    }
}

/// The address of a symbol.
fn address(library: &unix::Library, symbol: &str) -> Option<usize> {
    // SAFETY: only the address is used, and a pointer has the size of a symbol's address.
    let found = unsafe { library.get::<*const ()>(format!("{symbol}\0").as_bytes()) };
    found.ok().map(|found| found.as_raw_ptr() as usize)
}

/// Returns the major version of a library's standard ABI; negative if it has another ABI (MPICH 5's
/// libmpi.so.12 has the function, too).
fn standard_version(library: &unix::Library) -> Option<c_int> {
    type AbiGetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: MPI 5.0 prescribes this type.
    let function = unsafe { library.get::<AbiGetVersion>(b"MPI_Abi_get_version\0") }.ok()?;
    let mut major = -1;
    let mut minor = -1;
    // SAFETY: both are writable, and the function may be called before MPI_Init.
    let code = unsafe { function(&raw mut major, &raw mut minor) };
    (code == 0).then_some(major)
}

/// The file that contains the code at an address.
fn file_of(address: usize) -> Option<PathBuf> {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: dladdr accepts any address, and the structure is writable.
    let is_known = unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut found) } != 0;
    if !is_known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name lives as long as the library stays open.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    Some(path.canonicalize().unwrap_or_else(|_| path.into()))
}

/// The text of `MPI_Get_library_version`, which may be called before `MPI_Init`.
fn version(functions: &Functions) -> String {
    let mut text = vec![0; VERSION_BYTES + 1];
    let mut length = 0;
    // SAFETY: the buffer has the size that the standard prescribes.
    unsafe { (functions.get_library_version)(text.as_mut_ptr().cast(), &raw mut length) };
    text_of(&text).trim().to_owned()
}

/// The text up to the first zero byte.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Name and version from the first line of a library's version text.
fn short(full: &str) -> String {
    let line = full.lines().next().unwrap_or_default();
    // "MPI VERSION    : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)"
    let line = match line.split_once(':') {
        Some((label, rest)) if label.trim() == "MPI VERSION" => rest,
        _ => line,
    };
    // "Open MPI v4.1.4, package: Debian OpenMPI, ..."
    let line = line.split(", package:").next().unwrap_or_default();
    // "MPICH Version:\t4.0.2", "MVAPICH2 Version      :\t2.3.7"
    let words = line.split_whitespace().filter(|word| !["Version:", "Version", ":"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shortened() {
        for (full, expected) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, May 26, 2022", "Open MPI v4.1.4"),
            ("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7", "MPICH 4.0.2"),
            ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release", "MVAPICH2 2.3.7"),
            ("Intel(R) MPI Library 2021.12 for Linux* OS\n", "Intel(R) MPI Library 2021.12 for Linux* OS"),
            (
                "MPI VERSION    : CRAY MPICH version 8.1.25 (ANL base 3.4a2)\n",
                "CRAY MPICH version 8.1.25 (ANL base 3.4a2)",
            ),
        ] {
            assert_eq!(short(full), expected);
        }
    }

    #[test]
    fn what_is_missing_or_no_mpi_library_is_a_sentence() {
        let text = Library::open("libmpi-absent.so.40").expect_err("there is none").to_string();
        assert!(text.contains("libmpi-absent.so.40") && text.contains("No such file"), "{text}");
        let text = Library::open("libc.so.6").expect_err("it is not MPI").to_string();
        assert_eq!(text, "libc.so.6 is not an MPI library: it has no MPI_Init_thread");
    }
}
