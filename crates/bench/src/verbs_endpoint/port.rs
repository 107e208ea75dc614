//! The port and the GID that a rank uses: what was asked for, and a choice with a reason for the
//! rest.

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

/// Which way a rank's packets leave the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortOptions {
    /// Port, from 1; the first active one where absent.
    pub port: Option<u8>,
    /// Index in the port's GID table; chosen by [`verbs::default_gid`] where absent.
    pub gid_index: Option<u8>,
    /// Index in the port's P_Key table.
    pub pkey_index: u16,
    /// Service level of InfiniBand.
    pub service_level: u8,
    /// Traffic class of the global route header.
    pub traffic_class: u8,
}

/// A port that is used, with what it is.
#[derive(Clone, Debug)]
pub struct LocalPort {
    /// Its number, from 1.
    pub number: u8,
    /// What the device says of it.
    pub is: Port,
    /// The GID that is used; absent on InfiniBand without a table, and on iWARP.
    pub gid: Option<GidEntry>,
    /// Why this GID.
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
    /// When the device has no such port or no such GID.
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
                (Some(*found), "as asked for")
            }
            None => Self::default_gid(&gids, is.link_layer),
        };
        let sysfs = device.sysfs_path().to_owned();
        let transport = device.transport();
        let device = device.name().to_owned();
        Ok(Self { number, is, gid, reason, options, transport, device, sysfs })
    }

    /// The GID that is used where nobody says, and why it is the one.
    #[must_use]
    pub fn default_gid(gids: &[GidEntry], link_layer: LinkLayer) -> (Option<GidEntry>, &'static str) {
        let chosen = default_gid(gids, link_layer).copied();
        (chosen, reason(chosen.as_ref(), gids.len(), link_layer))
    }

    /// Refuses a port that nothing can be measured on.
    ///
    /// # Errors
    /// With what is wrong and what to do.
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

    /// How a port that is not active becomes so.
    fn activation(&self) -> &'static str {
        match (self.is.link_layer, self.is.state) {
            (LinkLayer::InfiniBand, PortState::Initialize | PortState::Armed) => {
                "no subnet manager has made it active: start one at one host of the fabric (`systemctl start opensm`)"
            }
            (LinkLayer::InfiniBand, _) => "check the cable and the port of the switch (`ibstat`)",
            _ => {
                "bring its network interface up (`ip link set DEV up`; `rdma link` names it) and check the cable"
            }
        }
    }

    /// Whether connections are made by RDMA CM only.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.transport == Transport::Iwarp
    }

    /// Whether its packets are RoCE.
    pub(super) fn is_roce(&self) -> bool {
        self.is.link_layer == LinkLayer::Ethernet && !self.is_iwarp()
    }

    /// Whether its packets are UDP's, which firewalls know: those of RoCE v2, but of a device in
    /// this process.
    pub(super) fn sends_udp(&self) -> bool {
        !self.sysfs.is_empty() && self.gid.is_some_and(|gid| gid.kind == GidKind::RoceV2)
    }

    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Network interfaces of the device, by their names.
    pub(super) fn interfaces(&self) -> Vec<String> {
        let directory = std::path::Path::new(&self.sysfs);
        let names = std::fs::read_dir(directory.join("device/net")).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        // A software device says whose it is.
        let parent = std::fs::read_to_string(directory.join("parent")).ok();
        names.chain(parent.map(|name| name.trim().to_owned())).collect()
    }

    /// Where its packets are counted.
    pub(crate) fn ways(&self) -> Ways {
        let directory = std::path::Path::new(&self.sysfs);
        let port = directory.join("ports").join(self.number.to_string());
        let ports = if self.sysfs.is_empty() { Vec::new() } else { vec![port] };
        Ways { interfaces: if self.sysfs.is_empty() { Vec::new() } else { self.interfaces() }, ports }
    }

    /// Why queue pairs cannot be connected in this way, if so.
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

    /// Why RDMA CM cannot connect queue pairs of the port, if so.
    pub(super) fn manager_refusal(&self) -> Option<String> {
        if let Err(missing) = manager() {
            return Some(missing.to_string());
        }
        let is_unknown = self.sysfs.is_empty() && !is_emulated();
        is_unknown.then(|| format!("{} is no device of the kernel, so RDMA CM does not know it", self.device))
    }

    /// The way to a peer.
    ///
    /// # Errors
    /// When the two GIDs cannot reach each other.
    pub(crate) fn route(&self, peer: &Address) -> Result<Route, Error> {
        self.route_to(peer.gid.as_ref(), peer.lid)
    }

    /// What a queue pair of the port is initialised with whose peer may do this (`IBV_ACCESS_*`).
    pub(crate) fn initialisation(&self, access: u32) -> Initialisation {
        Initialisation { port: self.number, pkey_index: self.options.pkey_index, qkey: QKEY, access }
    }

    /// What connects a reliable queue pair of the port with another one, of a port with this GID
    /// and LID.
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

    /// The same by a route, with a Read or an atomic at a time.
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

    /// The way to a port with this GID and LID.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub(super) fn route_to(&self, gid: Option<&GidAddress>, lid: u16) -> Result<Route, Error> {
        // Inside an InfiniBand subnet a packet needs no global header, and is the shorter for it.
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

/// Whether packets with one GID reach the other as far as the addresses tell.
fn is_reachable(own: &GidEntry, theirs: &GidEntry) -> bool {
    let known = own.kind != GidKind::Unknown && theirs.kind != GidKind::Unknown;
    let same_kind = !known || own.kind == theirs.kind;
    same_kind && own.is_ipv4() == theirs.is_ipv4()
}

/// A GID with what tells it from its neighbours.
pub(super) fn shown(entry: &GidEntry) -> String {
    format!("{} (index {}, {}, {})", entry.gid, entry.index, entry.kind, entry.reach())
}

fn reason(chosen: Option<&GidEntry>, of: usize, link_layer: LinkLayer) -> &'static str {
    match chosen.map(|entry| (entry.kind, entry.reach())) {
        None => "there is none",
        Some(_) if of == 1 => "the only one",
        Some(_) if link_layer == LinkLayer::InfiniBand => "the subnet manager's",
        Some((GidKind::RoceV2, "IPv4")) => "RoCE v2, IPv4",
        Some((GidKind::RoceV2, "global")) => "RoCE v2, global",
        Some((GidKind::RoceV2, "loopback")) => "RoCE v2, but on this host only",
        Some((GidKind::RoceV2, _)) => "RoCE v2, but no farther than its link",
        Some((GidKind::RoceV1, _)) => "no RoCE v2 is there",
        Some(_) => "the one that reaches farthest",
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

    /// A port of these attributes with no GID.
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
        // InfiniBand and iWARP do without.
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
