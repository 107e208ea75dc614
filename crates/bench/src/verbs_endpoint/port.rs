//! The port and the GID that a rank uses: the requested ones, or chosen ones with a reason.

use std::fmt;

use verbs::manager::{is_emulated, manager};
use verbs::{
    Connection, Context, GidEntry, GidKind, GlobalRoute, Initialisation, LinkLayer, Port, PortState, Route,
    Transport, default_gid,
};

use super::address::{Address, GidAddress};
use super::constants::{MIN_RNR_TIMER, PSN, QKEY, RETRY_COUNT, RNR_RETRY, TIMEOUT};
use crate::Error;
use crate::host_counters::Ways;
use crate::point::Setup;

/// The route by which a rank's packets leave the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortOptions {
    /// The port, from 1; `None` for the first active one.
    pub port: Option<u8>,
    /// The index in the port's GID table; `None` for the choice of [`verbs::default_gid`].
    pub gid_index: Option<u8>,
    /// The index in the port's P_Key table.
    pub pkey_index: u16,
    /// The service level of InfiniBand.
    pub service_level: u8,
    /// The traffic class of the global route header.
    pub traffic_class: u8,
}

/// A port that is used, with its properties.
#[derive(Clone, Debug)]
pub struct LocalPort {
    /// Its number, from 1.
    pub number: u8,
    /// The port's attributes, as the device reports them.
    pub is: Port,
    /// The GID that is used; `None` on InfiniBand without a table, and on iWARP.
    pub gid: Option<GidEntry>,
    /// Why this GID was chosen.
    pub reason: &'static str,
    pub(crate) options: PortOptions,
    transport: Transport,
    device: String,
    sysfs: String,
}

impl LocalPort {
    /// Finds the port and the GID, whatever state they are in.
    ///
    /// # Errors
    /// If the device has no such port or no such GID.
    pub fn find(context: &Context, options: PortOptions) -> Result<Self, Error> {
        let device = context.device();
        let ports = context.limits()?.ports;
        let number = match options.port {
            Some(port) if port == 0 || port > ports => {
                return Err(Error::NoPort { device: device.name().to_owned(), port, ports });
            }
            Some(port) => port,
            None => (1..=ports).find(|port| is_active(context, *port)).unwrap_or(1),
        };
        let is = context.port(number)?;
        let gids = context.gids(number)?;
        let (gid, reason) = match options.gid_index {
            Some(index) => {
                let known = || gids.iter().map(|gid| gid.index.to_string()).collect::<Vec<_>>().join(", ");
                let found = gids.iter().find(|gid| gid.index == index).ok_or_else(|| Error::NoGid {
                    device: device.name().to_owned(),
                    port: number,
                    index,
                    known: if gids.is_empty() { "none".to_owned() } else { known() },
                })?;
                (Some(*found), "as requested")
            }
            None => Self::default_gid(&gids, is.link_layer),
        };
        let sysfs = device.sysfs_path().to_owned();
        let transport = device.transport();
        let device = device.name().to_owned();
        Ok(Self { number, is, gid, reason, options, transport, device, sysfs })
    }

    /// Returns the default GID, and the reason for it.
    #[must_use]
    pub fn default_gid(gids: &[GidEntry], link_layer: LinkLayer) -> (Option<GidEntry>, &'static str) {
        let chosen = default_gid(gids, link_layer).copied();
        (chosen, reason(chosen.as_ref(), gids.len(), link_layer))
    }

