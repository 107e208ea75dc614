//! The registry of backends: the one place that names them.

use std::sync::OnceLock;

use anyhow::bail;
use verbs::{Device, Provider, system};

use crate::preload;

/// Every provider of verbs that can be used here, the preferred first: what reaches a network
/// before what does not.
pub(crate) fn providers() -> &'static [&'static Provider] {
    static PROVIDERS: OnceLock<Vec<&'static Provider>> = OnceLock::new();
    PROVIDERS.get_or_init(|| system::provider().into_iter().chain([&softdev::PROVIDER]).collect())
}

/// Why a provider cannot be used here, in a sentence each.
pub(crate) fn missing() -> Vec<String> {
    system::provider().err().map(ToString::to_string).into_iter().collect()
}

/// The variables by which another program finds a device: the software device is in this one, and a
/// library brings it into others.
///
/// # Errors
/// If there is no such library.
pub(crate) fn variables_of_programs(device: &Device) -> anyhow::Result<Vec<(String, String)>> {
    if !is_softdev(device) {
        return Ok(Vec::new());
    }
    let Ok(value) = preload::value()?.into_string() else {
        bail!("{} has libraries whose names are no text: leave them out", preload::VARIABLE);
    };
    Ok(vec![(preload::VARIABLE.to_owned(), value)])
}

/// The variable in which a device reads in another program what its link is to be like, or why it
/// imitates none.
pub(crate) fn link_variable(device: &Device) -> Result<&'static str, &'static str> {
    device.provider().set_link.and(Ok(softdev::LINK_VARIABLE))
}

/// Whether this host has a device that reaches a network.
pub(crate) fn has_network_device() -> bool {
    system::provider().is_ok_and(|provider| verbs::devices(provider).is_ok_and(|found| !found.is_empty()))
}

/// Whether it is the software device of this program.
pub(crate) fn is_softdev(device: &Device) -> bool {
    std::ptr::eq(device.provider(), &raw const softdev::PROVIDER)
}
