//! The conformance cases on a device: softdev0, or the one that `RDMASCOPE_CONFORMANCE_DEVICE`
//! names.

use conformance::node::{peer, serve};
use conformance::subject::{DEVICE_VARIABLE, Subject};
use verbs::{Provider, system};

/// The device that every host has.
const DEVICE: &str = "softdev0";

fn main() {
    let far_end = peer();
    let named = far_end.clone().or_else(|| std::env::var(DEVICE_VARIABLE).ok());
    let subject = Subject::parse(named.as_deref().unwrap_or(DEVICE), provider).unwrap_or_else(|why| {
        eprintln!("{why}");
        std::process::exit(2);
    });
    if far_end.is_some() {
        serve(&subject);
    } else {
        conformance::run(&subject);
    }
}

/// Returns the provider of a device. Add further providers here.
fn provider(device: &str) -> Result<&'static Provider, String> {
    if device.starts_with("softdev") {
        return Ok(&softdev::PROVIDER);
    }
    system::provider().map_err(|missing| format!("`{device}` is not {DEVICE}, and {missing}"))
}
