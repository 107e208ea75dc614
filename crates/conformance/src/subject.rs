//! The device that the cases run on, with its port and GID.

use std::fmt;

use verbs::Provider;
use verbs::abi::*;

use crate::rig::gid_of;

/// Environment variable that names the device: `NAME`, `NAME:PORT` or `NAME:PORT:GID_INDEX`, e.g.
/// `rxe0:1:1`.
pub const DEVICE_VARIABLE: &str = "RDMASCOPE_CONFORMANCE_DEVICE";

/// Returns the provider of a device, or the reason why there is none.
pub type Providers = fn(device: &str) -> Result<&'static Provider, String>;

/// The local side of routes: a port and an entry of its GID table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Origin {
    pub port: u8,
    pub gid_index: u8,
}

impl Default for Origin {
    /// Returns the first port (ports count from 1) and its first GID, by which any port can be
    /// reached from itself.
    fn default() -> Self {
        Self { port: 1, gid_index: 0 }
    }
}

impl Origin {
    /// Returns the route to the port of a GID.
    pub fn route(self, gid: [u64; 2]) -> ibv_ah_attr {
        ibv_ah_attr {
            grh: ibv_global_route {
                dgid: ibv_gid { raw: gid_of(gid) },
                sgid_index: self.gid_index,
                hop_limit: 64,
                ..ibv_global_route::default()
            },
            is_global: 1,
            port_num: self.port,
            ..ibv_ah_attr::default()
        }
    }
}

/// Environment variable that describes the link that softdev models.
pub const LINK_VARIABLE: &str = "RDMASCOPE_SOFTDEV_LINK";

/// The device that the cases run on.
#[derive(Clone, Debug)]
pub struct Subject {
    pub provider: &'static Provider,
    pub device: String,
    pub origin: Origin,
}

impl Subject {
    /// Parses `NAME[:PORT[:GID_INDEX]]`.
    ///
    /// # Errors
    /// A sentence that explains the error.
    pub fn parse(text: &str, providers: Providers) -> Result<Self, String> {
        let mut words = text.split(':');
        let device = words.next().unwrap_or_default();
        let mut number = |what: &str, otherwise: u8| match words.next() {
            None => Ok(otherwise),
            Some(word) => word.parse().map_err(|_| {
                format!("`{word}` in `{text}` is not a {what}: write NAME:PORT:GID_INDEX, e.g. rxe0:1:1")
            }),
        };
        let usual = Origin::default();
        let origin =
            Origin { port: number("port", usual.port)?, gid_index: number("GID index", usual.gid_index)? };
        if words.next().is_some() {
            return Err(format!("`{text}` has more than NAME:PORT:GID_INDEX"));
        }
        Ok(Self { provider: providers(device)?, device: device.to_owned(), origin })
    }

    /// Returns the kind of the device: its name without the number, such as `rxe` for `rxe0`, or
    /// `softdev on a link` if softdev models a link.
    pub fn kind(&self) -> &str {
        if self.device.starts_with("softdev") && std::env::var_os(LINK_VARIABLE).is_some() {
            return "softdev on a link";
        }
        self.device.trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

/// Writes the format of [`Subject::parse`].
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.device, self.origin.port, self.origin.gid_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Subject, String> {
        Subject::parse(text, |device| {
            if device == "rxe0" { Ok(&softdev::PROVIDER) } else { Err(format!("no {device}")) }
        })
    }

    #[test]
    fn a_subject_is_read_as_it_is_written() {
        for (text, port, gid_index) in [("rxe0", 1, 0), ("rxe0:2", 2, 0), ("rxe0:2:3", 2, 3)] {
            let subject = read(text).unwrap();
            assert_eq!((subject.kind(), subject.origin), ("rxe", Origin { port, gid_index }));
            assert_eq!(read(&subject.to_string()).unwrap().origin, subject.origin);
        }
        for (text, wrong) in [
            ("rxe0:x", "`x` in `rxe0:x` is not a port"),
            ("rxe0:1:256", "`256` in `rxe0:1:256` is not a GID index"),
            ("rxe0:1:1:1", "has more than"),
            ("rxe1", "no rxe1"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(wrong), "{why}");
        }
    }

    #[test]
    fn a_route_begins_at_its_origin() {
        let route = Origin { port: 2, gid_index: 3 }.route([1, 2]);
        assert_eq!((route.port_num, route.grh.sgid_index, route.is_global), (2, 3, 1));
        assert_eq!((route.grh.dgid.raw[7], route.grh.dgid.raw[15]), (1, 2));
    }
}
