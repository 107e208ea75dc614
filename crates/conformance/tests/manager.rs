//! The cases of the connection manager on a device: the one that `RDMASCOPE_CONFORMANCE_DEVICE`
//! names, or softdev0, through the library that `rdmascope exec` preloads.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use conformance::manager::{missing, run};
use conformance::node::{peer, serve};
use conformance::runner::again;
use conformance::subject::{DEVICE_VARIABLE, Subject};
use verbs::{Provider, system};

/// The device that every host has.
const DEVICE: &str = "softdev0";
/// The library that shows softdev to programs of libibverbs; cargo builds it in the directory of
/// the tests.
const LIBRARY: &str = "librdmascope_preload.so";
/// Environment variable with the libraries that the dynamic linker loads first.
const PRELOAD: &str = "LD_PRELOAD";
/// The name of the requirement, in `RDMASCOPE_REQUIRE` and in the reason of skipped cases.
const REASON: &str = "librdmacm";

fn main() {
    let far_end = peer();
    let named = far_end.clone().or_else(|| std::env::var(DEVICE_VARIABLE).ok());
    let device = named.unwrap_or_else(|| DEVICE.to_owned());
    if device.starts_with("softdev") && !is_preloaded() {
        let error = again().env(PRELOAD, library()).exec();
        panic!("this test cannot start itself with {LIBRARY}: {error}");
    }
    let why_not = missing();
    if let Some(why) = &why_not {
        let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name.trim() == REASON), "{REASON} is required: {why}");
    }
    let subject = Subject::parse(&device, provider).unwrap_or_else(|why| {
        eprintln!("{why}");
        std::process::exit(2);
    });
    if far_end.is_some() {
        serve(&subject);
    } else {
        run(&subject, why_not.map(|why| format!("{REASON}: {why}")));
    }
}

/// Returns libibverbs as provider. Without libibverbs no case runs, so softdev is only a
/// placeholder.
fn provider(_: &str) -> Result<&'static Provider, String> {
    Ok(system::provider().unwrap_or(&softdev::PROVIDER))
}

fn is_preloaded() -> bool {
    std::env::var(PRELOAD).is_ok_and(|all| all.contains(LIBRARY))
}

fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a program knows its path");
    test.with_file_name(LIBRARY)
}
