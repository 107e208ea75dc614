//! What the environment says of the device: how many there are and what their links are.
//!
//! A value that means nothing is an error, of [`settings`] and of every attempt to list the devices: a program that was to
//! run on InfiniBand must not run on Ethernet because of a misspelt word.

use std::env;
use std::sync::OnceLock;

use verbs::abi::*;

/// Environment variable: how many devices a process has.
pub const DEVICES_VARIABLE: &str = "RDMASCOPE_SOFTDEV_DEVICES";
/// Environment variable: the link layer of all their ports.
pub const LINK_LAYER_VARIABLE: &str = "RDMASCOPE_SOFTDEV_LINK_LAYER";
/// Most devices that a process can have: as many as four bits of a message's description tell apart.
pub const MAX_DEVICES: u8 = 16;

/// What the environment says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Devices: `softdev0` and so on.
    pub devices: u8,
    /// Link layer of their ports.
    pub link: Link,
}

/// A link layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Link {
    /// RoCE version 2: routes name GIDs.
    Ethernet,
    /// InfiniBand: routes name LIDs, and GIDs where they are global.
    Infiniband,
}

impl Link {
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
    let found = SETTINGS
        .get_or_init(|| parse(read(DEVICES_VARIABLE).as_deref(), read(LINK_LAYER_VARIABLE).as_deref()));
    found.as_ref().copied().map_err(String::as_str)
}

/// The link layer of this process's ports; Ethernet before anything was opened with settings that mean something.
pub(crate) fn link() -> Link {
    settings().map_or(Link::Ethernet, |settings| settings.link)
}

fn parse(devices: Option<&str>, link: Option<&str>) -> Result<Settings, String> {
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
    let link = match link {
        None | Some("ethernet") => Link::Ethernet,
        Some("infiniband") => Link::Infiniband,
        Some(text) => {
            return Err(format!(
                "{LINK_LAYER_VARIABLE} is `{text}`, but softdev's link layer is `ethernet` or `infiniband`: set it to \
                 one of the two or unset it"
            ));
        }
    };
    Ok(Settings { devices, link })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_the_environment_says() {
        let usual = Settings { devices: 1, link: Link::Ethernet };
        assert_eq!(parse(None, None), Ok(usual));
        assert_eq!(parse(Some("16"), Some("ethernet")), Ok(Settings { devices: 16, ..usual }));
        assert_eq!(parse(None, Some("infiniband")), Ok(Settings { link: Link::Infiniband, ..usual }));
    }

    #[test]
    fn what_means_nothing_is_an_error_that_says_what_does() {
        for devices in ["0", "17", "256", "-1", "", "two"] {
            let why = parse(Some(devices), None).unwrap_err();
            let says = format!("RDMASCOPE_SOFTDEV_DEVICES is `{devices}`, but softdev has 1 to 16 devices");
            assert!(why.starts_with(&says), "{why}");
        }
        for link in ["roce", "InfiniBand", ""] {
            let why = parse(None, Some(link)).unwrap_err();
            let says =
                format!("RDMASCOPE_SOFTDEV_LINK_LAYER is `{link}`, but softdev's link layer is `ethernet`");
            assert!(why.starts_with(&says), "{why}");
        }
    }
}
