//! Where the library is.

use std::path::PathBuf;

use rdmascope_preload::LIBRARY;

/// The library as cargo has built it beside the tests.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join(LIBRARY)
}
