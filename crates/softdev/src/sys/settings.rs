//! The settings of the device in the environment: the number of devices, and their links.
//!
//! An invalid value is an error of [`settings`], and of every attempt to list the devices: a
//! misspelt word must not make a program run on Ethernet instead of InfiniBand.

use std::str::FromStr;
use std::sync::OnceLock;
use std::{env, fmt};

use verbs::abi::*;
use verbs::{BadLink, LinkModel};

/// Environment variable: the number of devices of a process.
pub const DEVICES_VARIABLE: &str = "RDMASCOPE_SOFTDEV_DEVICES";
/// Environment variable: the link layer of all their ports.
pub const LINK_LAYER_VARIABLE: &str = "RDMASCOPE_SOFTDEV_LINK_LAYER";
/// Environment variable: the link that they model, in the syntax of [`LinkModel`].
pub const LINK_VARIABLE: &str = "RDMASCOPE_SOFTDEV_LINK";
/// Environment variable: the MTU of their ports on Ethernet, in the syntax of [`PortMtu`].
pub const MTU_VARIABLE: &str = "RDMASCOPE_SOFTDEV_MTU";
/// The maximum number of devices of a process: four bits of a message name the device.
pub const MAX_DEVICES: u8 = 16;

/// The settings in the environment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// The number of devices: `softdev0` and so on.
    pub devices: u8,
    /// The link layer of their ports.
    pub link_layer: LinkLayer,
    /// The link that they model; without one they are as fast as memory.
    pub link: Option<LinkModel>,
    /// The MTU of their ports on Ethernet.
    pub mtu: PortMtu,
}

/// The MTU of a port on Ethernet: the maximum payload of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortMtu {
    /// This many bytes: 256, 512, 1024, 2048 or 4096.
    Bytes(u16),
    /// The largest of these that fits in a packet of the port's network interface.
    Netdev,
}

impl Default for PortMtu {
    /// The largest MTU, so that every host measures the same.
    fn default() -> Self {
        Self::Bytes(4096)
    }
}

impl FromStr for PortMtu {
    type Err = BadMtu;

    fn from_str(text: &str) -> Result<Self, BadMtu> {
        match text {
            "netdev" => Ok(Self::Netdev),
            "256" | "512" | "1024" | "2048" | "4096" => text.parse().map(Self::Bytes).map_err(|_| BadMtu),
            _ => Err(BadMtu),
        }
    }
}

impl fmt::Display for PortMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Netdev => f.write_str("netdev"),
        }
    }
}

/// The error of a text that is not an MTU.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a port's MTU is 256, 512, 1024, 2048 or 4096 bytes, or `netdev` to fit its network interface")]
pub struct BadMtu;

/// A link layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkLayer {
    /// RoCE version 2: routes name GIDs.
    Ethernet,
    /// InfiniBand: routes name LIDs, and also GIDs if they are global.
    Infiniband,
}

impl LinkLayer {
    /// Returns its number in `ibv_port_attr`.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ethernet => IBV_LINK_LAYER_ETHERNET,
            Self::Infiniband => IBV_LINK_LAYER_INFINIBAND,
        }
    }
}

/// Returns the settings of the environment, which is read once.
///
/// # Errors
/// Names the variable whose value is invalid, and the valid values.
pub fn settings() -> Result<Settings, &'static str> {
    found().as_ref().copied().map_err(String::as_str)
}

#[inline]
fn found() -> &'static Result<Settings, String> {
    static SETTINGS: OnceLock<Result<Settings, String>> = OnceLock::new();
    let read = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    SETTINGS.get_or_init(|| {
        let names = [DEVICES_VARIABLE, LINK_LAYER_VARIABLE, LINK_VARIABLE, MTU_VARIABLE];
        parse(names.map(read).each_ref().map(Option::as_deref))
    })
}

