//! Connection set-up by RDMA CM: rank 1 listens on an address of its port, and rank 0 connects to
//! it, one queue pair after another.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use verbs::manager::{Channel, Link, Listener, Manager, is_emulated, manager};
use verbs::{Connection, Init, QueuePair, ReadyToSend};

use super::port::LocalPort;
use crate::Error;
use crate::interfaces::{address_of, usable};
use crate::point::{Service, Setup};
use crate::topology::PartSpec;

/// How long one step of RDMA CM may take; its own retries are over by then.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A rank's side of a set-up by RDMA CM.
pub(super) struct Managed {
    manager: &'static Manager,
    /// The address of the rank's port.
    own: IpAddr,
    /// The listener of rank 1.
    listener: Option<Listener>,
}

impl Managed {
    /// Prepares the set-up, if the point uses RDMA CM.
    pub(super) fn new(port: &LocalPort, spec: &PartSpec, rank: u32) -> Result<Option<Self>, Error> {
        if spec.message.setup != Setup::RdmaCm {
            return Ok(None);
        }
        let manager = manager().map_err(|missing| Error::Library { reason: missing.to_string() })?;
        let own = own_address(manager, port)?;
        let service =
            if spec.message.service == Service::Ud { verbs::Service::Ud } else { verbs::Service::Rc };
        let listener = (!spec.links.begins(rank)).then(|| manager.listen(service, own)).transpose()?;
        Ok(Some(Self { manager, own: own.ip(), listener }))
    }

    /// Returns the address at which the peer finds this rank; `None` at the rank that connects.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(Listener::address)
    }

    /// Connects the queue pair of a lane, by its index among the queue pairs of the two ranks. Both
    /// ranks do so lane by lane.
    pub(super) fn connect(
        &self,
        pair: QueuePair<Init>,
        lane: u64,
        peer: Option<SocketAddr>,
        tuning: &Connection,
    ) -> Result<(QueuePair<ReadyToSend>, Link), Error> {
        // Lanes are connected in order, so a byte distinguishes neighbouring ones.
        let tag = lane as u8;
        match (&self.listener, peer) {
            (Some(listener), _) => Ok(listener.accept(pair, tuning, tag, PATIENCE)?),
            (None, Some(peer)) => Ok(self.channel()?.connect(pair, self.own, peer, tuning, tag, PATIENCE)?),
            (None, None) => Err(silent()),
        }
    }

    /// Returns a channel for a connection that this rank requests.
    pub(super) fn channel(&self) -> Result<Channel, Error> {
        Ok(self.manager.channel()?)
    }

    /// Returns the rank's own address, from which it connects.
    pub(super) fn own(&self) -> IpAddr {
        self.own
    }

    /// Returns the listener of the rank that accepts connections.
    pub(super) fn listener(&self) -> Result<&Listener, Error> {
        self.listener.as_ref().ok_or_else(silent)
    }
}

/// Returns the error of a rank that does not listen.
pub(super) fn silent() -> Error {
    Error::PeerAddress { reason: "it does not listen with RDMA CM".to_owned() }
}

/// Returns the IP address by which RDMA CM knows a port: the GID of RoCE, otherwise the address of
/// the network interface, or the one that RDMA CM associates with a software device.
fn own_address(manager: &'static Manager, port: &LocalPort) -> Result<SocketAddr, Error> {
    let gid = port.gid.filter(|_| port.is_roce());
    if let Some(gid) = gid {
        let address = Ipv6Addr::from(gid.gid.0);
        match address.to_ipv4_mapped() {
            Some(v4) => return Ok(SocketAddr::new(v4.into(), 0)),
            None if gid.reach() != "link-local" => return Ok(SocketAddrV6::new(address, 0, 0, 0).into()),
            None => {}
        }
    }
    let found = if is_emulated() { emulated_address(manager, port)? } else { address_of(port.interfaces()) };
    found.map(|address| SocketAddr::new(address, 0)).ok_or_else(|| {
        let device = port.device().to_owned();
        let port = port.number;
        Error::NoAddress { device, port }
    })
}

/// Returns the first address of this host that the emulated RDMA CM assigns to the device.
fn emulated_address(manager: &'static Manager, port: &LocalPort) -> Result<Option<IpAddr>, Error> {
    for address in usable(|_| true) {
        if manager.device_of(address)?.as_deref() == Some(port.device()) {
            return Ok(Some(address));
        }
    }
    Ok(None)
}
