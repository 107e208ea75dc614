//! What the library is called, and what the paths of libraries cannot contain.

/// File name of the library, `rdmascope_preload::LIBRARY`. The code does not use that crate, which
/// is built with this program but must not be linked into it: it defines functions of libc.
pub(super) const LIBRARY: &str = "librdmascope_preload.so";

/// Whether a byte ends a path in `LD_PRELOAD` (ld.so(8)).
pub(super) fn is_separator(byte: &u8) -> bool {
    b" :".contains(byte)
}