/// Returns the link layer of this process's ports; Ethernet if the settings are invalid.
#[inline]
pub(crate) fn link_layer() -> LinkLayer {
    found().as_ref().map_or(LinkLayer::Ethernet, |settings| settings.link_layer)
}

fn parse([devices, link_layer, link, mtu]: [Option<&str>; 4]) -> Result<Settings, String> {
    let devices = match devices {
        None => 1,
        Some(text) => match text.parse() {
            Ok(number) if (1..=MAX_DEVICES).contains(&number) => number,
            _ => {
                return Err(format!(
                    "{DEVICES_VARIABLE} is `{text}`, but softdev has 1 to {MAX_DEVICES} devices: set it to one of \
                     these numbers or unset it"
                ));
            }
        },
    };
    let link_layer = match link_layer {
        None | Some("ethernet") => LinkLayer::Ethernet,
        Some("infiniband") => LinkLayer::Infiniband,
        Some(text) => {
            return Err(format!(
                "{LINK_LAYER_VARIABLE} is `{text}`, but softdev's link layer is `ethernet` or `infiniband`: set it to \
                 one of the two or unset it"
            ));
        }
    };
    let link = link.map(str::parse).transpose();
    let link = link.map_err(|why: BadLink| format!("{LINK_VARIABLE}: {why}; or unset it"))?;
    let bad_mtu = |text| {
        move |why: BadMtu| {
            format!("{MTU_VARIABLE} is `{text}`, but {why}: set it to one of these or unset it")
        }
    };
    let mtu = mtu.map(|text| text.parse().map_err(bad_mtu(text))).transpose()?.unwrap_or_default();
    Ok(Settings { devices, link_layer, link, mtu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_the_environment_says() {
        let usual =
            Settings { devices: 1, link_layer: LinkLayer::Ethernet, link: None, mtu: PortMtu::Bytes(4096) };
        assert_eq!(parse([None; 4]), Ok(usual));
        assert_eq!(parse([Some("16"), Some("ethernet"), None, None]), Ok(Settings { devices: 16, ..usual }));
        let infiniband = Settings { link_layer: LinkLayer::Infiniband, ..usual };
        assert_eq!(parse([None, Some("infiniband"), None, None]), Ok(infiniband));
        let linked = parse([None, None, Some("4X FDR,latency=1us"), None]).unwrap().link.unwrap();
        assert_eq!(linked.to_string(), "4X FDR,latency=1us");
        for (text, mtu) in [("netdev", PortMtu::Netdev), ("256", PortMtu::Bytes(256))] {
            let found = parse([None, None, None, Some(text)]).unwrap().mtu;
            assert_eq!((found, found.to_string().as_str()), (mtu, text));
        }
    }

    #[test]
    fn what_means_nothing_is_an_error_that_says_what_does() {
        for devices in ["0", "17", "256", "-1", "", "two"] {
            let why = parse([Some(devices), None, None, None]).unwrap_err();
            let says = format!("RDMASCOPE_SOFTDEV_DEVICES is `{devices}`, but softdev has 1 to 16 devices");
            assert!(why.starts_with(&says), "{why}");
        }
        for link in ["roce", "InfiniBand", ""] {
            let why = parse([None, Some(link), None, None]).unwrap_err();
            let says =
                format!("RDMASCOPE_SOFTDEV_LINK_LAYER is `{link}`, but softdev's link layer is `ethernet`");
            assert!(why.starts_with(&says), "{why}");
        }
        let why = parse([None, None, Some("fast"), None]).unwrap_err();
        assert!(why.starts_with("RDMASCOPE_SOFTDEV_LINK: `fast` is not a link: "), "{why}");
        for mtu in ["1500", "128", "8192", "Netdev", "", "0256"] {
            let why = parse([None, None, None, Some(mtu)]).unwrap_err();
            let says = format!("RDMASCOPE_SOFTDEV_MTU is `{mtu}`, but a port's MTU is 256, 512, 1024");
            assert!(why.starts_with(&says), "{why}");
        }
    }
}
