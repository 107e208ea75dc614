//! The choice of the device if the user names none.

use std::fmt;

use verbs::{Device, DeviceKind, Provider};

use crate::Error;
use crate::verbs_endpoint::{LocalPort, PortOptions};

/// A device that could be measured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Whether it is hardware or software.
    pub kind: DeviceKind,
    /// Why it cannot be measured now, and what to do about it; `None` if it can be measured.
    pub unusable: Option<String>,
}

/// The reason for the choice of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reason {
    /// The user named it.
    Named,
    /// There is no other device.
    Only,
    /// It is the first in order: usable devices before unusable devices, hardware before software,
    /// kernel software before user-space software.
    First(DeviceKind),
    /// It is software, and there is no hardware.
    NoHardware(DeviceKind),
    /// There is a better device, but it cannot be used.
    BetterUnusable {
        /// The kind of the chosen device.
        kind: DeviceKind,
        /// The kind of the better device.
        better: DeviceKind,
        /// Why the better device cannot be used, and what to do about it.
        why: String,
    },
}

impl Reason {
    /// Why a better device was not chosen.
    #[must_use]
    pub fn passed_over(&self) -> Option<String> {
        match self {
            Self::BetterUnusable { better, why, .. } => Some(format!("{better} cannot be used: {why}")),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("as asked for"),
            Self::Only => f.write_str("the only one here"),
            Self::First(kind) => write!(f, "the first {kind} that can be used"),
            Self::NoHardware(kind) => write!(f, "{kind}; there is no hardware here"),
            Self::BetterUnusable { kind, better, why } => {
                write!(f, "{kind}, because the {better} here cannot be used: {why}")
            }
        }
    }
}

/// Returns the index of the default candidate, and the reason.
#[must_use]
pub fn choose(candidates: &[Candidate]) -> Option<(usize, Reason)> {
    // The kinds are in order of preference. The first of equal candidates is chosen.
    let order = |(_, candidate): &(usize, &Candidate)| (candidate.unusable.is_some(), candidate.kind);
    let (index, chosen) = candidates.iter().enumerate().min_by_key(order)?;
    let best = candidates.iter().min_by_key(|candidate| candidate.kind)?;
    let reason = match &best.unusable {
        _ if candidates.len() == 1 => Reason::Only,
        Some(why) if best.kind < chosen.kind => {
            Reason::BetterUnusable { kind: chosen.kind, better: best.kind, why: why.clone() }
        }
        _ if chosen.kind == DeviceKind::Hardware => Reason::First(chosen.kind),
        _ => Reason::NoHardware(chosen.kind),
    };
    Some((index, reason))
}

/// The devices of the providers, each with its kind and whether it can be used.
pub(crate) fn candidates(providers: &[&'static Provider], options: PortOptions) -> Vec<(Device, Candidate)> {
    devices(providers).map(|device| (device.clone(), Candidate::of(&device, options))).collect()
}

/// The devices of the providers. A provider that cannot list its devices counts as one without
/// devices; `rdmascope devices` reports why.
pub(crate) fn devices(providers: &[&'static Provider]) -> impl Iterator<Item = Device> {
    providers.iter().flat_map(|provider| verbs::devices(provider).unwrap_or_default())
}

impl Candidate {
    /// Opens the device and checks the port that would be used.
    fn of(device: &Device, options: PortOptions) -> Self {
        let opened = device.open().map_err(Error::from);
        let limits = opened.as_ref().ok().and_then(|context| context.limits().ok());
        let checked = opened.and_then(|context| LocalPort::find(&context, options)?.check());
        Self {
            name: device.name().to_owned(),
            kind: DeviceKind::of(device, limits.as_ref()),
            unusable: checked.err().map(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use DeviceKind::{Hardware, KernelSoftware, UserSoftware};

    use super::*;

    fn up(name: &str, kind: DeviceKind) -> Candidate {
        Candidate { name: name.to_owned(), kind, unusable: None }
    }

    fn down(name: &str, kind: DeviceKind) -> Candidate {
        Candidate { unusable: Some(format!("port 1 of {name} is down")), ..up(name, kind) }
    }

    /// The name and the reason of the default device.
    fn default(candidates: &[Candidate]) -> (String, String) {
        let (index, reason) = choose(candidates).expect("there is one");
        (candidates[index].name.clone(), reason.to_string())
    }

    #[test]
    fn hardware_comes_before_software_whatever_the_order() {
        let mut devices = vec![
            up("softdev0", UserSoftware),
            up("rxe0", KernelSoftware),
            down("mlx5_0", Hardware),
            up("mlx5_1", Hardware),
            up("mlx5_2", Hardware),
        ];
        let expected = ("mlx5_1".to_owned(), "the first hardware that can be used".to_owned());
        assert_eq!(default(&devices), expected);
        devices.rotate_left(2);
        assert_eq!(default(&devices), expected);
    }

    #[test]
    fn what_is_down_is_never_chosen_while_another_is_up() {
        let devices = [down("mlx5_0", Hardware), down("rxe0", KernelSoftware), up("softdev0", UserSoftware)];
        let (name, reason) = default(&devices);
        assert_eq!(name, "softdev0");
        assert_eq!(
            reason,
            "user-space software, because the hardware here cannot be used: port 1 of mlx5_0 is down"
        );
        let (_, reason) = default(&devices[1..]);
        assert_eq!(
            reason,
            "user-space software, because the kernel software here cannot be used: port 1 of rxe0 is down"
        );
        let (name, reason) = default(&[up("softdev0", UserSoftware), up("rxe0", KernelSoftware)]);
        assert_eq!((name.as_str(), reason.as_str()), ("rxe0", "kernel software; there is no hardware here"));
    }

    #[test]
    fn where_all_are_down_the_best_of_them_says_why() {
        let devices = [down("rxe0", KernelSoftware), down("mlx5_0", Hardware)];
        assert_eq!(default(&devices).0, "mlx5_0");
        assert_eq!(default(&devices[..1]), ("rxe0".to_owned(), "the only one here".to_owned()));
        assert_eq!(choose(&[]), None);
    }
}
