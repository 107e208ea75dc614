//! What the environment says of the device: how many there are and what their links are.
//!
//! A value that means nothing is an error, of [`settings`] and of every attempt to list the
//! devices: a program that was to run on InfiniBand must not run on Ethernet because of a misspelt
//! word.

use std::env;
use std::sync::OnceLock;

use verbs::abi::*;
use verbs::{BadLink, LinkModel};

/// Environment variable: how many devices a process has.
pub const DEVICES_VARIABLE: &str = "RDMASCOPE_SOFTDEV_DEVICES";
/// Environment variable: the link layer of all their ports.
pub const LINK_LAYER_VARIABLE: &str = "RDMASCOPE_SOFTDEV_LINK_LAYER";
/// Environment variable: the link that they imitate, as [`LinkModel`] reads it.
pub const LINK_VARIABLE: &str = "RDMASCOPE_SOFTDEV_LINK";
/// Most devices that a process can have: as many as four bits of a message's description tell
/// apart.
pub const MAX_DEVICES: u8 = 16;

/// What the environment says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Devices: `softdev0` and so on.
    pub devices: u8,
    /// Link layer of their ports.
    pub link_layer: LinkLayer,
    /// The link that they imitate; none: as fast as memory.
    pub link: Option<LinkModel>,
}

/// A link layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkLayer {
    /// RoCE version 2: routes name GIDs.
    Ethernet,
    /// InfiniBand: routes name LIDs, and GIDs where they are global.
    Infiniband,
}

impl LinkLayer {
    /// Its number in `ibv_port_attr`.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ethernet => IBV_LINK_LAYER_ETHERNET,
            Self::Infiniband => IBV_LINK_LAYER_INFINIBAND,
        }
    }
}

/// What the environment says of the device, looked at once.
///
/// # Errors
/// A sentence that says which variable has a value that means nothing, and which values there are.
pub fn settings() -> Result<Settings, &'static str> {
    static SETTINGS: OnceLock<Result<Settings, String>> = OnceLock::new();
    let read = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let found = SETTINGS.get_or_init(|| {
        let [devices, layer, link] = [DEVICES_VARIABLE, LINK_LAYER_VARIABLE, LINK_VARIABLE].map(read);
        parse(devices.as_deref(), layer.as_deref(), link.as_deref())
    });
    found.as_ref().copied().map_err(String::as_str)
}

/// The link layer of this process's ports; Ethernet before anything was opened with settings that
/// mean something.
pub(crate) fn link_layer() -> LinkLayer {
    settings().map_or(LinkLayer::Ethernet, |settings| settings.link_layer)
}

fn parse(devices: Option<&str>, link_layer: Option<&str>, link: Option<&str>) -> Result<Settings, String> {
    let devices = match devices {
        None => 1,
        Some(text) => match text.parse() {
            Ok(number) if (1..=MAX_DEVICES).contains(&number) => number,
            _ => {
                return Err(format!(
                    "{DEVICES_VARIABLE} is `{text}`, but softdev has 1 to {MAX_DEVICES} devices: set it to such a \
                     number or unset it"
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
    Ok(Settings { devices, link_layer, link })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_the_environment_says() {
        let usual = Settings { devices: 1, link_layer: LinkLayer::Ethernet, link: None };
        assert_eq!(parse(None, None, None), Ok(usual));
        assert_eq!(parse(Some("16"), Some("ethernet"), None), Ok(Settings { devices: 16, ..usual }));
        let infiniband = Settings { link_layer: LinkLayer::Infiniband, ..usual };
        assert_eq!(parse(None, Some("infiniband"), None), Ok(infiniband));
        let linked = parse(None, None, Some("4X FDR,latency=1us")).unwrap().link.unwrap();
        assert_eq!(linked.to_string(), "4X FDR,latency=1us");
    }

    #[test]
    fn what_means_nothing_is_an_error_that_says_what_does() {
        for devices in ["0", "17", "256", "-1", "", "two"] {
            let why = parse(Some(devices), None, None).unwrap_err();
            let says = format!("RDMASCOPE_SOFTDEV_DEVICES is `{devices}`, but softdev has 1 to 16 devices");
            assert!(why.starts_with(&says), "{why}");
        }
        for link in ["roce", "InfiniBand", ""] {
            let why = parse(None, Some(link), None).unwrap_err();
            let says =
                format!("RDMASCOPE_SOFTDEV_LINK_LAYER is `{link}`, but softdev's link layer is `ethernet`");
            assert!(why.starts_with(&says), "{why}");
        }
        let why = parse(None, None, Some("fast")).unwrap_err();
        assert!(why.starts_with("RDMASCOPE_SOFTDEV_LINK: `fast` describes no link: "), "{why}");
    }
}
