//! The addresses of a rank, and the choice of the address that another rank uses.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use measure::clock::Domain;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::interfaces::{self, Entry};
use crate::point::{Family, LinkLayer};

/// The addresses of a host that sockets may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Net {
    /// Any address that other hosts can reach.
    #[default]
    Any,
    /// The addresses of an interface.
    Interface(String),
    /// Loopback only: all ranks are on this host.
    Loopback,
    /// The addresses of a network, or one address.
    Network(IpAddr, u8),
}

/// The binding of a rank's sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// The addresses that they may have.
    pub net: Net,
    /// The first port, from which each rank takes the next ones; `None` for the kernel's choice.
    pub port: Option<u16>,
}

impl Net {
    /// Returns the addresses that sockets may use, of interfaces that are up.
    pub(crate) fn addresses(&self) -> Vec<Entry> {
        let mut addresses = interfaces::all();
        addresses.retain(|entry| match self {
            Self::Any => true,
            Self::Interface(name) => entry.interface == *name,
            Self::Loopback => entry.address.is_loopback(),
            Self::Network(network, prefix) => interfaces::is_in(*network, entry.address, *prefix),
        });
        addresses
    }

    /// Returns the address that sockets of a family are bound to: the unspecified one, except on
    /// loopback.
    pub(crate) fn bound_address(&self, family: Family) -> IpAddr {
        match (self, family) {
            (Self::Loopback, Family::Ipv4) => Ipv4Addr::LOCALHOST.into(),
            (Self::Loopback, Family::Ipv6) => Ipv6Addr::LOCALHOST.into(),
            (_, Family::Ipv4) => Ipv4Addr::UNSPECIFIED.into(),
            (_, Family::Ipv6) => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Returns the IPoIB interfaces among the interfaces of these addresses.
    pub(crate) fn ipoib_interfaces(&self) -> Vec<String> {
        let mut addresses = self.addresses();
        addresses.retain(|entry| entry.link_layer == Some(LinkLayer::Infiniband));
        addresses.into_iter().map(|entry| entry.interface).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str(ANY),
            Self::Interface(name) => f.write_str(name),
            Self::Loopback => f.write_str(LOOPBACK),
            Self::Network(address, prefix) => write!(f, "{address}/{prefix}"),
        }
    }
}

/// Words for addresses, which no interface has as its name.
const ANY: &str = "any";
const LOOPBACK: &str = "loopback";

impl FromStr for Net {
    type Err = String;

    /// Reads `eth0`, `10.1.0.0/16`, `192.0.2.7`, `any` or `loopback`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            ANY => return Ok(Self::Any),
            LOOPBACK => return Ok(Self::Loopback),
            _ => {}
        }
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        match (address.parse::<IpAddr>(), prefix) {
            (Ok(address), None) => Ok(Self::Network(address, if address.is_ipv4() { 32 } else { 128 })),
            (Ok(address), Some(prefix)) => {
                let width = if address.is_ipv4() { 32 } else { 128 };
                let prefix = prefix.parse().ok().filter(|prefix| *prefix <= width);
                let prefix = prefix
                    .ok_or_else(|| format!("the prefix of {text:?} is not a number from 0 to {width}"))?;
                Ok(Self::Network(address, prefix))
            }
            (Err(_), None) if !text.is_empty() && !text.contains(char::is_whitespace) => {
                Ok(Self::Interface(text.to_owned()))
            }
            _ => Err(format!(
                "{text:?} is not an interface, address or network, such as eth0, 192.0.2.7 or 10.1.0.0/16"
            )),
        }
    }
}

/// The addresses at which sockets of a rank can be reached.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reachable {
    /// The host and its network namespace; `None` if unknown.
    namespace: Option<String>,
    /// Its addresses of the point's family, the preferred first.
    addresses: Vec<Entry>,
    /// The link layer that messages must use, if any.
    link_layer: Option<LinkLayer>,
}

