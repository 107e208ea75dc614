//! What the library is called, and what the paths of libraries cannot contain.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// File name of the library, `rdmascope_preload::LIBRARY`. The code does not use that crate, which
/// is built with this program but must not be linked into it: it defines functions of libc.
pub(super) const LIBRARY: &str = "librdmascope_preload.so";

/// Whether `LD_PRELOAD` can name a path.
pub(super) fn can_be_preloaded(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(is_separator)
}

/// Whether a byte ends a path in `LD_PRELOAD` (ld.so(8)).
pub(super) fn is_separator(byte: &u8) -> bool {
    b" :".contains(byte)
}
