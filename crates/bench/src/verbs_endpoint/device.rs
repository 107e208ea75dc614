//! The verbs device of a rank.

use std::sync::Arc;

use verbs::{Context, Device, Provider};

use super::port::{LocalPort, PortOptions};
use crate::choice::{Reason, candidates, choose, devices};
use crate::{Error, hint};

/// A rank's device. It is opened when it is first used, so that the error of a device that cannot
/// be opened reaches the coordinator.
pub(crate) struct RankDevice {
    providers: &'static [&'static Provider],
    name: Option<String>,
    options: PortOptions,
    open: Option<Open>,
}

impl RankDevice {
    /// Creates the rank's choice: the named device, or the one that [`choose`] prefers; without
    /// providers, no device.
    pub(crate) fn new(
        providers: &'static [&'static Provider],
        name: Option<String>,
        options: PortOptions,
    ) -> Self {
        Self { providers, name, options, open: None }
    }

    /// Returns whether the rank measures without a device.
    pub(crate) fn is_none(&self) -> bool {
        self.providers.is_empty()
    }

    /// Opens the device, unless it is open, and returns it.
    pub(crate) fn open(&mut self) -> Result<&Open, Error> {
        if self.open.is_none() {
            self.open = Some(Open::find(self.providers, self.name.as_deref(), self.options)?);
        }
        Ok(self.open.as_ref().expect("it was opened above"))
    }

    /// Returns the name of the device, once it is open.
    pub(crate) fn name(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.context.device().name())
    }
}

/// An open device, with the port that is used.
pub(crate) struct Open {
    pub(crate) context: Context,
    pub(crate) port: Arc<LocalPort>,
    /// Why this device was chosen.
    pub(crate) reason: Reason,
}

impl Open {
    /// Opens the named device, or the one that [`choose`] prefers, and finds a port that can be
    /// measured.
    fn find(
        providers: &[&'static Provider],
        name: Option<&str>,
        options: PortOptions,
    ) -> Result<Self, Error> {
        let (device, reason) = find(providers, name, options)?;
        let context = device.open()?;
        let port = LocalPort::find(&context, options)?;
        port.check()?;
        Ok(Self { context, port: Arc::new(port), reason })
    }
}

/// Returns the named device of the providers, or the one that [`choose`] prefers, and the reason.
///
/// # Errors
/// If there is no device of that name; the error lists the devices.
pub fn find(
    providers: &[&'static Provider],
    name: Option<&str>,
    options: PortOptions,
) -> Result<(Device, Reason), Error> {
    let Some(name) = name else {
        let (mut devices, candidates): (Vec<_>, Vec<_>) = candidates(providers, options).into_iter().unzip();
        let chosen = choose(&candidates).map(|(index, reason)| (devices.swap_remove(index), reason));
        return chosen.ok_or_else(|| no_device("any", &[]));
    };
    let known: Vec<_> = devices(providers).collect();
    let found = known.iter().find(|device| device.name() == name).cloned();
    found.map(|device| (device, Reason::Named)).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(Device::name).collect();
        no_device(name, &names)
    })
}

fn no_device(name: &str, names: &[&str]) -> Error {
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Error::NoDevice { name: name.to_owned(), known, hint: hint(name, names.iter().copied()) }
}

/// Opens the device and finds its port and GID as a rank would, so that wrong options are reported
/// at once.
///
/// # Errors
/// If there is no such device, port or GID, or it cannot be measured.
pub fn check(providers: &[&'static Provider], name: Option<&str>, options: PortOptions) -> Result<(), Error> {
    Open::find(providers, name, options).map(drop)
}