impl Reachable {
    /// Returns the addresses of this process.
    ///
    /// # Errors
    /// [`Error::Impossible`] if there is no matching address.
    pub(crate) fn own(net: &Net, family: Family, on: Option<LinkLayer>) -> Result<Self, Error> {
        if let (Net::Loopback, Some(layer)) = (net, on) {
            return Err(no_link(layer));
        }
        let mut addresses = net.addresses();
        addresses.retain(|entry| entry.address.is_ipv4() == (family == Family::Ipv4));
        addresses.retain(|entry| on.is_none() || entry.link_layer == on);
        // A link-local address would need the number of its interface on the other host.
        addresses.retain(|entry| !matches!(entry.address, IpAddr::V6(v6) if v6.is_unicast_link_local()));
        if addresses.is_empty() {
            let version = if family == Family::Ipv4 { "IPv4" } else { "IPv6" };
            let of = match net {
                Net::Any => String::new(),
                Net::Interface(name) => format!(" on the interface {name}"),
                Net::Loopback => " on the loopback interface".to_owned(),
                Net::Network(network, prefix) => format!(" in the network {network}/{prefix}"),
            };
            let what = match on {
                None => format!("no {version} address{of}"),
                Some(LinkLayer::Ethernet) => format!("no {version} address{of} on an Ethernet interface"),
                Some(LinkLayer::Infiniband) => {
                    format!("no IPoIB interface that has an {version} address{of}")
                }
            };
            return Err(Error::Impossible { reason: format!("a rank's host has {what} (`ip address`)") });
        }
        Ok(Self { namespace: namespace(), addresses, link_layer: on })
    }

    /// Returns what is known about the reach of Unix sockets: the namespace.
    pub(super) fn namespace_alone() -> Self {
        Self { namespace: namespace(), addresses: Vec::new(), link_layer: None }
    }

    /// Returns whether both are in the same network namespace; `false` if that is unknown.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.namespace.is_some() && self.namespace == other.namespace
    }

    /// Returns the addresses that two ranks use: in one namespace the loopback address, else
    /// addresses of a common network, else the first address of each rank, which routers may know.
    /// Both ranks come to the same result.
    ///
    /// # Errors
    /// If there are none.
    pub(crate) fn route(&self, other: &Self) -> Result<(Entry, Entry), Error> {
        // An address that both hosts have belongs to each alone: to a bridge for containers or
        // virtual machines inside the host.
        let far = |all: &[Entry], others: &[Entry]| {
            let is_shared = |entry: &Entry| others.iter().any(|other| other.address == entry.address);
            let far = all.iter().filter(|entry| !entry.address.is_loopback() && !is_shared(entry));
            far.cloned().collect::<Vec<_>>()
        };
        if let Some(layer) = self.link_layer.filter(|_| self.is_beside(other)) {
            return Err(no_link(layer));
        }
        if self.is_beside(other) {
            let loopback = self.addresses.iter().find(|entry| entry.address.is_loopback());
            let both = loopback.or(self.addresses.first()).filter(|entry| other.addresses.contains(entry));
            if let Some(entry) = both {
                return Ok((entry.clone(), entry.clone()));
            }
        }
        let own = far(&self.addresses, &other.addresses);
        let theirs = far(&other.addresses, &self.addresses);
        let shared = |own: &Entry| {
            let near =
                theirs.iter().find(|their| own.prefix == their.prefix && own.is_near(their.address))?;
            Some((own.clone(), near.clone()))
        };
        // Both ranks use the same order: that of the rank with the smaller list.
        let found = if key(&own) <= key(&theirs) {
            own.iter().find_map(shared)
        } else {
            theirs.iter().find_map(|their| {
                let near = own.iter().find(|own| own.prefix == their.prefix && own.is_near(their.address))?;
                Some((near.clone(), their.clone()))
            })
        };
        let first = || Some((own.first()?.clone(), theirs.first()?.clone()));
        found.or_else(first).ok_or_else(|| {
            let shown = |all: &[Entry]| match all {
                [] => "only loopback and link-local ones".to_owned(),
                all => all.iter().map(|entry| entry.address.to_string()).collect::<Vec<_>>().join(", "),
            };
            Error::NoCommonNet { own: shown(&own), theirs: shown(&theirs) }
        })
    }
}

/// Returns the error of two ranks without a link between them.
fn no_link(asked: LinkLayer) -> Error {
    let reason = format!(
        "ranks in one network namespace reach each other over loopback and not over {}: place them on two hosts (--hosts)",
        asked.name()
    );
    Error::Impossible { reason }
}

