//! Addresses: binding, listening, and the path to a peer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::{Route, Told};
use crate::abi::sockaddr::Address;
use crate::host::{Claim, Host};
use crate::identifier::Stage;
use crate::manager::group;
use crate::manager::state::Manager;
use crate::wire::{PortSpace, service_id};

/// Returns the address of all interfaces, in the family of `like`.
fn any(like: SocketAddr) -> SocketAddr {
    let ip: IpAddr = if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}

/// Whether an address is incomplete without its interface (`cma_check_linklocal()`).
fn lacks_interface(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// Returns the destination of a path from a bound address. All interfaces as a destination mean
/// this host (`cma_resolve_loopback()`).
fn end_of(bound: SocketAddr, destination: SocketAddr) -> IpAddr {
    match destination.ip() {
        ip if !ip.is_unspecified() => ip,
        _ if !bound.ip().is_unspecified() => bound.ip(),
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

impl<H: Host> Manager<H> {
    /// rdma_bind_addr().
    pub(super) fn bind(&mut self, id: u32, address: Address) -> Result<(), Errno> {
        self.take(id, address, true)
    }

    /// Binds an identifier, because its program asks for it or because a path needs an address.
    fn take(&mut self, id: u32, address: Address, is_asked_for: bool) -> Result<(), Errno> {
        let Address::Ip(address) = address else {
            // InfiniBand addresses fail, too: librdmacm then uses the commands for IP addresses.
            return Err(if address == Address::InfiniBand { Errno::INVAL } else { Errno::AFNOSUPPORT });
        };
        self.expect(id, Stage::Idle)?;
        if lacks_interface(address) {
            return Err(Errno::INVAL);
        }
        let port = if address.ip().is_unspecified() { None } else { Some(self.host.port_of(address.ip())?) };
        let found = self.identifiers.get(&id).ok_or(Errno::NOENT)?;
        let claim = Claim {
            space: found.space,
            address,
            is_shared: found.options.is_shared,
            is_of_one_family: found.options.is_of_one_family.unwrap_or(address.is_ipv4()),
            is_asked_for,
        };
        let (number, hold) = self.host.take(&claim)?;
        let found = self.id(id);
        found.source = Some(SocketAddr::new(address.ip(), number)).map(|made| with_scope(made, address));
        found.port = port;
        found.hold = Some(hold);
        found.stage = Stage::AddressBound;
        Ok(())
    }

    /// rdma_listen().
    pub(super) fn listen(&mut self, id: u32, backlog: i32) -> Result<(), Errno> {
        if self.id(id).stage == Stage::Idle {
            self.bind(id, Address::Ip(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)))?;
        }
        self.expect(id, Stage::AddressBound)?;
        let mut hold = self.id(id).hold.take().ok_or(Errno::INVAL)?;
        let listening = self.host.listen(&mut hold);
        let found = self.id(id);
        found.hold = Some(hold);
        listening?;
        found.options.is_shared = false;
        found.backlog =
            u32::try_from(backlog).ok().filter(|n| (1..MAX_BACKLOG).contains(n)).unwrap_or(MAX_BACKLOG);
        found.stage = Stage::Listen;
        Ok(())
    }

    /// rdma_resolve_addr(). A missing route of the host is returned as an error; other problems
    /// with the path are reported by an event.
    pub(super) fn resolve_address(
        &mut self,
        id: u32,
        source: Address,
        destination: Address,
    ) -> Result<(), Errno> {
        let Address::Ip(destination) = destination else { return Err(Errno::INVAL) };
        if self.id(id).stage == Stage::Idle {
            let source = if source == Address::None { Address::Ip(any(destination)) } else { source };
            self.take(id, source, false)?;
        }
        self.expect(id, Stage::AddressBound)?;
        let bound = self.id(id).source.ok_or(Errno::INVAL)?;
        if bound.is_ipv4() != destination.is_ipv4() || lacks_interface(destination) {
            return Err(Errno::INVAL);
        }
        let to = end_of(bound, destination);
        let source = if bound.ip().is_unspecified() { self.host.source_for(to)? } else { bound.ip() };
        match self.way(source, to, destination) {
            Ok(way) => {
                let found = self.id(id);
                found.source =
                    Some(SocketAddr::new(way.source, bound.port())).map(|made| with_scope(made, bound));
                found.destination = Some(way.destination);
                found.port = Some(way.port);
                (found.conversation.remote_gid, found.conversation.remote_lid) = way.end;
                found.stage = Stage::AddressResolved;
                self.raise(id, EventKind::AddressResolved, 0, Told::default());
            }
            Err(errno) => {
                self.id(id).destination = Some(destination);
                self.raise(id, EventKind::AddressError, -errno.raw_os_error(), Told::default());
            }
        }
        Ok(())
    }

    fn way(&mut self, source: IpAddr, to: IpAddr, destination: SocketAddr) -> Result<Way, Errno> {
        let port = self.host.port_of(source)?;
        let end = if to.is_multicast() {
            group::address(to, port.is_infiniband)
        } else {
            // No path leads out of this host.
            let there = self.host.port_of(to).map_err(|_| Errno::HOSTUNREACH)?;
            (there.gid, there.lid)
        };
        let destination = with_scope(SocketAddr::new(to, destination.port()), destination);
        Ok(Way { source, destination, port, end })
    }

    /// rdma_resolve_route(): there is only one path, which is known.
    pub(super) fn resolve_route(&mut self, id: u32) -> Result<(), Errno> {
        self.expect(id, Stage::AddressResolved)?;
        self.id(id).stage = Stage::RouteResolved;
        self.raise(id, EventKind::RouteResolved, 0, Told::default());
        Ok(())
    }

    /// Returns what is known of an identifier's route.
    pub(super) fn route(&mut self, id: u32) -> Route {
        let found = self.id(id);
        let service = |address: Option<SocketAddr>| {
            address.map_or(0, |address| service_id(PortSpace(found.space as u16), address.port()))
        };
        Route {
            source: found.source,
            // For a bound identifier, the family is known.
            destination: found.destination.or(found.source.map(any)),
            device: found.port.map(|port| (port.guid, port.number)),
            path: found.path(),
            is_resolved: matches!(found.stage, Stage::RouteResolved | Stage::Connect | Stage::Disconnect),
            services: [service(found.source), service(found.destination)],
        }
    }
}

/// A path to a destination.
struct Way {
    source: IpAddr,
    destination: SocketAddr,
    port: crate::host::Port,
    /// GID and LID of the destination.
    end: ([u8; 16], u16),
}

/// The most requests that wait for a program (`max_backlog` of ucma.c).
const MAX_BACKLOG: u32 = 1024;

/// Returns the same address with the scope and flow label of `of`.
fn with_scope(mut address: SocketAddr, of: SocketAddr) -> SocketAddr {
    if let (SocketAddr::V6(to), SocketAddr::V6(from)) = (&mut address, of) {
        to.set_scope_id(from.scope_id());
        to.set_flowinfo(from.flowinfo());
    }
    address
}
