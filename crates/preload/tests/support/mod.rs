//! The path of the library.

use std::path::PathBuf;

use rdmascope_preload::LIBRARY;

/// Returns the library that cargo has built next to the tests.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join(LIBRARY)
}