fn key(all: &[Entry]) -> Vec<IpAddr> {
    all.iter().map(|entry| entry.address).collect()
}

/// Identifies the network namespace of this process: the boot of the kernel and the namespace's
/// number.
fn namespace() -> Option<String> {
    let boot = Domain::of(&measure::clock::Clock::monotonic()).boot_id?;
    let link = std::fs::read_link("/proc/self/ns/net").ok()?;
    Some(format!("{boot} {}", link.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reachable(namespace: &str, addresses: &[(&str, u8)]) -> Reachable {
        let entry = |(address, prefix): &(&str, u8)| Entry {
            interface: "eth0".to_owned(),
            address: address.parse().unwrap(),
            prefix: *prefix,
            link_layer: None,
        };
        let addresses = addresses.iter().map(entry).collect();
        Reachable { namespace: Some(namespace.to_owned()), addresses, link_layer: None }
    }

    fn route(one: &Reachable, other: &Reachable) -> Option<(String, String)> {
        let (own, theirs) = one.route(other).ok()?;
        let back = other.route(one).unwrap();
        assert_eq!(back, (theirs.clone(), own.clone()), "both ranks use the same");
        Some((own.address.to_string(), theirs.address.to_string()))
    }

    #[test]
    fn both_ends_take_the_addresses_of_a_common_network() {
        let loopback = ("127.0.0.1", 8);
        let one = reachable("a", &[loopback, ("192.168.7.1", 24), ("10.1.0.1", 16)]);
        let other = reachable("b", &[loopback, ("10.1.9.9", 16), ("172.16.0.1", 12)]);
        assert_eq!(route(&one, &other), Some(("10.1.0.1".into(), "10.1.9.9".into())));
        let routed = reachable("b", &[loopback, ("203.0.113.5", 24)]);
        assert_eq!(route(&one, &routed), Some(("192.168.7.1".into(), "203.0.113.5".into())));
        assert_eq!(route(&one, &one), Some(("127.0.0.1".into(), "127.0.0.1".into())));
        assert_eq!(route(&one, &reachable("b", &[loopback])), None);
        // Networks that both hosts have for their own containers do not connect the hosts.
        let bridge = ("172.17.0.1", 16);
        let with = reachable("a", &[bridge, ("10.1.0.1", 24)]);
        let too = reachable("b", &[bridge, ("10.2.0.1", 24)]);
        assert_eq!(route(&with, &too), Some(("10.1.0.1".into(), "10.2.0.1".into())));
        assert_eq!(route(&reachable("a", &[bridge]), &reachable("b", &[bridge])), None);
        // A network of another length is another network.
        let both = reachable("c", &[("10.1.0.2", 24), ("192.168.7.2", 24)]);
        assert_eq!(route(&one, &both), Some(("192.168.7.1".into(), "192.168.7.2".into())));
    }

    #[test]
    fn nets_are_read() {
        let read = |text: &str| text.parse::<Net>();
        assert_eq!(read("ib0"), Ok(Net::Interface("ib0".to_owned())));
        assert_eq!(read("10.1.0.0/16"), Ok(Net::Network("10.1.0.0".parse().unwrap(), 16)));
        assert_eq!(read("fd00::1"), Ok(Net::Network("fd00::1".parse().unwrap(), 128)));
        for net in [Net::Any, Net::Loopback, Net::Interface("ib0".to_owned()), read("10.1.0.0/16").unwrap()] {
            assert_eq!(read(&net.to_string()), Ok(net));
        }
        for wrong in ["", "a b", "10.1.0.0/33", "eth0/24", "10.0.0.1/x"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn this_host_has_loopback() {
        let own = Reachable::own(&Net::Loopback, Family::Ipv4, None).unwrap();
        assert_eq!(own.addresses[0].address, IpAddr::from([127, 0, 0, 1]));
        assert!(own.is_beside(&own));
        let missing = Reachable::own(&Net::Interface("none0".to_owned()), Family::Ipv4, None).unwrap_err();
        assert!(missing.is_limit() && missing.to_string().contains("no IPv4 address on the interface none0"));
    }
}
