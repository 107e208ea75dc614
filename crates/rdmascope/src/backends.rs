//! The registry of backends: the one place that names them.

use std::sync::OnceLock;

use anyhow::bail;
use verbs::{Device, Provider, system};

use crate::preload;

/// Returns all providers of verbs that can be used here, the preferred one first: a provider that
/// reaches a network comes before one that does not.
pub(crate) fn providers() -> &'static [&'static Provider] {
    static PROVIDERS: OnceLock<Vec<&'static Provider>> = OnceLock::new();
    PROVIDERS.get_or_init(|| system::provider().into_iter().chain([&softdev::PROVIDER]).collect())
}

/// Returns a sentence for each provider that cannot be used here.
pub(crate) fn missing() -> Vec<String> {
    system::provider().err().map(ToString::to_string).into_iter().collect()
}

/// Returns the variables by which another program finds a device. The software device is part of
/// this program, and a library brings it into others.
///
/// # Errors
/// If the library is not found.
pub(crate) fn variables_of_programs(device: &Device) -> anyhow::Result<Vec<(String, String)>> {
    if !is_softdev(device) {
        return Ok(Vec::new());
    }
    let Ok(value) = preload::value()?.into_string() else {
        bail!("{} has names of libraries that are not UTF-8: leave them out", preload::VARIABLE);
    };
    Ok(vec![(preload::VARIABLE.to_owned(), value)])
}

/// Returns the variable from which a device in another program reads its link model, or why the
/// device models no link.
pub(crate) fn link_variable(device: &Device) -> Result<&'static str, &'static str> {
    device.provider().set_link.and(Ok(softdev::LINK_VARIABLE))
}

/// Whether this host has a device that reaches a network.
pub(crate) fn has_network_device() -> bool {
    system::provider().is_ok_and(|provider| verbs::devices(provider).is_ok_and(|found| !found.is_empty()))
}

/// Whether a device is the software device of this program.
pub(crate) fn is_softdev(device: &Device) -> bool {
    std::ptr::eq(device.provider(), &raw const softdev::PROVIDER)
}
