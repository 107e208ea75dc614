//! The verbs device of a rank.

use std::sync::Arc;

use verbs::{Context, Device, LinkModel, Provider};

use super::endpoints::Waiting;
use crate::Error;
use crate::choice::{Reason, candidates, choose, devices};
use crate::fault::PointError;
use crate::point::PointSpec;
use crate::timepiece::Timepiece;
use crate::topology::{PartSpec, Topology};
use crate::verbs_endpoint::{LocalPort, PortOptions, Unconnected};

/// A device that is open, with the port that is used.
pub(super) struct Open {
    pub(super) context: Context,
    pub(super) port: Arc<LocalPort>,
    /// Why this device.
    pub(super) reason: Reason,
}

impl Open {
    /// Opens the named device, or the one that [`choose`] prefers, and finds its port, on which something can be measured.
    pub(super) fn find(
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

    /// Sets up what a rank needs for a point.
    pub(super) fn prepare(
        &self,
        spec: &PointSpec,
        topology: &Topology,
        rank: u32,
        timepiece: &Timepiece,
    ) -> Result<Waiting<Unconnected>, PointError> {
        let Self { context, port, .. } = self;
        let link = match topology.begins(rank) {
            true => spec.link,
            false => spec.link.map(LinkModel::seen_from_other_end),
        };
        if let Some(reason) = port.refusal(spec.message.setup) {
            return Err(PointError::NotMeasured(reason));
        }
        match context.device().provider().set_link {
            Ok(_) => context.set_link(link.as_ref()).map_err(Error::from)?,
            Err(reason) if link.is_some() => return Err(PointError::NotMeasured(reason.to_owned())),
            Err(_) => {}
        }
        let half = |part: &PartSpec| Unconnected::new(context, port, part, rank, timepiece.clock);
        Ok(Waiting::new(topology, rank, timepiece, half)?)
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

/// Opens the device and finds its port and GID, as a rank would, so that what was asked for wrongly is known at once.
///
/// # Errors
/// When there is no such device, port or GID, or nothing can be measured on it.
pub fn check(providers: &[&'static Provider], name: Option<&str>, options: PortOptions) -> Result<(), Error> {
    Open::find(providers, name, options).map(drop)
}
