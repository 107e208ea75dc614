//! The GID table of a port, and which of its entries to use by default.

use std::ffi::c_int;
use std::fmt;

use crate::abi::*;
use crate::address::Gid;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::port::LinkLayer;

/// The type of a GID, which decides the format of packets (`ibv_gid_type`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GidKind {
    /// InfiniBand.
    InfiniBand,
    /// RoCE version 1: Ethernet frames, within one link.
    RoceV1,
    /// RoCE version 2: UDP packets, routable.
    RoceV2,
    /// The library is too old to report the type.
    Unknown,
}

impl fmt::Display for GidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "IB",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Unknown => "type unknown",
        })
    }
}

/// A used entry of a GID table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GidEntry {
    /// Its index.
    pub index: u8,
    /// The GID.
    pub gid: Gid,
    /// The type of the GID.
    pub kind: GidKind,
}

impl GidEntry {
    /// How far the GID is routable, in words.
    #[must_use]
    pub fn reach(&self) -> &'static str {
        match scope(&self.gid) {
            Scope::Ipv4 => "IPv4",
            Scope::Global => "global",
            Scope::LinkLocal => "link-local",
            Scope::Loopback => "loopback",
        }
    }

    /// Whether the GID is an IPv4 address.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        std::net::Ipv6Addr::from(self.gid.0).to_ipv4_mapped().is_some()
    }

    /// The order of preference for a connection: a lower value is better.
    fn rank(&self) -> (u8, u8, u8) {
        let kind = match self.kind {
            GidKind::RoceV2 | GidKind::InfiniBand => 0,
            GidKind::Unknown => 1,
            GidKind::RoceV1 => 2,
        };
        let scope = match scope(&self.gid) {
            Scope::Ipv4 => 0,
            Scope::Global => 1,
            Scope::LinkLocal => 2,
            Scope::Loopback => 3,
        };
        (kind, scope, self.index)
    }
}

enum Scope {
    Ipv4,
    Global,
    LinkLocal,
    Loopback,
}

fn scope(gid: &Gid) -> Scope {
    match gid.0 {
        [0xfe, second, ..] if second & 0xc0 == 0x80 => Scope::LinkLocal,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, ..] => Scope::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] => Scope::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..] => Scope::Ipv4,
        _ => Scope::Global,
    }
}

/// Returns the default entry for a connection. On InfiniBand it is the first, which the subnet
/// manager made. On Ethernet, RoCE v2 comes before v1, because it is routable, and an IPv4 address
/// before a global IPv6 address before a link-local one, because a link-local address is not
/// routable and is not reachable from another VLAN. Loopback addresses come last: every host has
/// the same ones.
#[must_use]
pub fn default_gid(entries: &[GidEntry], link_layer: LinkLayer) -> Option<&GidEntry> {
    match link_layer {
        LinkLayer::InfiniBand => entries.first(),
        _ => entries.iter().min_by_key(|entry| entry.rank()),
    }
}

impl Context {
    /// Returns the used entries of a port's GID table.
    ///
    /// # Errors
    /// The device has no such port, or does not answer.
    pub fn gids(&self, port: u8) -> Result<Vec<GidEntry>> {
        let length = self.port(port)?.gids.min(u32::from(u8::MAX) + 1);
        let entries = (0..length).filter_map(|index| self.gid_entry(port, u8::try_from(index).ok()?).ok());
        Ok(entries.filter(|entry| entry.gid != Gid([0; 16])).collect())
    }

    /// Returns an entry of a port's GID table.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn gid(&self, port: u8, index: u32) -> Result<Gid> {
        let mut gid = ibv_gid::default();
        let raw_index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the context is open and the GID is writable.
        let returned =
            unsafe { (self.inner.provider().query_gid)(self.inner.raw, port, raw_index, &raw mut gid) };
        let object = || format!("{} port {port} index {index}", self.device().name());
        Error::check("query_gid", object, returned)?;
        Ok(Gid(gid.raw))
    }

    /// Returns an entry of a port's GID table, with its type if the library reports types.
    ///
    /// # Errors
    /// There is no such entry. Newer libraries also return an error if the entry is empty.
    pub fn gid_entry(&self, port: u8, index: u8) -> Result<GidEntry> {
        let Some(query) = self.inner.provider().query_gid_ex else {
            return Ok(GidEntry { index, gid: self.gid(port, u32::from(index))?, kind: GidKind::Unknown });
        };
        let mut entry = ibv_gid_entry::default();
        let port_num = u32::from(port);
        let gid_index = u32::from(index);
        let size = size_of::<ibv_gid_entry>();
        // SAFETY: the context is open, and the entry is writable and has the given size.
        let returned = unsafe { query(self.inner.raw, port_num, gid_index, &raw mut entry, 0, size) };
        let object = || format!("{} port {port} index {index}", self.device().name());
        Error::check("query_gid_ex", object, returned as c_int)?;
        let kind = match entry.gid_type {
            IBV_GID_TYPE_IB => GidKind::InfiniBand,
            IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
            IBV_GID_TYPE_ROCE_V2 => GidKind::RoceV2,
            _ => GidKind::Unknown,
        };
        Ok(GidEntry { index, gid: Gid(entry.gid.raw), kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, address: &str, kind: GidKind) -> GidEntry {
        let address: std::net::Ipv6Addr = address.parse().expect("an address");
        GidEntry { index, gid: Gid(address.octets()), kind }
    }

    #[test]
    fn ethernet_prefers_what_is_routed_and_reaches_farthest() {
        let table = [
            entry(0, "fe80::1", GidKind::RoceV1),
            entry(1, "fe80::1", GidKind::RoceV2),
            entry(2, "::ffff:10.0.0.1", GidKind::RoceV1),
            entry(3, "::ffff:10.0.0.1", GidKind::RoceV2),
            entry(4, "2001:db8::1", GidKind::RoceV2),
            entry(5, "::ffff:10.0.0.2", GidKind::RoceV2),
        ];
        let index = |entries: &[GidEntry]| default_gid(entries, LinkLayer::Ethernet).map(|entry| entry.index);
        assert_eq!(index(&table), Some(3));
        assert_eq!(index(&table[4..5]), Some(4));
        assert_eq!(index(&table[..3]), Some(1), "a link-local address of v2 before a global one of v1");
        assert_eq!(index(&table[..1]), Some(0));
        let lo = [entry(1, "::ffff:127.0.0.1", GidKind::RoceV2), entry(0, "fe80::1", GidKind::RoceV2)];
        assert_eq!(index(&lo), Some(0), "a loopback address comes last");
        assert_eq!(index(&lo[..1]), Some(1));
        assert_eq!(index(&[]), None);
    }

    #[test]
    fn infiniband_takes_the_subnet_managers() {
        let table = [entry(0, "fe80::1", GidKind::InfiniBand), entry(1, "2001:db8::1", GidKind::InfiniBand)];
        assert_eq!(default_gid(&table, LinkLayer::InfiniBand).map(|entry| entry.index), Some(0));
    }

    #[test]
    fn the_reach_is_told() {
        for (address, reach) in [
            ("fe80::1", "link-local"),
            ("::ffff:1.2.3.4", "IPv4"),
            ("fec0::1", "global"),
            ("::ffff:127.1.2.3", "loopback"),
            ("::1", "loopback"),
            ("::2", "global"),
        ] {
            let entry = entry(0, address, GidKind::RoceV2);
            assert_eq!((entry.reach(), entry.is_ipv4()), (reach, address.contains("ffff:")), "{address}");
        }
    }
}