    /// Refuses a port that cannot be measured.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn check(&self) -> Result<(), Error> {
        let device = self.device.clone();
        let port = self.number;
        if self.is.state != PortState::Active {
            let state = self.is.state.to_string();
            let remedy = self.activation();
            return Err(Error::PortNotActive { device, port, state, remedy });
        }
        if self.gid.is_none() && self.is.link_layer != LinkLayer::InfiniBand && !self.is_iwarp() {
            return Err(Error::NoUsableGid { device, port });
        }
        Ok(())
    }

    /// Returns how to activate a port.
    fn activation(&self) -> &'static str {
        match (self.is.link_layer, self.is.state) {
            (LinkLayer::InfiniBand, PortState::Initialize | PortState::Armed) => {
                "no subnet manager has activated it: start one on one host of the fabric (`systemctl start opensm`)"
            }
            (LinkLayer::InfiniBand, _) => "check the cable and the switch port (`ibstat`)",
            _ => {
                "bring its network interface up (`ip link set DEV up`; `rdma link` names it) and check the cable"
            }
        }
    }

    /// Returns whether only RDMA CM can make connections.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.transport == Transport::Iwarp
    }

    /// Returns whether its packets are RoCE.
    pub(super) fn is_roce(&self) -> bool {
        self.is.link_layer == LinkLayer::Ethernet && !self.is_iwarp()
    }

    /// Returns whether its packets are UDP, which firewalls filter: RoCE v2, except for a device in
    /// this process.
    pub(super) fn sends_udp(&self) -> bool {
        !self.sysfs.is_empty() && self.gid.is_some_and(|gid| gid.kind == GidKind::RoceV2)
    }

    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Returns the names of the device's network interfaces.
    pub(super) fn interfaces(&self) -> Vec<String> {
        let directory = std::path::Path::new(&self.sysfs);
        let names = std::fs::read_dir(directory.join("device/net")).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        // A software device names its parent interface.
        let parent = std::fs::read_to_string(directory.join("parent")).ok();
        names.chain(parent.map(|name| name.trim().to_owned())).collect()
    }

    /// Returns the counters of its packets.
    pub(crate) fn ways(&self) -> Ways {
        let directory = std::path::Path::new(&self.sysfs);
        let port = directory.join("ports").join(self.number.to_string());
        let ports = if self.sysfs.is_empty() { Vec::new() } else { vec![port] };
        Ways { interfaces: if self.sysfs.is_empty() { Vec::new() } else { self.interfaces() }, ports }
    }

    /// Returns why queue pairs cannot be connected by this set-up, if so.
    pub(crate) fn refusal(&self, setup: Setup) -> Option<String> {
        match setup {
            Setup::Exchange if self.is_iwarp() => Some(format!(
                "{} is an iWARP device, which connects through RDMA CM only: use -R",
                self.device
            )),
            Setup::RdmaCm => self.manager_refusal(),
            Setup::Exchange => None,
        }
    }

    /// Returns why RDMA CM cannot connect queue pairs of the port, if so.
    pub(super) fn manager_refusal(&self) -> Option<String> {
        if let Err(missing) = manager() {
            return Some(missing.to_string());
        }
        let is_unknown = self.sysfs.is_empty() && !is_emulated();
        is_unknown.then(|| format!("{} is not a device of the kernel, so RDMA CM cannot use it", self.device))
    }

    /// Returns the route to a peer.
    ///
    /// # Errors
    /// If the two GIDs cannot reach each other.
    pub(crate) fn route(&self, peer: &Address) -> Result<Route, Error> {
        self.route_to(peer.gid.as_ref(), peer.lid)
    }

    /// Returns the initialisation of a queue pair of the port whose peer has these access rights
    /// (`IBV_ACCESS_*`).
    pub(crate) fn initialisation(&self, access: u32) -> Initialisation {
        Initialisation { port: self.number, pkey_index: self.options.pkey_index, qkey: QKEY, access }
    }

    /// Returns the connection of a reliable queue pair of the port to another one, on a port with
    /// this GID and LID.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub(crate) fn connection(
        &self,
        qp_num: u32,
        gid: Option<&GidAddress>,
        lid: u16,
    ) -> Result<Connection, Error> {
        Ok(self.connection_by(qp_num, self.route_to(gid, lid)?))
    }

    /// Returns the connection by a route, with one outstanding Read or atomic.
    pub(super) fn connection_by(&self, qp_num: u32, route: Route) -> Connection {
        Connection {
            qp_num,
            peer_psn: PSN,
            own_psn: PSN,
            mtu: self.is.active_mtu,
            route,
            timeout: TIMEOUT,
            retry_count: RETRY_COUNT,
            rnr_retry: RNR_RETRY,
            min_rnr_timer: MIN_RNR_TIMER,
            responder_reads: 1,
            initiator_reads: 1,
        }
    }

    /// Returns the route to a port with this GID and LID.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub(super) fn route_to(&self, gid: Option<&GidAddress>, lid: u16) -> Result<Route, Error> {
        // Inside an InfiniBand subnet a packet needs no global header, and is shorter without it.
        let wants_global = self.is.link_layer != LinkLayer::InfiniBand || self.options.gid_index.is_some();
        let global = match (&self.gid, gid) {
            (Some(own), Some(theirs)) if wants_global => {
                let theirs = theirs.entry();
                if !is_reachable(own, &theirs) {
                    return Err(Error::GidsApart { own: shown(own), theirs: shown(&theirs) });
                }
                Some(GlobalRoute {
                    gid_index: own.index,
                    gid: theirs.gid,
                    traffic_class: self.options.traffic_class,
                })
            }
            _ => None,
        };
        let service_level = self.options.service_level;
        Ok(Route { port: self.number, lid, service_level, global })
    }
}

impl fmt::Display for LocalPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.gid {
            Some(gid) => {
                write!(f, "port {}, GID index {} ({}, {})", self.number, gid.index, gid.kind, self.reason)
            }
            None => write!(f, "port {}, LID {}", self.number, self.is.lid),
        }
    }
}

