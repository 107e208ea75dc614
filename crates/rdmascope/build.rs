//! Tells the program where cargo links the library that `rdmascope exec` preloads: the program
//! has a copy of it inside (`src/preload/embedded.rs`). Strips the program of a release.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo gives a script PROFILE/build/NAME/out and links what the program depends on in
    // PROFILE/deps, before it compiles the program. No stable interface says so: should a later
    // cargo do otherwise, the build fails here, or where the assembler does not find the file.
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let dependencies = out.ancestors().map(|place| place.join("deps")).find(|deps| deps.is_dir());
    let dependencies = dependencies.expect("a directory `deps` in one of the parents of OUT_DIR");
    let library = dependencies.join("librdmascope_preload.so");
    println!("cargo::rustc-env=PRELOAD_LIBRARY={}", library.display());
    let is = |name, value| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("DEBUG", "false") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
