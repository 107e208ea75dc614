//! See `bodies::record`.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

#[path = "../bodies.rs"]
mod bodies;

/// One directory for all inputs of the process.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("rdmascope-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::record(&DIRECTORY, data));