fn is_active(context: &Context, port: u8) -> bool {
    context.port(port).is_ok_and(|port| port.state == PortState::Active)
}

/// Returns whether packets with one GID reach the other, as far as the addresses tell.
fn is_reachable(own: &GidEntry, theirs: &GidEntry) -> bool {
    let known = own.kind != GidKind::Unknown && theirs.kind != GidKind::Unknown;
    let same_kind = !known || own.kind == theirs.kind;
    same_kind && own.is_ipv4() == theirs.is_ipv4()
}

/// Returns a GID with the properties that distinguish it from others.
pub(super) fn shown(entry: &GidEntry) -> String {
    format!("{} (index {}, {}, {})", entry.gid, entry.index, entry.kind, entry.reach())
}

fn reason(chosen: Option<&GidEntry>, of: usize, link_layer: LinkLayer) -> &'static str {
    match chosen.map(|entry| (entry.kind, entry.reach())) {
        None => "there is none",
        Some(_) if of == 1 => "the only one",
        Some(_) if link_layer == LinkLayer::InfiniBand => "from the subnet manager",
        Some((GidKind::RoceV2, "IPv4")) => "RoCE v2, IPv4",
        Some((GidKind::RoceV2, "global")) => "RoCE v2, global",
        Some((GidKind::RoceV2, "loopback")) => "RoCE v2, loopback only",
        Some((GidKind::RoceV2, _)) => "RoCE v2, link-local only",
        Some((GidKind::RoceV1, _)) => "there is no RoCE v2",
        Some(_) => "the most widely routable",
    }
}

#[cfg(test)]
mod tests {
    use verbs::abi::*;

    use super::*;

    fn entry(address: &str, kind: GidKind) -> GidEntry {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        GidEntry { index: 0, gid: verbs::Gid(address.octets()), kind }
    }

    /// Returns a port with these attributes and no GID.
    fn port(attr: &ibv_port_attr) -> LocalPort {
        LocalPort {
            number: 1,
            is: Port::from(attr),
            gid: None,
            reason: "there is none",
            options: PortOptions::default(),
            transport: Transport::InfiniBand,
            device: "mlx5_0".to_owned(),
            sysfs: String::new(),
        }
    }

    #[test]
    fn a_port_that_cannot_be_used_says_what_to_do() {
        let attr = |link_layer, state| ibv_port_attr { link_layer, state, ..ibv_port_attr::default() };
        let refused = |attr: &ibv_port_attr| port(attr).check().unwrap_err().to_string();
        for (link_layer, state, words) in [
            (IBV_LINK_LAYER_ETHERNET, IBV_PORT_DOWN, ["is down, not active", "ip link set DEV up"]),
            (IBV_LINK_LAYER_INFINIBAND, IBV_PORT_INIT, ["is initialize, not active", "start opensm"]),
            (IBV_LINK_LAYER_INFINIBAND, IBV_PORT_DOWN, ["is down, not active", "check the cable"]),
            (IBV_LINK_LAYER_ETHERNET, IBV_PORT_ACTIVE, ["has no GID", "ip addr add"]),
        ] {
            let text = refused(&attr(link_layer, state));
            assert!(text.starts_with("port 1 of mlx5_0 "), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
        }
        // InfiniBand and iWARP need no GID.
        assert!(port(&attr(IBV_LINK_LAYER_INFINIBAND, IBV_PORT_ACTIVE)).check().is_ok());
        let iwarp = LocalPort {
            transport: Transport::Iwarp,
            ..port(&attr(IBV_LINK_LAYER_ETHERNET, IBV_PORT_ACTIVE))
        };
        assert!(iwarp.check().is_ok());
    }

    #[test]
    fn kinds_and_families_must_agree() {
        use GidKind::{RoceV1, RoceV2, Unknown};
        let v4 = "::ffff:10.0.0.1";
        let link = "fe80::1";
        for (own, theirs, expected) in [
            (entry(v4, RoceV2), entry(v4, RoceV2), true),
            (entry(v4, RoceV2), entry(v4, RoceV1), false),
            (entry(v4, RoceV2), entry(link, RoceV2), false),
            (entry(link, RoceV2), entry("2001:db8::1", RoceV2), true),
            (entry(v4, Unknown), entry(v4, RoceV2), true),
        ] {
            assert_eq!(is_reachable(&own, &theirs), expected, "{} {}", shown(&own), shown(&theirs));
            let told = serde_json::to_string(&GidAddress::new(&own)).unwrap();
            assert_eq!(serde_json::from_str::<GidAddress>(&told).unwrap().entry(), own);
        }
    }
}
