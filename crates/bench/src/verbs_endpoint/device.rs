//! The verbs device of a rank.

use std::sync::Arc;

use verbs::{Context, Device, Provider};

use super::port::{LocalPort, PortOptions};
use crate::Error;
use crate::choice::{Reason, candidates, choose, devices};

/// A rank's device, which is opened when it is first asked for: the error of one that cannot be
/// opened reaches the coordinator.
pub(crate) struct RankDevice {
    providers: &'static [&'static Provider],
    name: Option<String>,
    options: PortOptions,
    open: Option<Open>,
}

impl RankDevice {
    /// The named device, or the one that [`choose`] prefers, or with no providers, none.
    pub(crate) fn new(
        providers: &'static [&'static Provider],
        name: Option<String>,
        options: PortOptions,
    ) -> Self {
        Self { providers, name, options, open: None }
    }

    /// Whether the rank measures without a device.
    pub(crate) fn is_none(&self) -> bool {
        self.providers.is_empty()
    }

    /// The device, which is opened unless it is open.
    pub(crate) fn open(&mut self) -> Result<&Open, Error> {
        if self.open.is_none() {
            self.open = Some(Open::find(self.providers, self.name.as_deref(), self.options)?);
        }
        Ok(self.open.as_ref().expect("it was opened above"))
    }

    /// The name of the device, once it is open.
    pub(crate) fn name(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.context.device().name())
    }
}

/// A device that is open, with the port that is used.
pub(crate) struct Open {
    pub(crate) context: Context,
    pub(crate) port: Arc<LocalPort>,
    /// Why this device.
    pub(crate) reason: Reason,
}

impl Open {
    /// Opens the named device, or the one that [`choose`] prefers, and finds its port, on which
    /// something can be measured.
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

/// The named device of the providers, or the one that [`choose`] prefers, and why it is the one.
///
/// # Errors
/// When there is none of that name; the error lists those that exist.
pub fn find(
    providers: &[&'static Provider],
    name: Option<&str>,
    options: PortOptions,
) -> Result<(Device, Reason), Error> {
    let Some(name) = name else {
        let (mut devices, candidates): (Vec<_>, Vec<_>) = candidates(providers, options).into_iter().unzip();
        let chosen = choose(&candidates).map(|(index, reason)| (devices.swap_remove(index), reason));
        return chosen.ok_or_else(|| Error::NoDevice { name: "any".to_owned(), known: "none".to_owned() });
    };
    let known: Vec<_> = devices(providers).collect();
    let found = known.iter().find(|device| device.name() == name).cloned();
    found.map(|device| (device, Reason::Named)).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(Device::name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::NoDevice { name: name.to_owned(), known }
    })
}

/// Opens the device and finds its port and GID, as a rank would, so that what was asked for wrongly
/// is known at once.
///
/// # Errors
/// When there is no such device, port or GID, or nothing can be measured on it.
pub fn check(providers: &[&'static Provider], name: Option<&str>, options: PortOptions) -> Result<(), Error> {
    Open::find(providers, name, options).map(drop)
}
